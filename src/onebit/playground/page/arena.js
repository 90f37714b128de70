// Watching learners on a stream, and drawing points for them: the same panel, two modes.

import { byId, grouped, lineSwatch, make, swatch } from "/parts/elements.js";
import { recall, remember } from "/parts/memory.js";
import { drop, get, post } from "./api.js";
import { Chart, lineColor } from "./chart.js";
import { Picture } from "./picture.js";

const DEFAULTS = {
  watch: { stream: "paper_weak", learners: ["svm", "perceptron"], seed: 1, id: null },
  draw: { stream: "drawn", learners: ["svm", "perceptron"], seed: 1, id: null },
};
const SHORTEST_TICK = 70; // milliseconds between frames
const QUIET = 4000; // milliseconds between two announcements while playing
const LISTED = 8; // rounds as text
const GRIDS = [16, 20, 26, 32, 40, 48];

// A long name may be broken where a word of it begins.
const breakable = (name) => name.split(/(?<=[a-z])(?=[A-Z])/).flatMap((word, at) => (at ? [make("wbr"), word] : [word]));

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// What was asked about the session is on its way.
const giveBack = (id) => pause(1500).then(() => drop(`sessions/${id}`)).catch(() => {});

export class Arena {
  constructor(catalogue, complain) {
    this.catalogue = catalogue;
    this.complain = complain;
    this.mode = "watch";
    this.setups = { watch: { ...DEFAULTS.watch, ...recall("watch") }, draw: { ...DEFAULTS.draw, ...recall("draw") } };
    this.playing = false;
    this.pictures = [];
    this.promises = [];
    this.grid = 3;
    this.announced = 0;
    this.turn = 0;
    this.chart = new Chart(byId("chart"));
    this.label = catalogue.drawn_labels[0];
    this.kept = null; // points that are to be drawn again
    this.fillControls();
  }

  get setup() {
    return this.setups[this.mode];
  }

