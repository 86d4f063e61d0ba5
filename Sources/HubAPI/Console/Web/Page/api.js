// The console's requests: the hub's own API behind the session's cookie.

export class APIError extends Error {
  constructor(status, message, retryAfter) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

const root = new URL("api/", document.baseURI);
// Told once whenever an answer says that nobody is signed in.
let signedOut = () => {};
export const onSignedOut = (told) => { signedOut = told; };

export async function call(method, path, { body, query, signal, headers, from = root, text = false } = {}) {
  const url = new URL(path, from);
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== null && value !== undefined && value !== "") url.searchParams.set(name, value);
  }
  let answer;
  try {
    answer = await fetch(url, {
      method, signal, credentials: "same-origin", redirect: "error",
      headers: { ...(method === "GET" ? {} : { "X-Tandem-Console": "1" }), ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new APIError(0, "The hub does not answer. Is it running?");
  }
  if (answer.ok && text) return answer.text();
  const value = await answer.json().catch(() => ({}));
  if (answer.ok) return value;
  const error = new APIError(answer.status, value.error ?? `The hub answered ${answer.status}.`, Number(answer.headers.get("Retry-After")));
  if (answer.status === 401 && from === root && path !== "session") signedOut(error);
  throw error;
}

export const path = (...parts) => parts.map(encodeURIComponent).join("/");

// The routes of one app.
export const appOf = (app) => ({
  id: app,
  get: (where, query, signal) => call("GET", `${path("apps", app)}/${where}`, { query, signal }),
  send: (method, where, body) => call(method, `${path("apps", app)}/${where}`, { body }),
});

// Told what went wrong while a screen that has shown something asks for more.
let trouble = () => {};
export const onTrouble = (told) => { trouble = told; };

// Asks again and again while the page is visible, and waits for each answer. A hub that takes long for it is asked less often. Only the
// first failure is the caller's; later ones are told, and it goes on.
export function poll(milliseconds, signal, ask) {
  let timer, hasShown = false;
  const next = async () => {
    clearTimeout(timer);
    if (signal.aborted || document.hidden) return;
    const began = performance.now();
    try {
      await ask();
      hasShown = true;
    } catch (error) {
      if (error.name !== "AbortError" && !hasShown) throw error;
      if (error.name !== "AbortError") trouble(error);
    }
    const spent = performance.now() - began;
    if (!signal.aborted) timer = setTimeout(next, Math.max(200, milliseconds - spent, 10 * spent));
  };
  document.addEventListener("visibilitychange", () => next().catch(trouble), { signal });
  signal.addEventListener("abort", () => clearTimeout(timer));
  return next();
}
