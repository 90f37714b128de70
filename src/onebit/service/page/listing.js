// The deciders that the caller may see.

import { byId, grouped, make } from "../parts/elements.js";
import { get, root } from "./session.js";
import { ago, between, clock, percent } from "./words.js";

const STATES = { opening: "is being opened", busy: "is busy" };

const address = (name) => new URL(`desk/${name.split("/").map(encodeURIComponent).join("/")}`, root).pathname;

function numbers({ state, says, numbers: known }) {
  if (!known) return [make("td", { colSpan: 5 }, says ?? STATES[state] ?? "")];
  const { guesses, answered, open, mistakes, last } = known;
  const cell = (text, title = "", more = "") => make("td", { class: `number ${more}`, title }, text);
  const wrong = cell(percent(mistakes.share), mistakes.of ? `between ${between(mistakes)}, with 95 % confidence` : "nothing is answered yet");
  const when = make("td", { class: "roomy", title: clock(last) }, says ?? (state === "ready" ? ago(last) : STATES[state]));
  return [cell(grouped(guesses), "", "roomy"), cell(grouped(answered)), cell(grouped(open)), wrong, when];
}

export class Listing {
  constructor() {
    this.shown = null;
  }

  async look() {
    const { deciders } = await get("/overview");
    byId("list").hidden = false;
    byId("deciders").hidden = !deciders.length;
    byId("list-empty").hidden = deciders.length > 0;
    byId("list-empty").textContent = "There is none yet that you may see. PUT /v1/NAMESPACE/NAME makes one, or client.create in Python.";
    // Links stay the same elements while names do: the focus is not lost.
    const names = JSON.stringify(deciders.map((each) => each.name));
    const body = byId("deciders").tBodies[0];
    if (names !== this.shown) {
      this.shown = names;
      body.replaceChildren(
        ...deciders.map(({ name }) => make("tr", {}, make("th", { scope: "row" }, make("a", { href: address(name) }, name)))),
      );
    }
    deciders.forEach((each, at) => {
      const row = body.rows[at];
      [...row.cells].slice(1).forEach((cell) => cell.remove()); // the link must not leave the page, not even for a moment
      row.append(...numbers(each));
    });
  }
}
