// Mistakes so far, drawn by uPlot.

import { grouped, isDark } from "/parts/elements.js";
import { axisStyle, Plot } from "/parts/plot.js";

// Learners' colours were chosen for white paper: on black the dark ones are lightened.
export function lineColor(hex) {
  if (!isDark()) return hex;
  const parts = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const light = (0.299 * parts[0] + 0.587 * parts[1] + 0.114 * parts[2]) / 255;
  const mix = light < 0.3 ? 0.45 : light < 0.45 ? 0.25 : 0;
  return `rgb(${parts.map((part) => Math.round(part + (255 - part) * mix)).join(",")})`;
}

// On a logarithmic axis only powers of ten have a number: 100, 1 000, 10⁴.
function powers(_plot, ticks) {
  return ticks.map((tick) => {
    const power = tick === null ? NaN : Math.round(Math.log10(tick) * 1e6) / 1e6;
    if (!Number.isInteger(power)) return "";
    return power < 4 ? grouped(tick) : `10${[...String(power)].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("")}`;
  });
}

export class Chart extends Plot {
  withPromises = false;

  show(frame) {
    this.frame = frame;
    const form = JSON.stringify([frame.learners.map((each) => [each.key, each.promise?.mistakes]), this.withPromises]);
    if (form !== this.form) {
      this.form = form;
      this.rebuild();
    } else this.plot.setData(this.data());
  }

  clear() {
    this.plot?.destroy();
    this.frame = this.plot = this.form = null;
  }

  setPromises(shown) {
    this.withPromises = shown;
    if (this.frame) this.show(this.frame);
  }

  promised() {
    return this.withPromises ? this.frame.learners.filter((each) => each.promise?.mistakes) : [];
  }

  data() {
    const { rounds, mistakes } = this.frame.curve;
    // A logarithm has no zero.
    const lines = this.withPromises ? mistakes.map((line) => line.map((count) => count || null)) : mistakes;
    return [rounds, ...lines, ...this.promised().map((each) => rounds.map(() => each.promise.mistakes))];
  }

  rebuild() {
    if (!this.frame) return;
    this.plot?.destroy();
    const axis = axisStyle();
    const line = (each) => ({ label: each.title, stroke: lineColor(each.color), width: 2.4, dash: each.dashes.map((part) => 2.4 * part), points: { show: false }, spanGaps: true });
    const promise = (each) => ({ ...line(each), label: `${each.title}, promised`, width: 1.4, dash: [9, 6] });
    this.plot = new uPlot(
      {
        ...this.size(),
        cursor: { show: false },
        legend: { show: false },
        scales: {
          x: { time: false, range: (_plot, _low, high) => [0, Math.max(high, 10)] },
          y: this.withPromises ? { distr: 3, log: 10 } : { range: (_plot, _low, high) => [0, Math.max(high * 1.08, 5)] },
        },
        axes: [
          { ...axis, label: "rounds", labelSize: 18, labelFont: axis.font, size: 34, space: 60 },
          { ...axis, size: 62, ...(this.withPromises ? { values: powers } : {}) },
        ],
        series: [{}, ...this.frame.learners.map(line), ...this.promised().map(promise)],
      },
      this.data(),
      this.parent,
    );
  }
}
