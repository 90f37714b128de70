// One learner's picture: the regions of its guesses, the latest rounds, the facts it keeps, and what is under the mouse.

import { isDark, make, styleOf } from "/parts/elements.js";

const FINE = 144; // pixels along a side, to which a grid of scores is interpolated
const STEP = 0.04; // of the picture, for an arrow key

function rgb(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

export class Picture {
  constructor(title, { onLook, onDraw }) {
    this.canvas = make("canvas", {
      tabindex: "0",
      role: "img",
      "aria-label": `What ${title} would say, all over the picture. Arrow keys move a cross; what is said there is told under Who says what.`,
    });
    this.count = make("span");
    const name = make("b");
    name.textContent = title;
    this.figure = make("figure", {}, make("figcaption", {}, name, this.count), this.canvas);
    this.fine = document.createElement("canvas");
    this.fine.width = this.fine.height = FINE;
    this.hasRegions = false;
    this.cross = null;
    this.onLook = onLook;
    this.onDraw = onDraw;
    this.canvas.addEventListener("pointermove", (event) => this.look(this.placeOf(event)));
    this.canvas.addEventListener("pointerleave", () => this.look(null));
    this.canvas.addEventListener("pointerdown", (event) => {
      if (event.button === 0) this.onDraw?.(this.placeOf(event));
    });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("blur", () => this.look(null));
    new ResizeObserver(() => this.paint()).observe(this.canvas);
  }

  key(event) {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const move = moves[event.key];
    if (!this.frame) return;
    const [left, bottom, right, top] = this.frame.stream.box;
    const at = this.cross ?? [(left + right) / 2, (bottom + top) / 2];
    if (move) {
      const x = at[0] + move[0] * STEP * (right - left);
      const y = at[1] + move[1] * STEP * (top - bottom);
      this.look([Math.min(Math.max(x, left), right), Math.min(Math.max(y, bottom), top)]);
    } else if (event.key === "Enter" && this.onDraw) this.onDraw(at);
    else if (event.key === "Escape") this.look(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  look(place) {
    this.cross = place;
    this.paint();
    this.onLook(place);
  }

  placeOf(event) {
    const edges = this.canvas.getBoundingClientRect();
    const [left, bottom, right, top] = this.frame?.stream.box ?? [0, 0, 1, 1];
    const x = Math.min(Math.max((event.clientX - edges.left) / edges.width, 0), 1);
    const y = Math.min(Math.max((event.clientY - edges.top) / edges.height, 0), 1);
    return [left + x * (right - left), top - y * (top - bottom)];
  }

  // Scores between the centres of cells are interpolated, and the highest wins: fine borders from a coarse grid.
  setRegions({ size, scores, facts }, colors) {
    this.facts = facts;
    const context = this.fine.getContext("2d");
    const image = context.createImageData(FINE, FINE);
    const strength = isDark() ? 0.42 : 0.34;
    const back = rgb(isDark() ? "#1b1e24" : "#ffffff");
    const shades = colors.map((color) => rgb(color).map((part, i) => back[i] + (part - back[i]) * strength));
    for (let py = 0; py < FINE; py++) {
      const y = Math.min(Math.max(((py + 0.5) / FINE) * size - 0.5, 0), size - 1.001);
      const y0 = Math.floor(y), fy = y - y0;
      for (let px = 0; px < FINE; px++) {
        const x = Math.min(Math.max(((px + 0.5) / FINE) * size - 0.5, 0), size - 1.001);
        const x0 = Math.floor(x), fx = x - x0, at = y0 * size + x0;
        let best = -Infinity, worst = Infinity, label = 0;
        for (let k = 0; k < scores.length; k++) {
          const of = scores[k];
          const score = (1 - fy) * ((1 - fx) * of[at] + fx * of[at + 1]) + fy * ((1 - fx) * of[at + size] + fx * of[at + size + 1]);
          if (score > best) [best, label] = [score, k];
          if (score < worst) worst = score;
        }
        const shade = best > worst ? shades[label] : back; // where all score alike nothing is said
        image.data.set([shade[0], shade[1], shade[2], 255], 4 * (py * FINE + px));
      }
    }
    context.putImageData(image, 0, 0);
    this.hasRegions = true;
    this.paint();
  }

  show(frame, at, colors) {
    this.frame = frame;
    this.at = at;
    this.colors = colors;
    this.paint();
  }

  paint() {
    if (!this.frame) return;
    const ratio = Math.min(devicePixelRatio || 1, 2);
    const side = Math.round(this.canvas.clientWidth * ratio);
    if (!side) return;
    if (this.canvas.width !== side) this.canvas.width = this.canvas.height = side;
    const context = this.canvas.getContext("2d");
    context.clearRect(0, 0, side, side);
    if (this.hasRegions) context.drawImage(this.fine, 0, 0, side, side);
    const [left, bottom, right, top] = this.frame.stream.box;
    const seen = ([x, y]) => [((x - left) / (right - left)) * side, ((top - y) / (top - bottom)) * side];
    const pen = new Pen(context, Math.max(side / 100, 2.3 * ratio));
    const { points } = this.frame.stream;
    if (!points) for (const each of this.frame.rounds) this.round(pen, each, seen);
    for (const fact of this.facts ?? []) {
      if (fact.is !== null) pen.diamond(seen(fact.place), this.colors[fact.is]);
      else for (const label of fact.is_not) pen.cross(seen(fact.place), this.colors[label], points ? 2.1 : 1.4);
    }
    // On top: what somebody drew stays in sight.
    for (const [x, y, label] of points ?? []) pen.dot(seen([x, y]), this.colors[label], 1.2);
    if (!this.frame.rounds.length && !points?.length) pen.words(this.hint, side, styleOf("--soft"));
    const last = this.frame.rounds.at(-1);
    if (last) pen.ring(seen(last.place), last.guesses[this.at] === last.truth ? styleOf("--ink") : styleOf("--bad"), 2.9);
    if (this.cross) pen.lines(seen(this.cross), side, styleOf("--ink"));
  }

  round(pen, each, seen) {
    const guess = each.guesses[this.at];
    if (guess === each.truth) pen.dot(seen(each.place), this.colors[guess], 0.95);
    else pen.cross(seen(each.place), this.colors[guess], 1.1);
  }
}

class Pen {
  constructor(context, unit) {
    this.context = context;
    this.unit = unit;
    this.edge = isDark() ? "#000000" : "#ffffff";
  }

  dot([x, y], color, size) {
    this.context.beginPath();
    this.context.arc(x, y, size * this.unit, 0, 2 * Math.PI);
    this.fill(color);
  }

  diamond([x, y], color) {
    const r = 1.9 * this.unit;
    this.context.beginPath();
    this.context.moveTo(x, y - r);
    this.context.lineTo(x + r, y);
    this.context.lineTo(x, y + r);
    this.context.lineTo(x - r, y);
    this.context.closePath();
    this.fill(color);
  }

  fill(color) {
    this.context.fillStyle = color;
    this.context.fill();
    this.context.lineWidth = 0.3 * this.unit;
    this.context.strokeStyle = this.edge;
    this.context.stroke();
  }

  cross([x, y], color, size) {
    const r = size * this.unit;
    for (const [style, width] of [[this.edge, 1.1], [color, 0.65]]) {
      this.context.beginPath();
      this.context.moveTo(x - r, y - r);
      this.context.lineTo(x + r, y + r);
      this.context.moveTo(x - r, y + r);
      this.context.lineTo(x + r, y - r);
      this.context.lineWidth = width * this.unit;
      this.context.strokeStyle = style;
      this.context.stroke();
    }
  }

  words(text, side, color) {
    this.context.font = `${Math.round(6 * this.unit)}px system-ui, sans-serif`;
    this.context.textAlign = "center";
    this.context.fillStyle = color;
    this.context.fillText(text, side / 2, side / 2);
  }

  ring([x, y], color, size) {
    this.context.beginPath();
    this.context.arc(x, y, size * this.unit, 0, 2 * Math.PI);
    this.context.lineWidth = 0.6 * this.unit;
    this.context.strokeStyle = color;
    this.context.stroke();
  }

  lines([x, y], side, color) {
    this.context.beginPath();
    this.context.moveTo(x, 0);
    this.context.lineTo(x, side);
    this.context.moveTo(0, y);
    this.context.lineTo(side, y);
    this.context.lineWidth = 0.25 * this.unit;
    this.context.strokeStyle = color;
    this.context.stroke();
  }
}
