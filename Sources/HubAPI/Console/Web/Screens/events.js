// Events, and one event: who was told, on which surface, when and why.

import { clock, count, day, h, id, receipt, time, visible } from "./dom.js";
import { act, bar, channelLink, chip, empty, facts, fault, head, kinds, panel, say } from "./parts.js";
import { path } from "./api.js";
import { Grid } from "./grid.js";
import { strip } from "./trail.js";
import { KINDS } from "./story.js";

export const show = (view, context) => (context.screen === "event" ? one(view, context) : all(view, context));

export function eventGrid(context, label, { hasChannel = true, rows = 18 } = {}) {
  return new Grid(label, [
    { title: "Time", width: "92px", cell: (row) => time(row.committed_at) },
    { title: "Event", width: "minmax(90px, 1.2fr)", cell: (row) => h("a", { href: context.href("event", row.event_id) }, visible(row.name)) },
    ...(hasChannel ? [{ title: "Channel", width: "minmax(0, 1.6fr)", wide: true, cell: (row) => channelLink(context, row.channel) }] : []),
    { title: "No.", width: "64px", number: true, wide: true, cell: (row) => count(row.sequence) },
    { title: "Policy", width: "96px", wide: true, cell: (row) => row.policy },
    { title: "Told", width: "72px", number: true, wide: true, cell: (row) => count(row.recipients) },
    { title: "Outcome", width: "minmax(70px, 150px)", cell: (row) => (row.counts ? bar(row.counts) : "") },
  ], { open: (row) => { location.hash = context.href("event", row.event_id); }, rows });
}

async function all(view, context) {
  const more = h("button", { type: "button", hidden: true }, "Older events");
  const grid = eventGrid(context, "Events");
  const body = h("div");
  let rows = [], next = null;
  async function load(after) {
    const page = await context.app.get("events", { limit: 25, info: "counts", after }, context.signal);
    rows = after ? [...rows, ...page.events] : page.events;
    next = page.next;
    more.hidden = !next;
    grid.set(rows);
    body.replaceChildren(rows.length ? grid.element : empty("No events yet", "Events for which a definition has a policy stand here for 30 days."));
  }
  more.addEventListener("click", () => load(next).catch((error) => say(error.message)));
  view.append(head("Events", "The newest first, over all channels. Events without a policy leave no trail."), panel("Newest", body, { extra: more }));
  await load();
}

const PAGE = 1000;
const OUTCOME = (row) =>
  row.pushes?.filter((push) => push.purpose !== "clear").map((push) => push.outcome ?? push.state).filter(Boolean).join(", ") || row.outcome;

async function one(view, context) {
  const [event] = context.rest;
  const where = `${path("events", event)}/deliveries`;
  const first = await context.app.get(where, { limit: PAGE, info: "summary" }, context.signal);
  const rows = [...first.deliveries], states = new Set();
  const grid = recipients(context, event);
  const shown = h("span", { class: "mute", "aria-live": "polite" });
  const chosen = () => (states.size ? rows.filter((row) => states.has(row.state)) : rows);
  const buttons = h("div", { class: "row" });
  const body = h("div");
  let isWhole = first.next === null;

  function draw() {
    const list = chosen();
    grid.set(list);
    shown.textContent = `${count(list.length)} of ${count(first.recipients)}${isWhole ? "" : ", loading"}`;
    body.replaceChildren(list.length ? grid.element
      : empty("Nobody", first.recipients ? "No recipient is in this state." : "This event had no recipients: nobody was on the roster, or in the channel."));
  }

  function filters(counts) {
    buttons.replaceChildren(...Object.entries(counts).sort((a, b) => b[1] - a[1]).map(([state, number]) => h("button", {
      type: "button", "aria-pressed": String(states.has(state)), onclick: (pressed) => {
        if (!states.delete(state)) states.add(state);
        pressed.currentTarget.setAttribute("aria-pressed", String(states.has(state)));
        draw();
      },
    }, chip(state), h("span", { class: "number" }, count(number)))));
  }

  const counts = first.summary?.states ?? tally(rows);
  filters(counts);
  const csv = act("CSV", () => download(event, chosen()), { title: "The rows below as a file" });
  const share = act("Link for an hour", () => shareLink(context, { event }), { disabled: !context.may, title: context.may ? null : "Viewers cannot make links" });
  const status = h("div");
  view.append(heading(context, first, share), status, overview(first, counts),
    panel("Recipients", [h("div", { class: "body" }, buttons), body], { note: shown, extra: csv }));
  draw();
  await rest(context, where, first.next, rows, () => { draw(); }).catch((error) => {
    if (error.name !== "AbortError") status.append(fault(error));
  });
  isWhole = true;
  if (!first.summary) filters(tally(rows));
  draw();
}