  fillControls() {
    for (const { name, title } of this.catalogue.streams) {
      if (name !== "drawn") byId("stream").append(make("option", { value: name }, title));
    }
    for (const { key, title, says } of this.catalogue.learners) {
      const box = make("input", { type: "checkbox", value: key });
      box.addEventListener("change", () => this.chooseLearner(box));
      byId("learners").append(make("label", { title: `${title} ${says}` }, box, title));
    }
    this.catalogue.drawn_labels.forEach((name, at) => {
      const radio = make("input", { type: "radio", name: "colour", value: name, checked: at === 0 });
      radio.addEventListener("change", () => (this.label = name));
      byId("colours").append(make("label", {}, radio, swatch(this.catalogue.palette[at]), name));
    });
    byId("settings").open = matchMedia("(min-width: 700px)").matches;
    byId("play").addEventListener("click", () => this.toggle());
    byId("step").addEventListener("click", () => this.step());
    byId("restart").addEventListener("click", () => this.restart());
    byId("stream").addEventListener("change", () => this.chooseStream());
    byId("file").addEventListener("change", () => this.chooseFile());
    for (const id of ["table-label", "table-drop"]) byId(id).addEventListener("change", () => this.table && this.restart());
    byId("seed").addEventListener("change", () => this.chooseSeed());
    byId("promises").addEventListener("change", (event) => this.chart.setPromises(event.target.checked));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.repaint());
  }

  repaint() {
    if (!this.frame) return;
    this.pictures.forEach((picture) => (picture.drawn = -1));
    this.show(this.frame);
  }

  // What is played.

  async enter(mode) {
    this.stop();
    this.mode = mode;
    this.kept = null;
    const turn = ++this.turn;
    byId("stream-label").hidden = mode === "draw";
    byId("colours").hidden = mode !== "draw";
    byId("pictures").classList.toggle("drawing", mode === "draw");
    byId("stream").value = this.setup.stream;
    byId("table").hidden = this.setup.stream !== "csv";
    byId("seed").value = this.setup.seed;
    for (const box of byId("learners").querySelectorAll("input")) box.checked = this.setup.learners.includes(box.value);
    if (this.setup.id) {
      try {
        const id = this.setup.id;
        const frame = await get(`sessions/${id}`);
        if (turn === this.turn) this.begin({ id, ...frame });
        return;
      } catch (problem) {
        if (turn !== this.turn) return;
        if (problem.status !== 404) return this.complain(problem);
      }
    }
    await this.restart();
  }

  // True if what was asked for is shown.
  async restart() {
    this.stop();
    const setup = this.setup;
    const turn = ++this.turn;
    if (setup.stream === "csv" && !this.table) return this.askForTable();
    const leftOut = byId("table-drop").value.split(",").map((name) => name.trim()).filter(Boolean);
    const table = setup.stream === "csv" ? { ...this.table, label: byId("table-label").value.trim(), drop: leftOut } : null;
    const { stream, learners, seed } = setup;
    byId("play").disabled = byId("step").disabled = true;
    try {
      this.complain(null);
      const frame = await post("sessions", { stream, learners, seed, ...(table ? { table } : {}) });
      // Only what was asked for last is shown; the rest is given back.
      if (turn !== this.turn) {
        giveBack(frame.id);
        return false;
      }
      if (setup.id) giveBack(setup.id);
      this.begin(frame);
      return true;
    } catch (problem) {
      this.complain(problem);
      if (this.frame) byId("play").disabled = byId("step").disabled = false;
    }
  }

  askForTable() {
    if (this.setup.id) giveBack(this.setup.id);
    this.frame = this.setup.id = null;
    this.pictures = [];
    for (const id of ["pictures", "key", "rounds", "voices", "round", "state"]) byId(id).replaceChildren();
    byId("score").tBodies[0].replaceChildren();
    this.chart.clear();
    this.complain(null);
    this.showButtons();
    this.say("Choose a table: a .csv file with a header. Its class is the column named label, class, target or y, or the last one.");
  }

  begin(frame) {
    this.setup.id = frame.id;
    remember(this.mode, this.setup);
    this.pictures = frame.learners.map((learner, at) => {
      const onDraw = this.mode === "draw" ? (place) => this.draw(place) : null;
      return new Picture(learner.title, { onLook: (place) => this.look(at, place), onDraw });
    });
    this.pictures.forEach((picture) => (picture.drawn = -1));
    byId("pictures").replaceChildren(...this.pictures.map((picture) => picture.figure));
    byId("voices").replaceChildren(make("p", { class: "hint" }, "Move over a picture, or focus it and use the arrow keys."));
    this.promises = [];
    this.show(frame);
    this.fetchPromises();
  }

  // What the theorems promise on these rows; to measure their margins takes a while.
  async fetchPromises() {
    const id = this.setup.id;
    const turn = (this.promisesTurn = (this.promisesTurn ?? 0) + 1);
    const found = await get(`sessions/${id}/promises`).catch(() => this.pictures.map(() => ({ mistakes: null, says: "not measured" })));
    if (turn !== this.promisesTurn || id !== this.setup.id || !this.frame) return;
    this.promises = found;
    this.show(this.frame);
  }

  chooseLearner(box) {
    const chosen = [...byId("learners").querySelectorAll("input:checked")].map((each) => each.value);
    if (chosen.length < 1 || chosen.length > this.catalogue.most_learners) {
      box.checked = !box.checked;
      this.complain(new Error(`One to ${this.catalogue.most_learners} learners can play.`));
      return;
    }
    this.setup.learners = chosen;
    this.again();
  }

  // Drawn points stay when something else is changed; whoever changes more before they are drawn again draws them.
  async again() {
    const points = (this.kept ??= this.mode === "draw" ? this.frame?.stream.points ?? [] : []);
    const wasPlaying = this.playing;
    const turn = this.turn + 1;
    const isShown = await this.restart();
    if (turn !== this.turn) return;
    const label = (code) => this.catalogue.drawn_labels[code];
    if (isShown && points.length) await this.send(points.map(([x, y, code]) => ({ x, y, label: label(code) })));
    if (turn !== this.turn) return;
    this.kept = null;
    this.showButtons();
    if (isShown && wasPlaying) this.play();
  }

  chooseStream() {
    this.setup.stream = byId("stream").value;
    byId("table").hidden = this.setup.stream !== "csv";
    this.restart();
  }

  async chooseFile() {
    const [file] = byId("file").files;
    if (!file) return;
    if (file.size > 2_000_000) return this.complain(new Error("The table is larger than 2 MB; `onebit play` takes it."));
    this.table = { name: file.name, text: await file.text() };
    this.restart();
  }

  chooseSeed() {
    const seed = Number(byId("seed").value);
    if (!Number.isInteger(seed) || seed < 0) return this.complain(new Error("The seed must be a whole number, 0 or more."));
    this.setup.seed = seed;
    this.again();
  }

  // Playing.

  toggle() {
    if (this.playing) this.stop();
    else this.play();
  }

  async play() {
    if (this.playing || !this.frame) return;
    if (this.frame.state === "finished") {
      this.playing = true;
      return this.again();
    }
    if (this.mode === "draw" && !this.frame.stream.points.length) {
      return this.complain(new Error("Draw a few points first: choose a colour and click into the square."));
    }
    this.complain(null);
    this.playing = true;
    this.showButtons();
    let due = 1;
    let before = performance.now();
    while (this.playing) {
      const speed = Number(byId("speed").value);
      const rounds = Math.min(Math.floor(due), this.catalogue.most_at_once);
      if (rounds >= 1) {
        if (!(await this.advance(rounds))) break;
        due = Math.min(due - rounds, 1);
      }
      await pause(Math.max(SHORTEST_TICK, Math.min(1000 / speed, 250)));
      const now = performance.now();
      due += (speed * (now - before)) / 1000;
      before = now;
    }
    this.stop();
  }

  stop() {
    const was = this.playing;
    this.playing = false;
    this.showButtons();
    if (was) this.announce(true);
  }

  async step() {
    if (this.playing) return this.stop();
    if (!this.frame || byId("step").disabled) return;
    if (this.mode === "draw" && !this.frame.stream.points.length) return;
    await this.advance(1);
    this.announce(true);
  }

  async advance(rounds) {
    const id = this.setup.id;
    const slow = setTimeout(() => this.showState("working (code is compiled, once) …"), 1500);
    try {
      const frame = await post(`sessions/${id}/advance`, { rounds });
      if (id !== this.setup.id) return false;
      this.show(frame);
      return frame.state === "ready";
    } catch (problem) {
      if (problem.status === 503) {
        await pause(300);
        return this.playing;
      }
      if (problem.status === 404) {
        this.complain(new Error("The session is over: it was left alone too long. Here is a new one."));
        await this.restart();
        return false;
      }
      this.complain(problem);
      return false;
    } finally {
      clearTimeout(slow);
    }
  }

  async draw([x, y]) {
    await this.send([{ x, y, label: this.label }]);
    if (!this.playing && byId("problem").hidden) await this.advance(1);
  }

  async send(points) {
    const id = this.setup.id;
    try {
      this.complain(null);
      const frame = await post(`sessions/${id}/points`, { points });
      if (id !== this.setup.id) return;
      this.show(frame);
      this.fetchPromises();
    } catch (problem) {
      this.complain(problem);
    }
  }

  // Showing.

  color(label) {
    return this.catalogue.palette[label % this.catalogue.palette.length];
  }

  say(text) {
    byId("sentence").textContent = text;
  }

  show(frame) {
    this.frame = frame;
    const { stream, learners } = frame;
    learners.forEach((learner, at) => (learner.promise = this.promises[at]));
    this.say(stream.says);
    const colors = stream.labels.map((_, label) => this.color(label));
    this.pictures.forEach((picture, at) => {
      picture.count.textContent = `${grouped(learners[at].mistakes)} ${learners[at].mistakes === 1 ? "mistake" : "mistakes"}`;
      picture.hint = this.mode === "draw" ? "Click to put a point here" : "Press Play";
      picture.show(frame, at, colors);
      if (picture.cross) this.look(at, picture.cross); // it may say something else by now
    });
    byId("round").textContent = `round ${grouped(frame.round)} of ${grouped(frame.most_rounds)}`;
    this.showState();
    this.showButtons();
    this.showScore();
    this.showRounds();
    this.showKey();
    this.chart.show(frame);
    this.announce(false);
    this.refreshRegions();
  }

  showState(working = "") {
    byId("state").textContent = working || (this.frame?.state === "finished" ? "the stream is over" : "");
    byId("state").classList.toggle("busy", Boolean(working));
  }

  showButtons() {
    byId("play").textContent = this.playing ? "❚❚ Pause" : "▶ Play";
    const isDrawing = Boolean(this.kept?.length); // points are on their way
    byId("play").disabled = !this.frame || isDrawing;
    byId("step").disabled = !this.frame || isDrawing || this.frame.state !== "ready";
  }

  showScore() {
    const { learners } = this.frame;
    byId("lately-head").textContent = `last ${learners[0].n_lately || 100}`;
    byId("score").tBodies[0].replaceChildren(
      ...learners.map((learner) =>
        make(
          "tr",
          {},
          make("th", { scope: "row" }, make("span", { class: "who" }, lineSwatch(lineColor(learner.color), learner.dashes), make("span", {}, ...breakable(learner.title)))),
          make("td", { class: "number" }, grouped(learner.mistakes)),
          make("td", { class: "number" }, grouped(learner.lately)),
          make("td", {}, learner.promise?.says ?? "measuring …"),
        ),
      ),
    );
  }

  showRounds() {
    const { rounds, stream, learners } = this.frame;
    const name = (label) => make("span", { class: "name" }, swatch(this.color(label)), ` ${stream.labels[label]}`);
    byId("rounds").replaceChildren(
      ...rounds
        .slice(-LISTED)
        .reverse()
        .map((each) => {
          const said = learners.flatMap((learner, at) => {
            const isRight = each.guesses[at] === each.truth;
            const verdict = make("b", { class: isRight ? "ok" : "no", title: isRight ? "right" : "wrong" }, isRight ? " ✓" : " ✗", make("span", { class: "unseen" }, isRight ? "right" : "wrong"));
            const who = learners.length > 1 ? `${at ? "; " : ""}${learner.title}: ` : "";
            return [who, name(each.guesses[at]), verdict];
          });
          return make("li", {}, `${grouped(each.round)}. `, ...said);
        }),
    );
    if (!rounds.length) byId("rounds").append(make("li", {}, "none yet"));
  }

  showKey() {
    const { stream } = this.frame;
    const labels = stream.labels.map((name, label) => make("span", {}, swatch(this.color(label)), name));
    const marks =
      this.mode === "draw"
        ? "Background: what it would say. ● a point you drew; ◆ a fact that BanditSVM keeps; × proved not to be that colour; the ring is the latest round."
        : "Background: what it would say. ● guessed right, so its label is known; × guessed wrong, so it is not that colour; ◆ and large × are the facts that BanditSVM keeps; the ring is the latest round.";
    byId("key").replaceChildren(...labels, make("span", { class: "wide" }, marks), make("span", { class: "wide" }, `Picture: ${stream.picture}.`));
  }

  announce(now) {
    if (!this.frame || (!now && (!this.playing || performance.now() - this.announced < QUIET))) return;
    this.announced = performance.now();
    const counts = this.frame.learners.map((each) => `${each.title} ${each.mistakes}`);
    byId("live").textContent = `Round ${this.frame.round}. Mistakes: ${counts.join(", ")}.`;
  }

  // Pictures follow as fast as they can be computed, one after the other, on a grid that suits the machine.
  async refreshRegions() {
    if (this.refreshing) return;
    this.refreshing = true;
    try {
      while (this.frame && this.setup.id) {
        const at = this.pictures.findIndex((picture) => picture.drawn !== this.frame.round);
        if (at < 0) break;
        // The one that has waited longest.
        const oldest = this.pictures.reduce((best, picture, i) => (picture.drawn < this.pictures[best].drawn ? i : best), 0);
        const picture = this.pictures[oldest];
        const start = performance.now();
        const id = this.setup.id;
        const regions = await get(`sessions/${id}/regions?learner=${oldest}&size=${GRIDS[this.grid]}`).catch((problem) => {
          if (id === this.setup.id) throw problem;
        });
        if (!regions || !this.pictures.includes(picture)) continue;
        picture.drawn = regions.round;
        picture.setRegions(regions, this.frame.stream.labels.map((_, label) => this.color(label)));
        const took = performance.now() - start;
        if (took > 300 && this.grid > 0) this.grid--;
        else if (took < 70 && this.grid < GRIDS.length - 1) this.grid++;
        await pause(Math.max(60, this.playing ? took : 0));
      }
    } catch (problem) {
      if (![404, 503].includes(problem.status)) this.complain(problem);
    } finally {
      this.refreshing = false;
    }
  }

  // Who says what about a place; only the latest place is asked for.
  async look(at, place) {
    this.wanted = place === null ? null : { at, place };
    if (this.asking || !this.wanted || !this.setup.id) return;
    this.asking = true;
    try {
      while (this.wanted) {
        const { at: learner, place: [x, y] } = this.wanted;
        this.wanted = null;
        const said = await get(`sessions/${this.setup.id}/opinions?learner=${learner}&x=${x}&y=${y}`);
        if (this.frame) this.showVoices(said, [x, y]);
        await pause(50);
      }
    } catch (problem) {
      if (![404, 503].includes(problem.status)) this.complain(problem);
    } finally {
      this.asking = false;
    }
  }

  showVoices(said, [x, y]) {
    const { labels } = this.frame.stream;
    const learner = this.frame.learners[said.learner];
    if (!learner) return;
    const name = (label) => make("span", { class: "name" }, swatch(this.color(label)), ` ${labels[label]}`);
    const bar = (share) => make("span", { class: "weight", width: `${Math.round(70 * share)}px`, "aria-hidden": "true" });
    const line = (first, label, share) =>
      make("tr", {}, ...(first === null ? [] : [make("th", { scope: "row" }, first)]), make("td", {}, name(label)), make("td", { class: "share" }, bar(share), `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`));
    const sentence = make("p", { class: "said" }, `At (${x.toFixed(2)}, ${y.toFixed(2)}) ${learner.title} says `, name(said.guess), said.voices.length > 1 ? ", by this vote:" : ", drawn with these propensities:");
    const rows =
      said.voices.length > 1
        ? said.voices.map((voice) => line(voice.kernel, voice.label, voice.weight))
        : said.chances.map((chance, label) => line(null, label, chance));
    const heads = said.voices.length > 1 ? ["kernel", "says", "counts"] : ["label", "propensity"];
    const head = make("thead", {}, make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text))));
    byId("voices").replaceChildren(sentence, make("table", {}, head, make("tbody", {}, ...rows)));
  }
}
