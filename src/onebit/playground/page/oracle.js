// A person thinks of a rule; the learner guesses, and hears right or wrong.

import { byId, isDark, make } from "/parts/elements.js";
import { recall, remember } from "/parts/memory.js";
import { get, post } from "./api.js";

const RULES = [
  { title: "even or odd", says: "0 2 4 6 8, or 1 3 5 7 9", classes: ["even", "odd"] },
  { title: "small or large", says: "up to 4, or from 5 on", classes: ["small", "large"] },
  { title: "with a hole or without", says: "0 4 6 8 9, or 1 2 3 5 7", classes: ["hole", "no hole"] },
  { title: "which digit it is", says: "ten names: patience helps", classes: [..."0123456789"] },
];

// With a border, and smoothly: eight pixels are few.
export function paint(canvas, image) {
  const small = document.createElement("canvas");
  small.width = small.height = 10;
  const dots = small.getContext("2d");
  const shade = (value) => Math.round(255 * (isDark() ? value / 16 : 1 - value / 16));
  for (let at = 0; at < 100; at++) {
    const [x, y] = [(at % 10) - 1, Math.floor(at / 10) - 1];
    const grey = shade(x >= 0 && x < 8 && y >= 0 && y < 8 ? image[8 * y + x] : 0);
    dots.fillStyle = `rgb(${grey},${grey},${grey})`;
    dots.fillRect(x + 1, y + 1, 1, 1);
  }
  const context = canvas.getContext("2d");
  context.imageSmoothingQuality = "high";
  context.drawImage(small, 0, 0, canvas.width, canvas.height);
}

export function thumbnail(image) {
  const canvas = make("canvas", { "aria-hidden": "true" });
  canvas.width = canvas.height = 48;
  paint(canvas, image);
  return canvas;
}

export class Oracle {
  constructor(complain) {
    this.complain = complain;
    this.id = recall("oracle");
    this.busy = false;
    for (const { title, says, classes } of RULES) {
      const button = make("button", { type: "button" }, make("b", {}, title), make("span", {}, says));
      button.addEventListener("click", () => this.begin(classes));
      byId("rules").append(button);
    }
    byId("own-rule").addEventListener("submit", (event) => {
      event.preventDefault();
      const names = byId("names").value.split(",").map((name) => name.trim()).filter(Boolean);
      if (names.length < 2) return this.complain(new Error("Write at least two names, with a comma between."));
      this.begin(names);
    });
    byId("right").addEventListener("click", () => this.answer(true));
    byId("wrong").addEventListener("click", () => this.answer(false));
    byId("new-rule").addEventListener("click", () => this.askForRule());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.frame && this.show(this.frame));
  }

  async enter() {
    if (!this.frame && this.id) await this.lookAgain();
  }

  async lookAgain() {
    try {
      this.show(await get(`oracles/${this.id}`));
    } catch (problem) {
      if (problem.status !== 404) this.complain(problem);
    }
  }

  askForRule() {
    this.frame = this.id = null;
    remember("oracle", null);
    byId("game").hidden = true;
    byId("ask").hidden = false;
    byId("rules").querySelector("button").focus();
  }

  async begin(classes) {
    if (this.busy) return;
    this.busy = true;
    try {
      this.complain(null);
      const learner = new URLSearchParams(location.search).get("learner") ?? "svm";
      const seed = Math.floor(Math.random() * 1e6);
      const frame = await post("oracles", { classes, learner, seed });
      this.id = frame.id;
      remember("oracle", this.id);
      this.show(frame);
      byId("right").focus({ preventScroll: true });
    } catch (problem) {
      this.complain(problem);
    } finally {
      this.busy = false;
    }
  }

  async answer(correct) {
    if (this.busy || this.frame?.state !== "ready") return;
    this.busy = true;
    try {
      this.complain(null);
      this.show(await post(`oracles/${this.id}/answer`, { round: this.frame.round, correct }));
    } catch (problem) {
      // Answered in another tab, or over.
      if (problem.status === 409) await this.lookAgain();
      else {
        this.complain(problem);
        if (problem.status === 404) this.askForRule();
      }
    } finally {
      this.busy = false;
    }
  }

  // True if it was a key of ours.
  key(event) {
    const keys = { y: true, Y: true, ArrowRight: true, n: false, N: false, ArrowLeft: false };
    if (!(event.key in keys) || !this.frame) return false;
    this.answer(keys[event.key]);
    return true;
  }

  show(frame) {
    this.frame = frame;
    byId("ask").hidden = true;
    byId("game").hidden = false;
    byId("oracle-sentence").textContent = `${frame.learner} sees a digit and guesses ${listed(frame.classes)}. Only you know the rule: is the guess right or wrong?`;
    const image = byId("digit");
    paint(image, frame.image);
    image.setAttribute("aria-label", `Handwritten digit number ${frame.round}`);
    byId("guess").textContent = frame.guess ?? "That was the last one.";
    byId("right").disabled = byId("wrong").disabled = frame.state !== "ready";
    this.showScore();
    byId("answers").replaceChildren(
      ...frame.answers.toReversed().map(({ image: seen, guess, correct }) =>
        make("li", { title: guess }, thumbnail(seen), make("span", { class: correct ? "ok" : "no" }, `${correct ? "✓" : "✗"} ${guess}`)),
      ),
    );
    if (!frame.answers.length) byId("answers").append(make("li", { class: "hint" }, "none yet"));
    this.showPiles();
  }

  showScore() {
    const { right, answered, lately } = this.frame;
    const recent = lately.filter(Boolean).length;
    byId("oracle-score").textContent = answered
      ? `${right} of ${answered} right; ${recent} of the last ${lately.length}.`
      : "Press y or →  if it is right, n or ← if it is wrong.";
  }

  showPiles() {
    const { classes, shelf, sorted_as: codes } = this.frame;
    if (!codes) {
      byId("piles").replaceChildren(make("p", { class: "hint" }, "It knows nothing yet: answer once."));
      return;
    }
    byId("piles").replaceChildren(
      ...classes.map((name, label) => {
        const inside = shelf.filter((_, at) => codes[at] === label);
        const title = make("h3", {}, `${name} (${inside.length})`);
        return make("div", { class: "pile" }, title, make("div", {}, ...inside.map(thumbnail)));
      }),
    );
  }
}

function listed(names) {
  return `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`;
}
