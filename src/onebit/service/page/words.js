// Numbers and times as people read them.

import { grouped } from "../parts/elements.js";

export const percent = (share) => (share === null ? "–" : `${(100 * share).toFixed(share > 0 && share < 0.0995 ? 1 : 0)} %`);

export const between = ({ of, low, high }) => (of ? `${percent(low)} to ${percent(high)}` : "");

export const many = (number, one, more = `${one}s`) => `${grouped(number)} ${number === 1 ? one : more}`;

const asDate = (time) => new Date(typeof time === "number" ? 1000 * time : time);

export const clock = (time) => asDate(time).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });

export function ago(time) {
  const seconds = Math.max(0, (Date.now() - asDate(time)) / 1000);
  for (const [unit, length] of [["day", 86_400], ["hour", 3_600], ["minute", 60]]) {
    if (seconds >= length) return `${many(Math.floor(seconds / length), unit)} ago`;
  }
  return seconds < 5 ? "just now" : `${Math.floor(seconds)} seconds ago`;
}
