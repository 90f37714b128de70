// The learner reads digits, and asks a person where it is unsure.

import { byId, grouped, make } from "/parts/elements.js";
import { recall, remember } from "/parts/memory.js";
import { get, post } from "./api.js";
import { paint, thumbnail } from "./oracle.js";

const percent = (share) => `${Math.round(1000 * share) / 10} %`;

export class Asker {
  constructor(complain) {
    this.complain = complain;
    this.id = recall("asker");
    this.busy = false;
    for (let digit = 0; digit < 10; digit++) {
      const button = make("button", { type: "button", "aria-keyshortcuts": String(digit) }, String(digit));
      button.addEventListener("click", () => this.label(String(digit)));
      byId("asker-labels").append(button);
    }
    byId("asker-restart").addEventListener("click", () => this.begin());
    byId("asker-limit").addEventListener("change", () => this.begin());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.frame && this.show(this.frame));
  }

  async enter() {
    this.isSeen = true;
    if (this.frame) return this.goOn();
    if (this.id && (await this.run(() => get(`askers/${this.id}`)))) return this.goOn();
    await this.begin();
  }

  leave() {
    this.isSeen = false;
  }

  begin() {
    return this.run(async () => {
      const seed = Math.floor(Math.random() * 1e6);
      const frame = await post("askers", { wrong_at_most: Number(byId("asker-limit").value), seed });
      this.id = frame.id;
      remember("asker", this.id);
      return frame;
    });
  }

  // True if there is a new frame.
  async run(work) {
    if (this.busy) return false;
    this.busy = true;
    try {
      this.complain(null);
      this.show(await work());
      return true;
    } catch (problem) {
      if (problem.status === 404) this.frame = this.id = null;
      else this.complain(problem);
      return false;
    } finally {
      this.busy = false;
    }
  }

  async label(label) {
    if (!this.frame?.image) return;
    const { round } = this.frame;
    if (await this.run(() => post(`askers/${this.id}/label`, { round, label }))) this.goOn();
    else if (!this.id) await this.begin();
  }

  // It decides alone while it is sure, and somebody looks.
  async goOn() {
    while (this.isSeen && this.frame && !this.frame.image && this.frame.state === "ready") {
      if (!(await this.run(() => post(`askers/${this.id}/go-on`, {})))) return;
    }
  }

  // True if it was a key of ours.
  key(event) {
    if (!this.frame?.image) return false;
    if (/^[0-9]$/.test(event.key)) this.label(event.key);
    else if (event.key === "Enter" && !event.target.matches("button:not([role=tab]), a, select")) this.label(this.frame.guess);
    else return false;
    return true;
  }

  show(frame) {
    this.frame = frame;
    const asks = frame.image !== null;
    byId("asker-limit").value = String(frame.wrong_at_most);
    byId("asker-digit").classList.toggle("idle", !asks);
    if (asks) paint(byId("asker-digit"), frame.image);
    byId("asker-digit").setAttribute("aria-label", asks ? `Handwritten digit number ${frame.round}` : "No digit waits for you");
    byId("asker-says").textContent = frame.state === "finished" ? "That was the last digit." : asks ? "Which digit is this?" : "It is sure, and goes on alone …";
    const sure = frame.confidence === null ? "with too little feedback to say how sure it is" : `${percent(frame.confidence)} sure`;
    byId("asker-guess").replaceChildren(...(asks ? ["It would say ", make("b", {}, frame.guess), `, ${sure}${frame.is_blocked ? ". That would do, but it cannot afford a mistake now: it asks until it can" : ""}.`] : ["\u00a0"]));
    [...byId("asker-labels").children].forEach((button, digit) => {
      button.disabled = !asks;
      button.classList.toggle("main-button", asks && String(digit) === frame.guess);
    });
    this.showNumbers(frame);
    const bar = (asked, at) => {
      const first = at * frame.part + 1;
      const size = Math.min(frame.part, frame.round - first);
      const column = make("i", { title: `rounds ${first} to ${first + size - 1}: asked about ${asked}` });
      column.style.height = `${(100 * asked) / size}%`;
      return column;
    };
    byId("asker-bars").replaceChildren(...frame.parts.map(bar));
    byId("asker-latest").replaceChildren(
      ...frame.latest.toReversed().map(({ image, guess, asked, right }) => {
        const verdict = asked ? make("span", {}, `asked ${right ? "✓" : "✗"} ${guess}`) : make("span", { class: right ? "ok" : "no" }, `${right ? "✓" : "✗"} ${guess}`);
        return make("li", {}, thumbnail(image), verdict);
      }),
    );
    if (!frame.latest.length) byId("asker-latest").append(make("li", { class: "hint" }, "none yet"));
  }

  showNumbers({ round, asked, lately, n_lately: last, alone, wrong, allowed, wrong_at_most: limit }) {
    const rounds = round - 1;
    const numbers = [
      ["digits", grouped(rounds), ""],
      ["you were asked about", grouped(asked), rounds ? percent(asked / rounds) : ""],
      [`of the last ${last}`, grouped(lately), last ? percent(lately / last) : ""],
      ["it decided alone", grouped(alone), ""],
      ["wrong of those", grouped(wrong), `${alone ? percent(wrong / alone) : "limit " + percent(limit)}; at most ${Math.floor(allowed + 1e-9)} are allowed now`],
    ];
    byId("asker-numbers").replaceChildren(...numbers.map(([name, number, small]) => make("div", {}, make("dt", {}, name), make("dd", {}, number, ...(small ? [make("small", {}, small)] : [])))));
  }
}
