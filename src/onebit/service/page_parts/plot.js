// What all charts share; uPlot draws them.

import { grouped, styleOf } from "./elements.js";

export const axisStyle = () => ({
  stroke: styleOf("--soft"),
  grid: { stroke: styleOf("--line"), width: 1 },
  ticks: { stroke: styleOf("--line"), width: 1 },
  font: "13px system-ui, sans-serif",
  values: (_plot, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? grouped(tick) : "")), // all that is counted is whole
});

// A chart that fits its parent, and is drawn anew when light becomes dark; a subclass has `rebuild`, which sets `plot`.
export class Plot {
  constructor(parent) {
    this.parent = parent;
    new ResizeObserver(() => this.plot?.setSize(this.size())).observe(parent);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.rebuild());
  }

  size() {
    return { width: Math.max(this.parent.clientWidth, 200), height: this.parent.clientHeight || 220 };
  }
}