// The other pages, one after the other.
async function rest(context, where, next, rows, told) {
  for (let after = next; after !== null && after !== undefined && !context.signal.aborted;) {
    const page = await context.app.get(where, { limit: PAGE, after }, context.signal);
    rows.push(...page.deliveries);
    after = page.next;
    told();
  }
}

function tally(rows) {
  const counts = {};
  for (const row of rows) counts[row.state] = (counts[row.state] ?? 0) + 1;
  return counts;
}

function heading(context, trail, share) {
  const event = trail.event;
  return h("div", { class: "stack" }, head(visible(event.name), channelLink(context, event.channel), share),
    facts([
      ["Number", count(event.sequence)], ["Policy", event.policy], ["Committed", h("span", null, time(event.committed_at, day(event.committed_at)))],
      ["Expires", time(event.expires_at, event.expires_at ? day(event.expires_at) : "")], ["Recipients", count(trail.recipients)],
      ["State", trail.open ? chip("receipts are awaited", "wait") : chip("closed", "none")], ["Id", id(event.event_id)],
    ]));
}

function overview(trail, counts) {
  const sums = kinds(counts);
  return panel("The first minute", h("div", { class: "body stack" }, bar(counts),
    h("div", { class: "legend" }, KINDS.map(([kind, word]) => h("span", { class: `chip ${kind}` }, h("b", null, count(sums[kind])), word))),
    trail.summary && strip(trail.summary.strip)), { note: "receipts, escalations and what the gateways took" });
}

function recipients(context, event) {
  return new Grid("Recipients", [
    { title: "Person", width: "minmax(80px, 1.2fr)", cell: (row) => h("a", { href: context.href("person", row.user, event) }, id(row.user)) },
    { title: "State", width: "minmax(96px, 130px)", cell: (row) => chip(row.state) },
    { title: "Known", width: "92px", wide: true, cell: (row) => row.known ?? "–" },
    { title: "Decision", width: "124px", wide: true, cell: (row) => row.decision ?? "–" },
    { title: "Why", width: "minmax(0, 2fr)", wide: true, cell: (row) => h("span", { title: visible(row.why ?? "") }, visible(row.why ?? "")) },
    {
      title: "Receipt", width: "84px", number: true,
      cell: (row) => (row.receipt_ms === null || row.receipt_ms === undefined
        ? (row.confirmed_at ? clock(row.confirmed_at) : "–")
        : receipt(row.receipt_ms)),
    },
    { title: "Pushes", width: "56px", number: true, wide: true, cell: (row) => (row.pushes?.length ? count(row.pushes.length) : "–") },
    { title: "Outcome", width: "minmax(0, 1fr)", wide: true, cell: (row) => h("span", { title: visible(OUTCOME(row) ?? "") }, visible(OUTCOME(row) || "–")) },
  ], { open: (row) => { location.hash = context.href("person", row.user, event); } });
}

// A cell that begins like a formula would be one in a spreadsheet.
const cell = (value) => `"${String(value ?? "").replace(/^[=+\-@\t\r]/, "'$&").replaceAll('"', '""')}"`;

function download(event, rows) {
  const titles = ["user", "state", "known", "decision", "why", "receipt_ms", "pushes", "outcome"];
  const lines = rows.map((row) => [row.user, row.state, row.known, row.decision, row.why, row.receipt_ms, row.pushes?.length ?? 0, OUTCOME(row)].map(cell).join(","));
  const url = URL.createObjectURL(new Blob([[titles.join(","), ...lines].join("\r\n"), "\r\n"], { type: "text/csv" }));
  h("a", { href: url, download: `${event.replace(/[^\w-]/g, "")}.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
  return `${count(rows.length)} rows saved.`;
}

export async function shareLink(context, what) {
  const made = await context.app.send("POST", "links", what);
  const url = new URL(`#/link/${made.token}`, document.baseURI).href;
  const copied = await navigator.clipboard?.writeText(url).then(() => true, () => false);
  const field = h("input", { readonly: true, value: url, "aria-label": "The link" });
  const dialog = h("dialog", { "aria-label": "A link for an hour" }, h("form", { method: "dialog" }, h("h2", null, "A link for an hour"),
    h("p", null, `Whoever has it can read this trail until ${clock(made.expires_at).slice(0, 5)}, and nothing else.${copied ? " It is copied." : ""}`), field,
    h("div", { class: "row" }, h("button", { class: "main" }, "Close"))));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  field.select();
  return "";
}
