// One event for one person, drawn: the answer, the timeline, and every step. Used by Person and by shared trails.

import { count, h, span, svg, time, visible } from "./dom.js";
import { chip, panel } from "./parts.js";
import { STATES, connected, steps, story } from "./story.js";

export function answer(user, event, row, { title, actions } = {}) {
  const [sentence, remedy] = story(user, event, row);
  return h("section", { class: `panel answer ${STATES[row.state] ?? "none"}`, "aria-label": "The answer" },
    h("h2", null, title ?? [`Did ${visible(user)} get `, h("b", null, visible(event.name)), ` of `, time(event.committed_at), "?"]),
    h("p", { class: "sentence" }, sentence), remedy && h("p", { class: "remedy" }, remedy), actions && h("div", { class: "row" }, actions));
}

const TICKS = [0, 1000, 3000, 10_000, 30_000, 120_000, 600_000, 3_600_000, 21_600_000, 86_400_000, 604_800_000];

// Seconds and hours of one event fit on one line by their logarithms.
export function timeline(event, row, changes = []) {
  const found = steps(event, row, changes);
  const end = Math.max(5000, ...found.map((step) => step.until ?? step.at)) * 1.15;
  const place = (ms) => (100 * Math.log1p(Math.max(0, ms) / 400)) / Math.log1p(end / 400);
  const percent = (ms) => `${place(ms).toFixed(2)}%`;
  const mark = (step, index) => h("i", { class: `mark ${step.kind}${index === 0 ? " first" : ""}`, title: `${span(step.at)}: ${step.what}`, style: { left: percent(step.at) } });
  const ticks = TICKS.filter((tick) => tick < end * 0.97);
  const lines = () => ticks.slice(1).map((tick) => h("i", { class: "grid-line", style: { left: percent(tick) } }));
  const receipt = found.find((step) => step.what === "receipt");
  const due = Math.min(row.outcome_ms ?? Infinity, ...found.filter((step) => step.kind === "wait").map((step) => step.at));
  const waits = row.decision === "await_receipt" ? Math.min(receipt?.at ?? Infinity, due, end) : 0;
  const connection = found.filter((step) => step.lane === "connection");
  const lanes = connection.length ? [["connection", [
    connected(event, changes, end).map(([from, to]) => h("i", { class: "span ok", style: { left: percent(from), width: `${(place(to) - place(from)).toFixed(2)}%` } })),
    connection.filter((step) => step.at >= 0).map((step) => mark(step, 1)),
  ]]] : [];
  lanes.push(["event and socket", [
    waits > 0 && h("i", { class: "span", style: { left: "0", width: percent(waits) }, title: `waiting for a receipt: ${span(waits)}` }),
    found.filter((step) => ["published", "receipt", "no push"].includes(step.what)).map((step) => mark(step, step.at === 0 ? 0 : 1)),
  ]]);
  for (const name of new Set(found.filter((step) => /^(push|clear)/.test(step.lane)).map((step) => step.lane))) {
    lanes.push([name, found.filter((step) => step.lane === name).map((step, index) => [
      step.until > step.at && h("i", { class: `span ${step.kind}`, style: { left: percent(step.at), width: `max(3px, ${(place(step.until) - place(step.at)).toFixed(2)}%)` } }),
      mark(step, step.at <= 0 && index === 0 ? 0 : 1)])]);
  }
  return h("div", { class: "lanes", role: "img", "aria-label": found.map((step) => `${span(step.at)} ${step.what}`).join("; ") },
    lanes.map(([name, marks]) => h("div", { class: "lane" }, h("span", { title: name }, name), h("div", { class: "track" }, lines(), marks))),
    h("div", { class: "lane" }, h("span"), h("div", { class: "axis" }, ticks.map((tick) => h("span", { style: { left: percent(tick) } }, tick ? span(tick) : "0")))));
}

// To hundredths of a second, because attempts follow each other closely.
const exact = (ms) => (Math.abs(ms) < 1 ? "0" : Math.abs(ms) < 1000 || ms >= 60_000 ? span(ms) : `${(ms / 1000).toFixed(2)} s`);

const WORDS = {
  await_receipt: "the hub waits for a receipt first", push: "pushed to at once", socket_only: "told over the socket only", no_device: "no device",
  no_token: "no push token", permission_denied: "notifications not allowed", seen: "on the screen, and no device to push to", actor: "caused it",
};

export const stepList = (event, row, changes) =>
  h("ol", { class: "steps" }, steps(event, row, changes).map((step) =>
    h("li", null, h("span", { class: "at" }, exact(step.at)), h("span", { class: `dot ${step.kind}` }),
      h("p", null, h("b", null, step.lane === "decision" ? WORDS[step.what] ?? `decided: ${step.what}` : step.what), step.detail && h("span", { class: "mute" }, ` – ${step.detail}`)))));

// Connections are known on the person's screen alone.
const memory = (changes) =>
  (changes?.length ? " · connections of the last hour, from memory" : changes ? " · no connection of the last hour is in memory" : "");

export const trailPanels = (event, row, changes) => [
  panel("Timeline", h("div", { class: "body" }, timeline(event, row, changes)), { note: `from the commit on, logarithmic${memory(changes)}` }),
  panel("Step by step", h("div", { class: "body" }, stepList(event, row, changes)), { note: h("span", null, chip(row.state), row.known ? ` · known then: ${row.known}` : "") }),
];

// Confirmed, escalated and accepted over the first minute, from pairs of a bin and its count.
export function strip(found) {
  const lanes = [["confirmed", "ok"], ["escalated", "wait"], ["accepted", "push"]];
  const top = Math.max(1, ...lanes.flatMap(([name]) => (found?.[name] ?? []).map(([, number]) => number)));
  const step = (found?.step_ms ?? 500) / 1000;
  return h("div", { class: "strip" },
    lanes.map(([name, kind]) => {
      const bins = found?.[name] ?? [], sum = bins.reduce((all, [, number]) => all + number, 0);
      return h("div", { class: "lane" }, h("span", null, h("b", { class: "number" }, count(sum)), ` ${name}`),
        h("div", { class: kind }, bars(bins, top, step, `${count(sum)} ${name}`)));
    }),
    h("div", { class: "lane" }, h("span"), h("div", { class: "axis" },
      [0, 10, 20, 30, 40, 50, 60].map((second) => h("span", { class: second === 60 ? "last" : second % 20 ? "odd" : null, style: { left: `${(second / 60.5) * 100}%` } }, second === 60 ? "60 s +" : second ? `${second} s` : "0")))));
}

// Square roots, so that ten people beside ten thousand are still seen.
const bars = (bins, top, step, text) =>
  svg("svg", { viewBox: "0 0 121 30", preserveAspectRatio: "none", role: "img", "aria-label": text }, bins.map(([bin, number]) => {
    const height = Math.max(1.5, 28 * Math.sqrt(number / top));
    return svg("rect", { x: bin + 0.1, y: 30 - height, width: 0.8, height }, svg("title", null, `${bin * step} s: ${count(number)}`));
  }));
