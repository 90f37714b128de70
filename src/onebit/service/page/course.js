// How mistakes went: the share that moves, and all of them so far; drawn by uPlot, and as a table.

import { byId, grouped, lineSwatch, make, styleOf } from "../parts/elements.js";
import { axisStyle, Plot } from "../parts/plot.js";
import { clock, many, percent } from "./words.js";

const FEWEST = 50; // answers in the share that moves
const PART = 20; // or this part of all answers, if that is more
const LINES = 24; // of the table

const [GUESSES, ANSWERED, WRONG, ASKED] = [1, 2, 3, 4]; // in a moment, after its time

// The share of one count in about the last `span` of another at each moment.
function movingShares(moments, span, part, whole) {
  let from = 0;
  return moments.map((moment, at) => {
    while (from + 1 < at && moment[whole] - moments[from + 1][whole] >= span) from++;
    const before = moments[from];
    const more = moment[whole] - before[whole];
    return more >= Math.min(span, FEWEST) ? (moment[part] - before[part]) / more : null;
  });
}

class Lines extends Plot {
  show(data, isByTime) {
    this.data = data;
    if (!this.plot || isByTime !== this.isByTime) {
      this.isByTime = isByTime;
      this.rebuild();
    } else this.plot.setData(data);
  }

  rebuild() {
    if (!this.data) return;
    this.plot?.destroy();
    const axis = axisStyle();
    const horizontal = { ...axis, size: 34, space: 70, ...(this.isByTime ? { values: undefined } : { label: "answers", labelSize: 18, labelFont: axis.font }) };
    const [low, high] = this.limits();
    this.plot = new uPlot(
      {
        ...this.size(),
        cursor: { show: false },
        legend: { show: false },
        scales: {
          x: this.isByTime ? { time: true } : { time: false, range: (_plot, _low, last) => [0, Math.max(last, 10)] },
          y: { range: (_plot, _low, most) => [low, Math.max((most ?? 0) * 1.08, high)] },
        },
        axes: [horizontal, { ...axis, size: 62, values: (_plot, ticks) => ticks.map((tick) => this.tick(tick)) }],
        series: [{}, ...this.series().map((line) => ({ width: 2.4, points: { show: false }, spanGaps: true, ...line }))],
      },
      this.data,
      this.parent,
    );
  }
}

class Shares extends Lines {
  limits = () => [0, 0.1];
  tick = (tick) => `${Math.round(1000 * tick) / 10} %`;
  series = () => [{ stroke: styleOf("--bad") }, { stroke: styleOf("--accent"), dash: [2, 4] }];
}

class Totals extends Lines {
  limits = () => [0, 10];
  tick = (tick) => (Number.isInteger(tick) ? grouped(tick) : "");
  series = () => [
    { stroke: styleOf("--soft"), dash: [2, 4] },
    { stroke: styleOf("--accent"), dash: [9, 5] },
    { stroke: styleOf("--bad") },
  ];
}

export class Course {
  constructor() {
    this.shares = new Shares(byId("share"));
    this.totals = new Totals(byId("total"));
    byId("by-time").addEventListener("change", () => this.moments && this.draw());
    byId("course-details").addEventListener("toggle", () => this.moments && this.fillTable());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.moments && this.draw());
  }

  show(moments, since) {
    const key = JSON.stringify([moments.length, moments.at(-1)]);
    if (key === this.key) return;
    this.key = key;
    const last = moments.at(-1);
    const known = moments.slice(0, -1).filter((moment) => moment[GUESSES] < last[GUESSES]);
    this.moments = [[since, 0, 0, 0, 0], ...known, last];
    this.draw();
    this.fillTable();
  }

  draw() {
    const [, , answered, , asked] = this.moments.at(-1);
    const span = Math.max(FEWEST, Math.ceil(answered / PART));
    const isByTime = byId("by-time").checked;
    const at = this.moments.map(([time, , count]) => (isByTime ? time : count));
    const shares = [movingShares(this.moments, span, WRONG, ANSWERED), asked ? movingShares(this.moments, span, ASKED, GUESSES) : this.moments.map(() => null)];
    this.shares.show([at, ...shares], isByTime);
    this.totals.show([at, ...[1, 2, 3].map((which) => this.moments.map((each) => each[which]))], isByTime);
    byId("course-says").textContent = answered < FEWEST ? `the share is drawn from ${FEWEST} answers on` : `share wrong of about the last ${grouped(span)} answers${asked ? ", and share asked" : ""}; below, all so far`;
    byId("key").replaceChildren(
      ...[["guesses", "--soft", [0.8, 1.6]], ["answers", "--accent", [3.6, 2]], ["mistakes", "--bad", []], ...(asked ? [["asked (above)", "--accent", [0.8, 1.6]]] : [])].map(([name, color, dashes]) => make("span", {}, lineSwatch(styleOf(color), dashes), name)),
    );
  }

  fillTable() {
    if (!byId("course-details").open) return;
    const step = Math.max(1, Math.ceil((this.moments.length - 1) / LINES));
    const lines = this.moments.filter((_, at) => at > 0 && (at % step === 0 || at === this.moments.length - 1));
    let before = this.moments[0];
    const rows = lines.map((moment) => {
      const [time, guesses, answered, wrong] = moment;
      const since = answered - before[2];
      const share = since ? `${percent((wrong - before[3]) / since)} of ${grouped(since)}` : "–";
      before = moment;
      const cell = (text) => make("td", { class: "number" }, text);
      return make("tr", {}, make("th", { scope: "row" }, clock(time)), cell(grouped(guesses)), cell(grouped(answered)), cell(grouped(wrong)), cell(share));
    });
    byId("course-table").tBodies[0].replaceChildren(...rows);
  }

  says() {
    const [, guesses, answered, wrong] = this.moments.at(-1);
    return `${many(guesses, "guess", "guesses")}, ${many(answered, "answer")}, ${many(wrong, "mistake")}`;
  }
}
