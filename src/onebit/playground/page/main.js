// Tabs, keys, and what went wrong.

import { byId } from "/parts/elements.js";
import { recall, remember } from "/parts/memory.js";
import { get } from "./api.js";
import { Arena } from "./arena.js";
import { Asker } from "./asker.js";
import { Oracle } from "./oracle.js";

const tabs = [...document.querySelectorAll("[role=tab]")];
let mode = "watch";

function complain(problem) {
  byId("problem").hidden = problem === null;
  byId("problem").textContent = problem?.message ?? "";
}

async function enter(chosen, { focus = false } = {}) {
  mode = chosen;
  remember("mode", mode);
  complain(null);
  for (const tab of tabs) {
    const isChosen = tab.dataset.mode === mode;
    tab.setAttribute("aria-selected", String(isChosen));
    tab.tabIndex = isChosen ? 0 : -1;
    if (isChosen && focus) tab.focus();
  }
  byId("arena").hidden = mode in persons;
  for (const other in persons) byId(other).hidden = mode !== other;
  persons.asker.leave();
  if (mode in persons) {
    arena.stop();
    await persons[mode].enter();
  } else {
    byId("arena").setAttribute("aria-labelledby", `tab-${mode}`);
    await arena.enter(mode);
  }
}

let arena;
let persons; // the tabs in which a person answers

async function start() {
  const catalogue = await get("catalogue");
  arena = new Arena(catalogue, complain);
  persons = { asker: new Asker(complain), oracle: new Oracle(complain) };
  tabs.forEach((tab, at) => {
    tab.addEventListener("click", () => enter(tab.dataset.mode));
    tab.addEventListener("keydown", (event) => {
      const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!move) return;
      event.preventDefault();
      event.stopPropagation();
      enter(tabs[(at + move + tabs.length) % tabs.length].dataset.mode, { focus: true });
    });
  });
  document.addEventListener("keydown", (event) => {
    const inField = event.target.matches("input:not([type=checkbox]):not([type=radio]), select, textarea");
    if (inField || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.repeat && (mode in persons || event.key !== "ArrowRight")) return; // a key that is held is one press
    if (mode in persons) {
      if (persons[mode].key(event)) event.preventDefault();
    } else if (event.key === "ArrowRight" && !event.target.matches("input")) {
      event.preventDefault();
      arena.step();
    } else if (event.key === " " && !event.target.matches("button, input, summary")) {
      event.preventDefault();
      arena.toggle();
    }
  });
  await enter(recall("mode") ?? "watch");
  if (mode === "watch") byId("play").focus({ preventScroll: true });
}

start().catch(complain);
