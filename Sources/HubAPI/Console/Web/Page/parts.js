// Parts of screens: panels, chips, bars, small tables, dialogs.

import { count, h, id, svg } from "./dom.js";
import { KINDS, STATES } from "./story.js";

export const panel = (title, body, { extra, note, level = "h2" } = {}) =>
  h("section", { class: "panel", "aria-label": title },
    h("header", null, h(level, null, title), note && h("p", null, note), extra && h("div", { class: "row" }, extra)), body);

export const empty = (title, text) => h("div", { class: "empty" }, h("b", null, title), text);
export const fault = (error) => h("p", { class: "fault", role: "alert" }, error.message);
export const head = (title, note, ...extra) =>
  h("div", { class: "head" }, h("div", null, h("h1", null, title), note && h("p", null, note)), extra.length ? h("div", { class: "row" }, extra) : null);

export const chip = (state, kind = STATES[state] ?? "none") => h("span", { class: `chip ${kind}` }, state ?? "–");

export const facts = (pairs) =>
  h("dl", { class: "facts" }, pairs.filter(Boolean).map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value ?? "–"))));

// Counts by state as counts by kind.
export function kinds(states) {
  const sums = { ok: 0, wait: 0, push: 0, bad: 0, none: 0 };
  for (const [state, number] of Object.entries(states ?? {})) sums[STATES[state] ?? "none"] += number;
  return sums;
}

export function bar(states) {
  const sums = kinds(states);
  const text = KINDS.filter(([kind]) => sums[kind]).map(([kind, word]) => `${count(sums[kind])} ${word}`).join(", ");
  return h("span", { class: "bar", role: "img", "aria-label": text || "nobody", title: text },
    KINDS.filter(([kind]) => sums[kind]).map(([kind]) => h("i", { class: kind, style: { flex: `${sums[kind]} 0 0` } })));
}

export const table = (titles, rows) =>
  h("div", { class: "scroll" }, h("table", null,
    titles.some((title) => title.replace("#", "")) && h("thead", null, h("tr", null, titles.map((title) => h("th", { scope: "col", class: title.startsWith("#") ? "number" : null }, title.replace("#", ""))))),
    h("tbody", null, rows.map((row) => h("tr", null, row.map((cell, column) =>
      h("td", { class: titles[column].startsWith("#") ? "number" : null }, cell ?? "–")))))));

// A line of the last values, oldest first.
export function spark(values, most = 0) {
  const top = Math.max(most, ...values.filter(Number.isFinite)) || 1;
  const points = values.map((value, index) => [(index * 100) / Math.max(1, values.length - 1), 36 - (33 * (Number.isFinite(value) ? value : 0)) / top]);
  const line = points.map(([x, y], index) => `${index ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
  return svg("svg", { viewBox: "0 0 100 38", preserveAspectRatio: "none", "aria-hidden": "true" },
    values.length > 1 && [svg("path", { class: "area", d: `${line}L100 38L0 38Z` }), svg("path", { class: "line", d: line })]);
}

// Asks before something is done. Resolves to the form's values, or null.
export function ask(title, body, action, grave = false) {
  return new Promise((resolve) => {
    const form = h("form", { method: "dialog" }, h("h2", null, title), body,
      h("div", { class: "row" }, h("button", { class: grave ? "grave" : "main", value: "yes" }, action), h("button", { value: "no", formnovalidate: true }, "Cancel")));
    const dialog = h("dialog", { "aria-label": title }, form);
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes" ? Object.fromEntries(new FormData(form)) : null);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

// A button that does something at the hub and says what came of it.
export function act(text, work, { grave = false, disabled = false, title } = {}) {
  const button = h("button", { type: "button", class: grave ? "grave" : null, disabled, title });
  button.textContent = text;
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      const told = await work();
      if (told) say(told);
    } catch (error) {
      say(error.message);
    } finally {
      button.disabled = disabled;
    }
  });
  return button;
}

let silence;
// Tells everybody, those who do not see the screen included.
export function say(text) {
  const status = document.getElementById("status");
  if (status) status.textContent = text;
  clearTimeout(silence);
  silence = setTimeout(() => status?.replaceChildren(), 8000);
}

export const person = (context, user, event) =>
  h("a", { href: context.href("person", user, event) }, id(user));
export const eventLink = (context, event, text) => h("a", { href: context.href("event", event) }, text);
export const channelLink = (context, channel) =>
  channel ? h("a", { href: context.href("channel", channel) }, id(channel)) : "–";
