// The queue of tickets that the decider asks about: one at a time, a click or a key for each label.

import { byId, grouped, make } from "../parts/elements.js";
import { get, put } from "./session.js";
import { record } from "./tickets.js";
import { ago, between, clock, many, percent } from "./words.js";

const FETCHED = 30; // tickets at a time
const KEYS = 9; // labels that have a key
const EVERY_LIMITS = 30_000; // milliseconds between looks at what other limits would cost
const READING = 700; // milliseconds in which nothing counts after another ticket came in front by itself

export class Asked {
  // `changed` is called after a label, `complain` with what went wrong, `say` with what screen readers should hear.
  constructor(path, { changed, complain, say }) {
    Object.assign(this, { path, changed, complain, say });
    this.tickets = [];
    this.done = new Set(); // labelled here: what the server lists may be older
    this.later = []; // put off here: behind all others, until those are done
    this.readAt = -Infinity; // from then on keys and clicks count
    this.roles = [];
    this.classes = null; // fetched when the ranking does not have all
    this.limits = [];
    this.limitsAt = -Infinity;
    byId("asked-order").addEventListener("change", () => {
      this.isReordered = true;
      this.changed();
    });
    byId("asked-limit").addEventListener("input", () => this.showLimit());
    document.addEventListener("keydown", (event) => this.pressed(event));
  }

  setRoles(roles) {
    if (this.roles.join() === roles.join()) return;
    this.roles = roles;
    this.shown = null;
  }

  async look(frame) {
    this.frame = frame;
    const isAsking = frame.wrong_at_most !== null || frame.ask_at_most !== null;
    byId("asked-section").hidden = !isAsking && !frame.status.asked;
    this.showShares(frame);
    if (!byId("asked-section").hidden) {
      const order = byId("asked-order").value;
      const found = await get(`${this.path}/asked?limit=${FETCHED}&order=${order}`);
      const current = this.tickets[0];
      const isListed = found.tickets.some(({ id }) => id === current?.id);
      // The ticket in front of a person stays, whatever comes meanwhile, until it is answered elsewhere.
      const goes = current && !isListed && !(found.has_more && (await this.isOpen(current)));
      const left = this.ordered(found.tickets.filter(({ id }) => !this.done.has(id)));
      const hasGoneOn = this.tickets[0] !== current; // a person was faster than the service
      const front = (goes || this.isReordered) && !hasGoneOn ? undefined : this.tickets[0];
      this.tickets = front ? [front, ...left.filter(({ id }) => id !== front.id)] : left;
      if (goes && !hasGoneOn) this.readAt = performance.now() + READING;
      this.hasMore = found.has_more;
      this.isReordered = order !== byId("asked-order").value;
      if (frame.status.n_classes > 20 && this.classes === null) this.classes = (await get(`${this.path}/status`)).classes;
      this.show();
    }
    if (byId("limits-details").open && performance.now() - this.limitsAt > EVERY_LIMITS) {
      this.limitsAt = performance.now();
      this.limits = (await get(`${this.path}/limits`)).limits;
      this.showLimit();
    }
  }

  async isOpen({ id }) {
    try {
      return (await get(`${this.path}/ticket?id=${encodeURIComponent(id)}`)).state === "open";
    } catch (problem) {
      if (problem.status === 404) return false;
      throw problem;
    }
  }

  ordered(tickets) {
    const isLater = ({ id }) => this.later.includes(id);
    const put = tickets.filter(isLater).sort((one, other) => this.later.indexOf(one.id) - this.later.indexOf(other.id));
    return [...tickets.filter((ticket) => !isLater(ticket)), ...put];
  }

  // A press may have been meant for the ticket that was in front a moment ago.
  get isUnread() {
    return performance.now() < this.readAt;
  }

  showShares({ status, report, wrong_at_most: wrong, ask_at_most: ask }) {
    const asked = report.asked;
    const said = [];
    if (wrong !== null) said.push(`At most ${percent(wrong)} of what it decides alone may be wrong.`);
    if (ask !== null) said.push(`It may ask about ${percent(ask)} of all.`);
    if (asked.of) said.push(`It asked about ${percent(report.recent_asked.share)} of the last ${grouped(report.recent_asked.of)} guesses, ${percent(asked.share)} of all.`);
    if (status.asked_answered) said.push(`Its suggestion was right in ${grouped(status.suggestions_right)} of ${grouped(status.asked_answered)}.`);
    byId("asked-says").textContent = said.join(" ");
  }

  show() {
    const waiting = this.tickets.length;
    byId("asked-count").textContent = waiting ? `${grouped(waiting)}${this.hasMore ? " or more" : ""} waiting` : "";
    byId("asked-bar").hidden = waiting < 2;
    const current = this.tickets[0];
    const key = JSON.stringify([current?.id, this.roles]);
    if (key === this.shown) return;
    this.shown = key;
    const hadFocus = byId("asked").contains(document.activeElement);
    byId("asked").replaceChildren(current ? this.card(current) : make("p", { class: "hint" }, "No ticket waits for you. New ones appear here by themselves."));
    if (hadFocus) byId("asked").querySelector(".shown")?.focus({ preventScroll: true });
  }

