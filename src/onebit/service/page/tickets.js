// Open tickets, one ticket looked up, and answers to them.

import { byId, grouped, make } from "../parts/elements.js";
import { get, post } from "./session.js";
import { ago, clock, percent } from "./words.js";

const PER_PAGE = 6;
const LINGER = 2500; // milliseconds for which an answered ticket stays in the list
const STATES = {
  open: ["waits for its answer", ""],
  right: ["✓ right", "ok"],
  wrong: ["✗ wrong", "no"],
  withdrawn: ["its answer was withdrawn", ""],
  silent: ["closed: no answer came in time", ""],
};

function happened({ kind, correct }) {
  if (kind === "guessed") return "guessed";
  if (kind === "closed") return "closed without an answer";
  const said = correct === null ? "nothing" : correct ? "right" : "wrong";
  return kind === "feedback" ? `told ${said}` : correct === null ? "withdrawn" : `corrected to ${said}`;
}

// In a list: one flowing text.
function brief({ values, n_more: more }) {
  const parts = values.flatMap(([name, value]) => [make("span", { class: "column" }, `${name} `), value, make("span", { class: "column" }, " · ")]);
  return make("p", { class: "brief" }, ...(more ? [...parts, `${grouped(more)} more`] : parts.slice(0, -1)));
}

export function record({ values, n_more: more }) {
  const pairs = values.flatMap(([name, value]) => [make("dt", { title: name }, name), make("dd", {}, value)]);
  return make("dl", { class: "record" }, ...pairs, ...(more ? [make("dt", {}, "…"), make("dd", {}, `and ${grouped(more)} more`)] : []));
}

const guessLine = (label, propensity, time) =>
  make("div", { class: "guess-line" }, make("b", {}, String(label)), make("span", { title: `${clock(time)}; propensity: the chance with which this label was drawn, not how likely it is to be right` }, `propensity ${percent(propensity)}, ${ago(time)}`));

export class Tickets {
  // `changed` is called after an answer, `complain` with what went wrong, `say` with what screen readers should hear.
  constructor(path, { changed, complain, say }) {
    Object.assign(this, { path, changed, complain, say });
    this.befores = [null]; // where each page begins, as far as it was turned
    this.roles = [];
    byId("older").addEventListener("click", () => this.turn(1));
    byId("newer").addEventListener("click", () => this.turn(-1));
    // A key that is held down answers once: the next ticket has the focus by then.
    byId("open").addEventListener("keydown", (event) => event.repeat && event.key === "Enter" && event.preventDefault());
    byId("look-up").addEventListener("submit", (event) => {
      event.preventDefault();
      this.lookUp(byId("ticket-id").value.trim());
    });
  }

  may(role) {
    return this.roles.includes(role);
  }

  setRoles(roles) {
    this.roles = roles;
    const missing = [...(this.may("play") ? [] : ["answering needs the role play"]), ...(this.may("admin") ? [] : ["correcting needs admin"])];
    byId("may-not").hidden = !missing.length;
    byId("may-not").textContent = missing.length ? `Your token may look; ${missing.join(", ")}.` : "";
  }

  // The list.

  async look() {
    const before = this.befores.at(-1);
    const found = await get(`${this.path}/open?limit=${PER_PAGE}${before ? `&older_than=${encodeURIComponent(before)}` : ""}`);
    if (before !== this.befores.at(-1)) return;
    if (!found.tickets.length && this.befores.length > 1) {
      this.befores = [null];
      return this.look();
    }
    this.last = found.tickets.at(-1)?.id;
    this.showOpen(found);
  }

  async turn(by) {
    if (by > 0) this.befores.push(this.last);
    else if (this.befores.length > 1) this.befores.pop();
    try {
      await this.look();
      byId("open").querySelector("button")?.focus();
    } catch (problem) {
      this.complain(problem);
    }
  }

  showOpen({ tickets, has_more: hasMore }) {
    byId("pages").hidden = !hasMore && this.befores.length === 1;
    byId("older").disabled = !hasMore;
    byId("newer").disabled = this.befores.length === 1;
    byId("open-page").textContent = `page ${this.befores.length}`;
    // What is shown already stays the same element: focus and a press of a button are not lost.
    const list = byId("open");
    const shown = new Map([...list.children].filter((item) => item.dataset.id).map((item) => [item.dataset.id, item]));
    const items = tickets.map((ticket) => {
      const item = shown.get(ticket.id);
      if (!item || item.dataset.roles !== this.roles.join()) return this.item(ticket);
      item.querySelector(".guess-line").replaceWith(guessLine(ticket.label, ticket.propensity, ticket.time));
      return item;
    });
    // Under a pointer nothing moves: a press meant for one ticket must not reach another.
    if (shown.size && list.matches(":hover") && this.shownPage === this.befores.length) return;
    this.shownPage = this.befores.length;
    // One that was just answered stays until it is read.
    for (const item of list.children) {
      if (item.dataset.id && Number(item.dataset.until) > Date.now()) items.splice(Math.min([...list.children].indexOf(item), items.length), 0, item);
    }
    const unique = [...new Set(items)];
    if (!unique.length) unique.push(make("li", { class: "hint" }, this.hint));
    if (unique.length !== list.children.length || unique.some((item, at) => list.children[at] !== item)) {
      const focused = document.activeElement;
      list.replaceChildren(...unique);
      if (list.contains(focused)) focused.focus({ preventScroll: true });
    }
  }

