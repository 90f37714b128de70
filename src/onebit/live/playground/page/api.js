// Requests to the server that this page came from.

export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

async function request(method, path, body) {
  let response;
  try {
    response = await fetch(`/api/${path}`, {
      method,
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Problem(0, "The playground does not answer: was it stopped in its terminal?");
  }
  const answer = response.status === 204 ? null : await response.json().catch(() => null);
  if (!response.ok) throw new Problem(response.status, answer?.detail ?? `The answer was ${response.status}.`);
  return answer;
}

export const get = (path) => request("GET", path);
export const drop = (path) => request("DELETE", path);
export const post = (path, body) => request("POST", path, body);

// What a tab remembers when it is loaded again; other tabs have their own.
export function remember(key, value) {
  try {
    sessionStorage.setItem(`onebit.${key}`, JSON.stringify(value));
  } catch {
    // Without storage a reload starts anew.
  }
}

export function recall(key) {
  try {
    return JSON.parse(sessionStorage.getItem(`onebit.${key}`));
  } catch {
    return null;
  }
}
