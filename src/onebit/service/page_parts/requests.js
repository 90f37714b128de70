// Requests to the server that this page came from.

class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status; // 0 where nobody answered
  }
}

export async function request(method, path, { body, headers = {}, unanswered, signal } = {}) {
  const sent = body === undefined ? headers : { ...headers, "Content-Type": "application/json" };
  let response;
  try {
    response = await fetch(path, { method, headers: sent, body: body === undefined ? undefined : JSON.stringify(body), signal });
  } catch {
    throw new Problem(0, unanswered);
  }
  const answer = response.status === 204 ? null : await response.json().catch(() => null);
  if (!response.ok) throw new Problem(response.status, answer?.remedy?.problem ?? answer?.detail ?? `The answer was ${response.status}.`);
  return answer;
}
