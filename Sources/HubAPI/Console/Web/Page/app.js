// The frame: sign-in, navigation, search, and the screen that the address asks for.

import { appOf, call, onSignedOut, onTrouble } from "./api.js";
import { clock, h } from "./dom.js";
import { fault, say } from "./parts.js";
import { search } from "./search.js";

const SCREENS = {
  now: ["Now", () => import("./now.js")], channels: ["Channels", () => import("./channels.js")], channel: ["Channel", () => import("./channels.js")],
  events: ["Events", () => import("./events.js")], event: ["Event", () => import("./events.js")],
  people: ["People", () => import("./person.js")], person: ["Person", () => import("./person.js")], live: ["Live tail", () => import("./live.js")],
  letters: ["Dead letters", () => import("./letters.js")], try: ["Try it", () => import("./try.js")], link: ["Shared trail", () => import("./link.js")],
};
const MENU = ["now", "events", "people", "channels", "live", "letters", "try"];
const PARENTS = { event: "events", person: "people", channel: "channels" };

let session = null, apps = [], app = null, running = null, main = null;

// `#/1/person/u1/EVENT`: the app, the screen, and what it is about. A shared trail has no app.
function route() {
  const [first, screen, ...rest] = location.hash.replace(/^#\/?/, "").split("/").map((part) => {
    try { return decodeURIComponent(part); } catch { return part; }
  });
  if (first === "link") return { screen: "link", rest: [screen, ...rest] };
  return { app: first, screen: Object.hasOwn(SCREENS, screen ?? "") && screen !== "link" ? screen : "now", rest };
}

const href = (screen, ...rest) =>
  `#/${[app, screen, ...rest].filter((part) => part !== undefined && part !== null).map(encodeURIComponent).join("/")}`;

function signIn(error) {
  running?.abort();
  session = null;
  document.title = "Sign in – Tandem console";
  const problem = h("p", { role: "alert", class: "fault", hidden: !error }, error ?? "");
  const password = h("input", { type: "password", name: "password", autocomplete: "current-password", required: true, id: "password" });
  const form = h("form", { class: "form" },
    h("label", { class: "field", for: "password" }, "Password", password), problem, h("button", { class: "main" }, "Sign in"));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      session = await call("POST", "session", { body: { password: password.value } });
      await start();
    } catch (reason) {
      problem.hidden = false;
      problem.textContent = reason.message;
      password.select();
    }
  });
  document.body.replaceChildren(h("main", { class: "sign" }, h("div", { class: "panel" }, brand("h1"), form)));
  password.focus();
}

const brand = (tag) => h(tag, { class: "brand" }, h("img", { src: "icon.svg", alt: "" }), "Tandem console");

function frame() {
  main = h("main", { id: "main", tabindex: -1 });
  const picker = apps.length > 1 && h("label", { class: "field" }, "App", h("select", {
    onchange: (event) => { location.hash = `#/${encodeURIComponent(event.target.value)}/now`; },
  }, apps.map((one) => h("option", { value: one.id, selected: one.id === app }, one.id))));
  document.body.replaceChildren(
    h("a", { class: "skip", href: "#main", onclick: (event) => { event.preventDefault(); main.focus(); } }, "Skip to the content"),
    h("div", { class: "frame" },
      h("header", { class: "side" }, h("a", { class: "brand", href: href("now") }, h("img", { src: "icon.svg", alt: "" }), "Tandem"),
        h("nav", { "aria-label": "Screens" }, h("ul", null, MENU.map((screen) => h("li", null, h("a", { href: href(screen), "data-screen": screen }, SCREENS[screen][0]))))),
        h("div", { class: "account" }, picker,
          h("span", { class: "mute" }, session.role, h("span", { class: "expiry" }, ` until ${clock(session.expires_at).slice(0, 5)}`)),
          h("button", { type: "button", onclick: signOut }, "Sign out"))),
      h("div", { class: "top", role: "search" }, search({ app: () => appOf(app), href })),
      main),
    h("p", { id: "status", class: "toast", role: "status", "aria-live": "polite" }));
}

async function signOut() {
  await call("DELETE", "session").catch(() => {});
  signIn();
}

async function show() {
  const wanted = route();
  if (wanted.screen !== "link") {
    if (!session) return start();
    if (!apps.some((one) => one.id === wanted.app)) {
      app = apps[0]?.id ?? null;
      return location.replace(href("now"));
    }
    if (wanted.app !== app || !main?.isConnected) {
      app = wanted.app;
      frame();
    }
  }
  running?.abort();
  running = new AbortController();
  const { signal } = running;
  if (wanted.screen === "link") {
    main = h("main", { id: "main", class: "alone", tabindex: -1 });
    document.body.replaceChildren(main, h("p", { id: "status", class: "toast", role: "status", "aria-live": "polite" }));
  }
  const [title, load] = SCREENS[wanted.screen];
  document.title = `${wanted.rest[0] && wanted.screen !== "link" ? `${wanted.rest[0].slice(0, 40)} – ` : ""}${title} – Tandem console`;
  for (const element of document.querySelectorAll("[data-screen]")) {
    const isHere = element.dataset.screen === (PARENTS[wanted.screen] ?? wanted.screen);
    if (isHere) element.setAttribute("aria-current", "page"); else element.removeAttribute("aria-current");
  }
  say("");
  const view = h("div", { class: "stack" });
  main.replaceChildren(view);
  scrollTo(0, 0);
  const context = { screen: wanted.screen, rest: wanted.rest, app: appOf(app), href, signal, may: session?.role === "operator" };
  try {
    await (await load()).show(view, context);
  } catch (error) {
    if (!signal.aborted && error.name !== "AbortError") view.append(fault(error));
  }
  if (!signal.aborted) main.dataset.ready = wanted.screen;
}

async function start() {
  try {
    const ticket = location.hash.match(/^#ticket=([\w-]+)$/)?.[1];
    if (ticket) {
      // The link works once: it goes out of the address and of the history first.
      history.replaceState(null, "", "#");
      session = await call("POST", "session", { body: { ticket } });
    }
    session ??= await call("GET", "session");
    apps = (await call("GET", "apps")).apps.sort((a, b) => a.id.localeCompare(b.id, "en", { numeric: true }));
  } catch (error) {
    return signIn(error.status === 401 && !location.hash.startsWith("#ticket") && error.message.startsWith("nobody") ? hint(error) : error.message);
  }
  app = null;
  return show();
}

// Nobody has tried anything yet: only a hub without a password has something to say.
const hint = (error) => (/the link/.test(error.message) ? error.message : null);

onTrouble((error) => say(error.message));
onSignedOut(() => signIn("Your session is over. Sign in again."));
addEventListener("hashchange", show);
addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, textarea, select, dialog")) return;
  const field = document.getElementById("search");
  if (field) {
    event.preventDefault();
    field.focus();
  }
});
if (route().screen === "link") show(); else start();