  card(ticket) {
    const mayLabel = this.roles.includes("play");
    const sure = ticket.confidence === null ? "too little feedback so far for a confidence" : `${percent(ticket.confidence)} sure`;
    const head = make("div", { class: "guess-line" }, make("span", {}, "It would say ", make("b", {}, String(ticket.label))), make("span", { title: clock(ticket.time) }, `${sure}, ${ago(ticket.time)}`));
    const buttons = this.labelsOf(ticket).map((label, at) => {
      const made = make("button", { type: "button", disabled: !mayLabel, class: at === 0 ? "main-button" : "" }, ...(at < KEYS ? [make("kbd", {}, String(at + 1)), " "] : []), String(label));
      made.addEventListener("click", () => this.label(ticket, label));
      return made;
    });
    const card = make("div", { class: "shown", tabindex: "-1", "data-id": ticket.id }, head, record(ticket.record), make("div", { class: "answers labels" }, ...buttons));
    const others = (this.classes ?? []).filter((label) => !this.labelsOf(ticket).includes(label));
    if (others.length) card.append(this.otherLabels(ticket, others, mayLabel));
    const later = make("button", { type: "button" }, make("kbd", {}, "0"), " later");
    later.addEventListener("click", () => this.next(ticket));
    card.append(make("div", { class: "foot" }, this.tickets.length > 1 ? later : "", make("span", { class: "id plain" }, ticket.id)));
    if (this.isUnread) card.append(make("p", { class: "hint" }, "The ticket before was answered elsewhere: this is another."));
    if (!mayLabel) card.append(make("p", { class: "hint" }, "Labelling needs a token with the role play."));
    return card;
  }

  // The suggestion first: it may have been drawn, and not be the highest.
  labelsOf({ label, ranking }) {
    return [label, ...ranking.filter((each) => each !== label)];
  }

  otherLabels(ticket, others, mayLabel) {
    const names = new Map(others.map((label) => [String(label), label]));
    const input = make("input", { type: "text", list: "other-labels", autocomplete: "off", "aria-label": "Another label", placeholder: `one of ${grouped(others.length)} others`, disabled: !mayLabel });
    const form = make("form", { class: "bar" }, input, make("datalist", { id: "other-labels" }, ...others.map((label) => make("option", { value: String(label) }))), make("button", { type: "submit", disabled: !mayLabel }, "This label"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const label = names.get(input.value.trim());
      if (label === undefined) this.complain({ status: 422, message: `“${input.value.trim()}” is none of the labels.` });
      else this.label(ticket, label);
    });
    return form;
  }

  // A key names a label of the ticket in front, wherever the focus is but where text is typed.
  pressed(event) {
    const ticket = this.tickets[0];
    if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || !ticket || byId("asked-section").hidden) return;
    if (event.target.matches?.("input:not([type=checkbox]):not([type=range]), select, textarea") || !/^[0-9]$/.test(event.key)) return;
    const at = Number(event.key) - 1;
    if (at < 0) this.tickets.length > 1 && this.next(ticket);
    else if (this.roles.includes("play") && at < this.labelsOf(ticket).length) this.label(ticket, this.labelsOf(ticket)[at]);
  }

  next(ticket) {
    if (this.isUnread) return;
    this.later = [...this.later.filter((id) => id !== ticket.id), ticket.id];
    this.tickets = [...this.tickets.filter(({ id }) => id !== ticket.id), ticket];
    this.show();
  }

  // The next ticket is shown at once; a label that is refused brings its ticket back.
  async label(ticket, label) {
    if (this.isUnread) return;
    this.done.add(ticket.id);
    this.tickets = this.tickets.filter(({ id }) => id !== ticket.id);
    this.show();
    try {
      await put(`${this.path}/label`, { id: ticket.id, label });
      this.complain(null);
      this.say(`Labelled ${label}.`);
    } catch (problem) {
      if (problem.status !== 404 && problem.status !== 409) {
        this.done.delete(ticket.id);
        this.tickets = [ticket, ...this.tickets.filter(({ id }) => id !== ticket.id)];
        this.show();
      }
      return this.complain(problem);
    }
    if (this.tickets.length < 2) this.changed();
  }

  // What another limit would cost.

  showLimit() {
    const slider = byId("asked-limit");
    slider.disabled = !this.limits.length;
    if (!this.limits.length) {
      byId("limit-says").textContent = "There are too few answered guesses with a confidence yet.";
      return;
    }
    slider.max = String(this.limits.length - 1);
    if (!slider.dataset.isSet) {
      const wanted = this.frame.wrong_at_most ?? 0.02;
      slider.value = String(this.limits.reduce((best, each, at) => (Math.abs(each.wrong_at_most - wanted) < Math.abs(this.limits[best].wrong_at_most - wanted) ? at : best), 0));
      slider.dataset.isSet = "yes";
    }
    const { wrong_at_most: limit, asked } = this.limits[Number(slider.value)];
    slider.setAttribute("aria-valuetext", percent(limit));
    byId("limit-says").replaceChildren("At ", make("b", {}, percent(limit)), " wrong you would be asked ", make("b", {}, percent(asked.share)), ` of the time (roughly ${between(asked)}), going by the last ${many(asked.of, "answered guess", "answered guesses")}.`);
  }
}
