// The desk of one decider.

import { byId, grouped, make } from "../parts/elements.js";
import { Asked } from "./asked.js";
import { Course } from "./course.js";
import { get } from "./session.js";
import { Sureness } from "./sureness.js";
import { Tickets } from "./tickets.js";
import { ago, between, clock, many, percent } from "./words.js";

const COLUMNS_EVERY = 10_000; // milliseconds
const SETTLE = 350; // milliseconds, after which the server's numbers are no older than the answer

export class Desk {
  constructor(name, hooks) {
    this.name = name;
    this.path = `/${name.split("/").map(encodeURIComponent).join("/")}`;
    this.hooks = hooks;
    const withChange = { ...hooks, changed: () => setTimeout(hooks.again, SETTLE) };
    this.tickets = new Tickets(this.path, withChange);
    this.questions = new Asked(this.path, withChange);
    this.course = new Course();
    this.sureness = new Sureness(this.path);
    this.asked = -Infinity;
    byId("columns-details").addEventListener("toggle", () => {
      this.asked = -Infinity;
      hooks.again();
    });
    byId("sureness-details").addEventListener("toggle", () => {
      this.sureness.at = -Infinity;
      hooks.again();
    });
  }

  setRoles(roles) {
    this.tickets.setRoles(roles);
    this.questions.setRoles(roles);
  }

  async look() {
    const frame = await get(`${this.path}/desk`);
    byId("desk").hidden = false;
    this.show(frame);
    await this.questions.look(frame);
    await this.tickets.look();
    await this.sureness.look();
    if (byId("columns-details").open && performance.now() - this.asked > COLUMNS_EVERY) {
      this.asked = performance.now();
      this.showColumns(await get(`${this.path}/columns`));
    }
  }

  show(frame) {
    const { status, report } = frame;
    const told = [status.learner, many(status.n_classes, "class", "classes"), `since ${clock(status.since)}`];
    if (frame.exploration_floor) told.push(`${percent(frame.exploration_floor)} drawn to explore`);
    if (frame.deadline) told.push(`tickets close after ${grouped(frame.deadline)} s${frame.silence === "wrong" ? ", as wrong" : ""}`);
    if (status.differences) told.push(`${many(status.differences, "guess", "guesses")} of the log this onebit would have made otherwise`);
    byId("learner").textContent = told.join(" · ");
    this.showAlarms(report.alarms);
    this.showNumbers(frame);
    this.showClasses(frame);
    this.showWeights(frame.weights);
    this.course.show(frame.course, Date.parse(status.since) / 1000);
    byId("open-count").textContent = grouped(status.open);
    this.tickets.hint = status.guesses ? "None waits for an answer." : `No guess has come yet. POST /v1/${this.name}/guess asks for one, or guess in Python.`;
  }

  showNumbers({ status, report, wrong_at_most: limit }) {
    const oldest = status.oldest_open === null ? "" : `oldest ${ago(status.oldest_open)}`;
    const lately = report.recent_mistakes;
    const numbers = [
      ["guesses", grouped(report.guesses), status.watched ? `${grouped(status.watched)} watched beside` : ""],
      ["answered", grouped(report.answered), [status.asked_answered && `and ${grouped(status.asked_answered)} that were asked`, report.silent && `${grouped(report.silent)} closed unanswered`].filter(Boolean).join(", ")],
      ["open", grouped(report.open), oldest],
      ["mistakes", grouped(report.mistakes.number), ""],
      [status.asked ? "wrong of those decided alone" : "share wrong", percent(report.mistakes.share), [between(report.mistakes), limit === null ? "" : `limit ${percent(limit)}`].filter(Boolean).join("; ")],
      ...(status.asked ? [["asked", percent(report.asked.share), `${grouped(status.asked)} of ${grouped(report.guesses)}`]] : []),
      [lately.of ? `wrong in the last ${grouped(lately.of)}` : "wrong lately", percent(lately.share), between(lately)],
    ];
    byId("numbers").replaceChildren(...numbers.map(([name, number, small]) => make("div", {}, make("dt", {}, name), make("dd", {}, number, ...(small ? [make("small", {}, small)] : [])))));
  }

  // Only what is new is read out.
  showAlarms(alarms) {
    const key = JSON.stringify(alarms);
    if (key === this.alarms) return;
    this.alarms = key;
    byId("alarms").replaceChildren(
      ...alarms.map((alarm) => make("div", { class: "alarm" }, make("b", {}, `⚠ ${alarm.kind}`), `: ${alarm.says}`, make("p", {}, `Likely cause: ${alarm.likely_cause}.`))),
    );
  }

  showClasses({ status, report }) {
    const cell = (text) => make("td", { class: "number" }, text);
    const rows = report.by_class.map(({ label, guessed, mistakes }) =>
      make("tr", {}, make("th", { scope: "row" }, String(label)), cell(grouped(guessed)), cell(grouped(mistakes.of)), cell(grouped(mistakes.number)), make("td", { class: "number interval" }, mistakes.of ? `${percent(mistakes.share)} (${between(mistakes)})` : "–")),
    );
    byId("classes").tBodies[0].replaceChildren(...rows);
    const { constant } = report;
    const left = status.n_classes - rows.length;
    const said = left ? [`The ${many(left, "class", "classes")} guessed least are not shown.`] : [];
    if (constant) {
      const [least, most] = [constant.right_at_least, constant.right_at_most].map(grouped);
      said.push(`Always saying “${constant.label}” would have been right ${least === most ? least : `${least} to ${most}`} times of ${grouped(report.answered)}; this decider was ${grouped(report.answered - report.mistakes.number)} times.`);
    }
    byId("constant").textContent = said.join(" ");
  }

  showWeights(weights) {
    byId("weights-section").hidden = !weights.length;
    const bar = (share) => make("span", { class: "weight", width: `${Math.round(120 * share)}px`, "aria-hidden": "true" });
    byId("weights").tBodies[0].replaceChildren(...weights.map(([kernel, share]) => make("tr", {}, make("th", { scope: "row" }, kernel), make("td", {}, bar(share), percent(share)))));
  }

  showColumns({ columns, n_more: more }) {
    const cell = (text) => make("td", { class: "number" }, text);
    const words = ({ categories, n_categories: n }) => categories.join(", ") + (n > categories.length ? `, and ${grouped(n - categories.length)} more` : "");
    byId("columns-table").tBodies[0].replaceChildren(
      ...columns.map((each) => make("tr", {}, make("th", { scope: "row" }, each.name), make("td", {}, each.kind), cell(grouped(each.seen)), cell(grouped(each.missing)), cell(each.n_places ? grouped(each.n_places) : "shared"), make("td", {}, words(each)))),
    );
    byId("columns-more").textContent = more ? `And ${many(more, "column")} more.` : columns.length ? "" : "No record has come yet.";
  }
}
