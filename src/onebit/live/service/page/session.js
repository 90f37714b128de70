// Who asks: a token lives in this tab alone, and goes out as a header, never in an address and never as a cookie.

import { recall, remember } from "/parts/memory.js";
import { request } from "/parts/requests.js";

const unanswered = "The service does not answer.";
const LONGEST_WAIT = 60_000; // milliseconds: a decider that replays keeps everybody waiting

export const hasToken = () => Boolean(recall("token"));
export const setToken = (text) => remember("token", text || null);

async function ask(method, path, body) {
  const token = recall("token");
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  return request(method, `/v1${path}`, { body, headers, unanswered, signal: AbortSignal.timeout(LONGEST_WAIT) });
}

export const get = (path) => ask("GET", path);
export const post = (path, body) => ask("POST", path, body);
