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

export function grouped(number) {
  return String(Math.round(number)).replace(/\B(?=(\d{3})+(?!\d))/g, "\u2009");
}

export function styleOf(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export const isDark = () => matchMedia("(prefers-color-scheme: dark)").matches;
