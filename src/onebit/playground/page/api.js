// What this page asks of the playground.

import { request } from "/parts/requests.js";

const unanswered = "The playground does not answer: was it stopped in its terminal?";
const ask = (method, path, body) => request(method, `/api/${path}`, { body, unanswered });

export const get = (path) => ask("GET", path);
export const drop = (path) => ask("DELETE", path);
export const post = (path, body) => ask("POST", path, body);
