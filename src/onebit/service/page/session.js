// Who asks: a token lives in this tab alone, and goes out as a header, never in an address and never as a cookie.

import { recall, remember } from "../parts/memory.js";
import { request } from "../parts/requests.js";

// Where the service is; a proxy may keep it under a path of its own.
export const root = new URL("..", import.meta.url);

const unanswered = "The service does not answer.";
const LONGEST_WAIT = 60_000; // milliseconds: a decider that replays keeps everybody waiting

const TOKEN = `token ${root.pathname}`; // another service may be under another path

export const hasToken = () => Boolean(recall(TOKEN));
export const setToken = (text) => remember(TOKEN, text || null);

async function ask(method, path, body) {
  const token = recall(TOKEN);
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  return request(method, new URL(`v1${path}`, root), { body, headers, unanswered, signal: AbortSignal.timeout(LONGEST_WAIT) });
}

export const get = (path) => ask("GET", path);
export const post = (path, body) => ask("POST", path, body);
export const put = (path, body) => ask("PUT", path, body);
