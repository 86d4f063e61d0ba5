// The live tail: joins, leaves, events, decisions, receipts and pushes as they happen.

import { clock, count, h, id, span, visible } from "./dom.js";
import { channelLink, chip, empty, fault, head, panel } from "./parts.js";
import { Grid } from "./grid.js";

const KINDS = ["join", "leave", "event", "decision", "receipt", "push"];
const KEPT = 10_000;
const COLOUR = { join: "ok", leave: "none", event: "push", decision: "wait", receipt: "ok", push: "push" };

function words(item) {
  switch (item.kind) {
    case "join": case "leave": return item.socket ? `socket ${item.socket}` : "";
    case "event": {
      const isCounted = item.recipients !== null && item.recipients !== undefined;
      const recipients = isCounted && `${count(item.recipients)} recipient${item.recipients === 1 ? "" : "s"}`;
      return [item.name, item.policy, recipients].filter(Boolean).join(" · ");
    }
    case "decision": return `${item.decision} · ${item.known ?? "unknown"} · ${item.why}`;
    case "receipt": return span(item.receipt_ms);
    default: {
      const answer = item.answer !== item.state && item.answer;
      return [item.device, item.state, answer, item.attempt > 1 && `attempt ${item.attempt}`].filter(Boolean).join(" · ");
    }
  }
}

// Several nodes tell what they see through the one that was asked.
function whose(found) {
  if (!found.node) return "";
  const names = (found.missing ?? []).map((node) => node.slice(0, 8)).join(", ");
  return names ? `node ${found.node.slice(0, 8)}, nothing from ${names}` : "all nodes";
}

const toEvent = (context, item) => item.event_id && (item.user ? context.href("person", item.user, item.event_id) : context.href("event", item.event_id));

export async function show(view, context) {
  const [channel = "", user = ""] = context.rest;
  const chosen = new Set(KINDS);
  const fields = { channel: input("Channel", channel), user: input("User", user) };
  const pause = h("button", { type: "button", "aria-pressed": "false" }, "Pause");
  const state = h("span", { class: "mute" }), body = h("div"), warning = h("div");
  let rows = [], held = [], isPaused = false, gaps = 0, asking, cursor;

  const grid = new Grid("Live", [
    { title: "Time", width: "minmax(60px, 96px)", cell: (row) => clock(row.at, true) },
    { title: "Kind", width: "minmax(74px, 88px)", cell: (row) => chip(row.kind, row.kind === "push" && row.state !== "accepted" ? "bad" : COLOUR[row.kind] ?? "none") },
    { title: "Channel", width: "minmax(0, 1.2fr)", wide: true, cell: (row) => channelLink(context, row.channel) },
    { title: "Person", width: "minmax(40px, .8fr)", cell: (row) => (row.user ? h("a", { href: context.href("person", row.user) }, id(row.user)) : "–") },
    { title: "What", width: "minmax(40px, 2fr)", cell: (row) => {
      const to = toEvent(context, row), text = visible(words(row));
      return to ? h("a", { href: to, title: text }, text) : h("span", { title: text }, text);
    } },
  ], { open: (row) => { const to = toEvent(context, row); if (to) location.hash = to; }, rows: 20 });

  function draw() {
    grid.set(rows);
    if (rows.length && !grid.element.isConnected) body.replaceChildren(grid.element);
    if (!rows.length) body.replaceChildren(empty("Listening", "Nothing has happened yet that fits the filters."));
    pause.textContent = isPaused ? `Go on${held.length ? ` (${held.length})` : ""}` : "Pause";
  }
  pause.addEventListener("click", () => {
    isPaused = !isPaused;
    pause.setAttribute("aria-pressed", String(isPaused));
    if (!isPaused) take(held.splice(0));
    draw();
  });
  function take(items) {
    rows = [...items.reverse(), ...rows].slice(0, KEPT);
  }
  function restart() {
    asking?.abort();
    if (!context.signal.aborted) listen();
  }
  const kinds = h("div", { class: "row", role: "group", "aria-label": "Kinds" }, KINDS.map((kind) => h("button", {
    type: "button", "aria-pressed": "true", onclick: (event) => {
      if (!chosen.delete(kind)) chosen.add(kind);
      event.currentTarget.setAttribute("aria-pressed", String(chosen.has(kind)));
      restart();
    },
  }, kind)));
  for (const field of Object.values(fields)) field.addEventListener("change", () => { rows = []; restart(); draw(); });
  context.signal.addEventListener("abort", () => asking?.abort());
  document.addEventListener("visibilitychange", restart, { signal: context.signal });

  async function listen() {
    asking = new AbortController();
    const { signal } = asking;
    // With a cursor the hub puts other filters in the place of the ones before, and says so by a gap.
    let isNew = true;
    if (cursor) state.textContent = "listening";
    while (!signal.aborted && !document.hidden) {
      if (!chosen.size) { state.textContent = "no kind is chosen"; return; }
      try {
        const query = { after: cursor, channel: fields.channel.value.trim(), user: fields.user.value.trim(), kind: chosen.size < KINDS.length ? [...chosen].join(",") : "" };
        const found = await context.app.get("live", query, signal);
        cursor = found.cursor;
        if (found.gap && !isNew) gaps++;
        isNew = false;
        state.textContent = [whose(found), "listening", gaps && `${gaps} gaps`].filter(Boolean).join(" · ");
        const sample = () =>
          `A sample: ${count(found.sampled)} facts of the last moment were left out, because more than 200 came in a second.`;
        warning.replaceChildren(found.sampled ? h("p", { class: "note" }, chip(sample(), "wait")) : "");
        if (found.items.length) {
          if (isPaused) held = [...held, ...found.items].slice(-KEPT); else take(found.items);
          draw();
        }
      } catch (error) {
        if (error.name === "AbortError" || signal.aborted) return;
        if (error.status === 401) return;
        if (error.status && error.status !== 429 && error.status < 500) { warning.replaceChildren(fault(error)); return; }
        state.textContent = error.message;
        await new Promise((resolve) => setTimeout(resolve, 1000 * (error.retryAfter || 2)));
      }
    }
  }
  view.append(head("Live tail", "Nothing is collected while nobody looks."), panel("Filters", h("div", { class: "body row" }, fields.channel, fields.user, kinds, pause)), warning, panel("Facts", body, { note: state }));
  draw();
  listen();
}

const input = (name, value) => h("input", { "aria-label": `${name} exactly`, placeholder: `${name}, exactly`, value, maxlength: 200 });
