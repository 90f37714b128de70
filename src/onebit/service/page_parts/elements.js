// Small helpers around the document. Text is only ever set as text.

export const byId = (id) => document.getElementById(id);

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "color") element.style.background = value;
    else if (name === "width") element.style.width = value;
    else if (name in element && typeof value !== "string") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

export const swatch = (color) => make("span", { class: "swatch", color, "aria-hidden": "true" });

const SVG = "http://www.w3.org/2000/svg"; // a name, not an address that anybody asks

// A piece of a learner's line in the chart.
export function lineSwatch(color, dashes) {
  const svg = document.createElementNS(SVG, "svg");
  const line = document.createElementNS(svg.namespaceURI, "line");
  const set = (element, values) => Object.entries(values).forEach(([name, value]) => element.setAttribute(name, value));
  set(svg, { class: "line", width: 26, height: 10, "aria-hidden": "true" });
  set(line, { x1: 0, x2: 26, y1: 5, y2: 5, stroke: color, "stroke-width": 3, "stroke-dasharray": dashes.map((part) => 2.4 * part).join(" ") });
  svg.append(line);
  return svg;
}

export function grouped(number) {
  return String(Math.round(number)).replace(/\B(?=(\d{3})+(?!\d))/g, "\u2009");
}

export function styleOf(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export const isDark = () => matchMedia("(prefers-color-scheme: dark)").matches;
