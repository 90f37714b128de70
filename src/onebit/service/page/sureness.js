// Whether confidence is what it claims: share right by confidence, and share wrong by how many are decided alone.

import { byId, grouped, make, styleOf } from "../parts/elements.js";
import { axisStyle, Plot } from "../parts/plot.js";
import { get } from "./session.js";
import { between, percent } from "./words.js";

const EVERY = 30_000; // milliseconds

class Shares extends Plot {
  constructor(id, label, highest, series) {
    super(byId(id));
    Object.assign(this, { label, highest, series });
  }

  show(data) {
    this.data = data;
    this.rebuild();
  }

  rebuild() {
    if (!this.data) return;
    this.plot?.destroy();
    const axis = { ...axisStyle(), values: (_plot, ticks) => ticks.map((tick) => `${Math.round(100 * tick)} %`) };
    this.plot = new uPlot(
      {
        ...this.size(),
        cursor: { show: false },
        legend: { show: false },
        scales: { x: { time: false, range: [0, 1] }, y: { range: (_plot, _low, most) => [0, this.highest ?? Math.max(1.1 * most, 0.02)] } },
        axes: [{ ...axis, size: 34, label: this.label, labelSize: 18, labelFont: axis.font }, { ...axis, size: 64 }],
        series: [{}, ...this.series()],
      },
      this.data,
      this.parent,
    );
  }
}

export class Sureness {
  constructor(path) {
    this.path = path;
    this.at = -Infinity;
    const bars = (stroke) => ({ stroke, width: 2, points: { show: false }, spanGaps: false });
    this.reliability = new Shares("reliability", "confidence; up: share right", 1, () => [
      { stroke: styleOf("--line"), width: 2, points: { show: false } },
      { stroke: styleOf("--accent"), width: 0, points: { show: true, size: 8, fill: styleOf("--accent") }, paths: () => null },
      bars(styleOf("--accent")),
    ]);
    this.risk = new Shares("risk", "share decided alone; up: wrong of these", null, () => [{ stroke: styleOf("--bad"), width: 2.4, points: { show: false } }]);
  }

  async look() {
    if (!byId("sureness-details").open || performance.now() - this.at < EVERY) return;
    this.at = performance.now();
    const { groups, risk } = await get(`${this.path}/confidence`);
    for (const id of ["reliability", "risk"]) byId(id).hidden = !groups.length;
    byId("sureness-table").hidden = !groups.length;
    if (!groups.length) {
      byId("sureness-says").textContent = "There are too few answered guesses with a confidence yet.";
      return;
    }
    const counted = groups.reduce((sum, { right }) => sum + right.of, 0);
    byId("sureness-says").textContent = `${grouped(counted)} answered guesses, in groups of equal size: on the line confidence is what it claims; bars are 95 % intervals.`;
    // One column of points for each group, and its interval as a piece of a line with gaps between.
    const points = groups.flatMap(({ confidence, right }) => [[confidence, right.share, right.low], [confidence + 1e-9, null, right.high], [confidence + 2e-9, null, null]]);
    const places = [0, ...points.map(([x]) => x), 1];
    this.reliability.show([places, places, [null, ...points.map(([, share]) => share), null], [null, ...points.map(([, , end]) => end), null]]);
    this.risk.show([risk.map(([x]) => x), risk.map(([, wrong]) => wrong)]);
    const cell = (text) => make("td", { class: "number" }, text);
    byId("sureness-table").tBodies[0].replaceChildren(...groups.map(({ confidence, right }) => make("tr", {}, cell(percent(confidence)), cell(percent(right.share)), cell(between(right)), cell(grouped(right.of)))));
  }
}
