// Where the page is, who looks, and looking again.

import { byId } from "../parts/elements.js";
import { Desk } from "./decider.js";
import { Listing } from "./listing.js";
import { get, hasToken, root, setToken } from "./session.js";

const EVERY = 2000; // milliseconds
const LONGEST = 15_000; // between tries while nobody answers
const [place, ...parts] = location.pathname.slice(root.pathname.length).split("/"); // names need no escapes
const name = place === "desk" ? parts.join("/") : null;

let view;
let timer;
let turn = 0;
let failures = 0;
let isKnown = false;
let isRefused = false;

function complain(problem) {
  if (problem?.status === 401) return askForToken(problem);
  if (problem?.status === 0) return away();
  byId("problem").hidden = problem === null;
  byId("problem").textContent = problem?.message ?? "";
}

function say(text) {
  byId("live").textContent = text;
}

function away() {
  failures++;
  byId("connection").className = "state away";
  byId("connection").textContent = "The service does not answer; what you see is old. Trying again …";
  byId("main").setAttribute("aria-busy", "true");
}

function back() {
  if (!failures) return;
  failures = 0;
  byId("connection").className = "state";
  byId("connection").textContent = "";
  byId("main").removeAttribute("aria-busy");
}

function askForToken(problem) {
  clearTimeout(timer);
  turn++;
  isKnown = false;
  const wasRefused = hasToken();
  setToken(null);
  for (const id of ["list", "desk", "problem"]) byId(id).hidden = true;
  byId("leave").hidden = true;
  byId("caller").textContent = "";
  byId("why-token").textContent = wasRefused ? "That token is not known here, or was removed." : "This service answers only those who show a token.";
  byId("token").hidden = false;
  byId("token-text").focus();
  if (problem) say(byId("why-token").textContent);
}

async function meet() {
  const me = await get("/me");
  isKnown = true;
  byId("caller").textContent = me.has_token ? `${me.name}: ${me.roles.join(", ")}` : "";
  byId("leave").hidden = !me.has_token;
  view.setRoles?.(me.roles);
}

// One request after the other, and none while nobody sees the page.
async function look() {
  clearTimeout(timer);
  const mine = ++turn;
  try {
    if (!isKnown) await meet();
    if (mine !== turn) return;
    await view.look();
    back();
    if (isRefused) complain(null);
    isRefused = false;
  } catch (problem) {
    if (mine !== turn) return;
    if (problem.status === 401) return askForToken(problem);
    if (!(problem.status >= 0)) throw problem;
    if (problem.status !== 0) {
      back();
      isRefused = true;
    } else isKnown = false; // whoever comes back may be another, with other tokens
    complain(problem);
  } finally {
    if (mine === turn && byId("token").hidden) plan();
  }
}

function plan() {
  clearTimeout(timer);
  if (!document.hidden) timer = setTimeout(look, failures ? Math.min(EVERY * failures, LONGEST) : EVERY);
}

function start() {
  const hooks = { complain, say, again: () => byId("token").hidden && look() };
  view = name === null ? new Listing() : new Desk(name, hooks);
  byId("here").textContent = name === null ? "" : `› ${name}`;
  byId("home").hidden = name === null;
  document.title = name === null ? "onebit desk" : `${name} · onebit desk`;
  byId("token").addEventListener("submit", (event) => {
    event.preventDefault();
    setToken(byId("token-text").value.trim());
    byId("token-text").value = "";
    byId("token").hidden = true;
    byId("main").focus({ preventScroll: true });
    look();
  });
  byId("leave").addEventListener("click", () => {
    setToken(null);
    askForToken(null);
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) clearTimeout(timer);
    else hooks.again();
  });
  look();
}

start();