  item(ticket) {
    const id = make("button", { type: "button", class: "id", title: "Look it up" }, ticket.id);
    id.addEventListener("click", () => this.lookUp(ticket.id, true));
    const item = make("li", { "data-id": ticket.id, "data-roles": this.roles.join() }, guessLine(ticket.label, ticket.propensity, ticket.time), brief(ticket.record));
    const answers = this.answers(ticket.id, ticket.label, item);
    item.append(make("div", { class: "foot" }, answers, id));
    return item;
  }

  answers(id, label, item) {
    const button = (correct) => {
      const made = make("button", { type: "button", class: `main-button ${correct ? "good" : "bad"}`, disabled: !this.may("play"), "aria-label": `${correct ? "Right" : "Wrong"}: ${label}, ticket ${id}` }, correct ? "✓ Right" : "✗ Wrong");
      made.addEventListener("click", () => this.answer(id, correct, item));
      return made;
    };
    return make("div", { class: "answers" }, button(true), button(false));
  }

  async answer(id, correct, item) {
    const buttons = [...item.querySelectorAll(".answers button")];
    buttons.forEach((each) => (each.disabled = true));
    try {
      await post(`${this.path}/tell`, { id, correct });
    } catch (problem) {
      buttons.forEach((each) => (each.disabled = !this.may("play")));
      return this.complain(problem);
    }
    this.complain(null);
    this.say(`Told ${correct ? "right" : "wrong"}.`);
    if (item.parentElement === byId("open")) {
      const [text, look] = STATES[correct ? "right" : "wrong"];
      item.dataset.until = String(Date.now() + LINGER);
      item.querySelector(".answers").replaceChildren(make("span", { class: `verdict ${look}` }, text));
      item.nextElementSibling?.querySelector(".answers button")?.focus({ preventScroll: true });
    }
    await this.after(id, item);
  }

  // What was pressed inside the ticket goes on there.
  async after(id, pressed) {
    if (this.shown === id) await this.lookUp(id, byId("ticket").contains(pressed));
    this.changed();
  }

  // One ticket.

  async lookUp(id, andGo = false) {
    if (!id) return;
    byId("ticket-id").value = id;
    try {
      const found = await get(`${this.path}/ticket?id=${encodeURIComponent(id)}`);
      this.complain(null);
      this.shown = found.id;
      this.show(found);
      if (andGo) {
        byId("ticket").scrollIntoView({ block: "nearest" });
        byId("ticket").firstElementChild.focus({ preventScroll: true });
      }
    } catch (problem) {
      if (problem.status !== 404) return this.complain(problem);
      this.shown = null;
      byId("ticket").replaceChildren(make("p", { class: "hint" }, problem.message));
    }
  }

  show(ticket) {
    const [text, look] = STATES[ticket.state];
    const shown = make("div", { class: "shown", tabindex: "-1" }, guessLine(ticket.label, ticket.propensity, ticket.time), make("div", { class: `verdict ${look}` }, text));
    const notes = [];
    if (ticket.is_explored) notes.push("drawn to explore: the learner would have said something else");
    if (ticket.among) notes.push(`allowed were ${ticket.among.join(", ")}`);
    if (ticket.key !== null) notes.push(`key ${ticket.key}`);
    if (notes.length) shown.append(make("p", { class: "when" }, `${notes.join("; ")}.`));
    shown.append(record(ticket.record));
    shown.append(make("ol", { class: "history", "aria-label": "What happened to it" }, ...ticket.history.map((event) => make("li", {}, `${clock(event.time)}: ${happened(event)}`))));
    shown.append(ticket.state === "open" ? this.answers(ticket.id, ticket.label, shown) : this.corrections(ticket), make("div", { class: "id" }, ticket.id));
    byId("ticket").replaceChildren(shown);
  }

  corrections({ id, state }) {
    if (state === "silent") return make("div", {});
    const button = (text, verb, body) => {
      const made = make("button", { type: "button", disabled: !this.may("admin") }, text);
      made.addEventListener("click", () => this.correct(id, verb, body, made));
      return made;
    };
    const all = make("div", { class: "answers" });
    if (state !== "right") all.append(button("It was right", "correct", { id, correct: true }));
    if (state !== "wrong") all.append(button("It was wrong", "correct", { id, correct: false }));
    if (state !== "withdrawn") all.append(button("Withdraw the answer", "withdraw", { id }));
    return all;
  }

  async correct(id, verb, body, button) {
    const said = button.textContent;
    button.parentElement.querySelectorAll("button").forEach((each) => (each.disabled = true));
    button.textContent = "replaying …";
    try {
      await post(`${this.path}/${verb}`, body);
      this.complain(null);
      this.say(`Done: ${said}.`);
    } catch (problem) {
      this.complain(problem);
    }
    await this.after(id, button);
  }
}
