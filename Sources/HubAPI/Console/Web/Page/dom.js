// Elements and texts. Everything that came from outside becomes a text node or an attribute that holds no code.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [property, text] of Object.entries(value)) element.style.setProperty(property, text);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// Characters that are invisible, or turn the direction of what follows, are spelt out.
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
export function visible(text) {
  const shown = String(text).replace(HIDDEN, (character) => `\\u{${character.codePointAt(0).toString(16)}}`);
  return shown.trim() || shown === "" ? shown : `“${shown}”`;
}

// A name that somebody chose: isolated from the text around it, and cut by CSS where it is long.
export const id = (text, attributes) => h("bdi", { class: "id", title: visible(text), ...attributes }, visible(text));

export const link = (href, ...children) => h("a", { href }, ...children);

const counts = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
export const count = (number) => (number === null || number === undefined ? "–" : counts.format(number));
export const rate = (number) => (Number.isFinite(number) ? (number < 100 ? tenths : counts).format(number) : "–");

export function span(ms) {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return "–";
  const size = Math.abs(ms);
  if (size < 1000) return `${Math.round(ms)} ms`;
  if (size < 60_000) return `${tenths.format(ms / 1000)} s`;
  if (size < 3_600_000) return `${tenths.format(ms / 60_000)} min`;
  if (size < 172_800_000) return `${tenths.format(ms / 3_600_000)} h`;
  return `${counts.format(ms / 86_400_000)} days`;
}

// Receipts are kept in steps of 100 ms.
export const receipt = (ms) => (ms === 0 ? "< 100 ms" : span(ms));

const two = (number) => String(number).padStart(2, "0");
export function clock(iso, withMilliseconds = false) {
  if (!iso) return "–";
  const date = new Date(iso);
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return withMilliseconds ? `${time}.${String(date.getMilliseconds()).padStart(3, "0")}` : time;
}

export function day(iso) {
  if (!iso) return "–";
  const date = new Date(iso);
  const text = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${text} ${clock(iso)}`;
}

// The time of day for today's, and the day as well for all others.
export function moment(iso) {
  if (!iso) return "–";
  const date = new Date(iso);
  if (date.toDateString() === new Date().toDateString()) return clock(iso);
  return `${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock(iso).slice(0, 5)}`;
}

export const time = (iso, text = moment(iso)) => (iso ? h("time", { datetime: iso, title: day(iso) }, text) : "–");

export const ago = (iso) => span(Date.now() - new Date(iso).getTime());
