// A shared trail: one event or one person, for an hour, without signing in.

import { count, h, id, time, visible } from "./dom.js";
import { chip, empty, facts, fault, head, kinds, bar, panel } from "./parts.js";
import { call } from "./api.js";
import { KINDS } from "./story.js";
import { Grid } from "./grid.js";
import { answer, strip, trailPanels } from "./trail.js";

export async function show(view, context) {
  const [token] = context.rest;
  const from = new URL("/links/", document.baseURI);
  async function ask(query, tries = 5) {
    try {
      return await call("GET", "trail", { from, query, signal: context.signal, headers: { Authorization: `Bearer ${token}` } });
    } catch (error) {
      if (error.status !== 429 || tries === 1) throw error;
      await new Promise((resolve) => setTimeout(resolve, 1000 * (error.retryAfter || 1)));
      return ask(query, tries - 1);
    }
  }
  let found;
  try {
    found = await ask({ limit: 100, info: "summary" });
  } catch (error) {
    view.append(h("h1", null, "Shared trail"), fault(error.status === 401 ? { message: "This link has expired, or is not whole. Ask for a new one." } : error));
    return;
  }
  const base = { ...context, may: false };
  if (found.user !== undefined) person(view, found); else await event(view, base, found, ask);
  view.append(h("p", { class: "mute" }, "Read only. This page shows one trail, and opens nothing else."));
}

function person(view, found) {
  const here = h("div", { class: "stack" });
  const pick = (row) => here.replaceChildren(answer(found.user, row.event, row.delivery), ...trailPanels(row.event, row.delivery));
  const grid = new Grid("Events of this person", [
    { title: "Time", width: "92px", cell: (row) => time(row.event.committed_at) },
    { title: "Event", cell: (row) => visible(row.event.name) },
    { title: "Channel", wide: true, cell: (row) => id(row.event.channel) },
    { title: "State", width: "minmax(100px, 124px)", cell: (row) => chip(row.delivery.state) },
  ], { open: pick, rows: 10 });
  grid.set(found.events);
  view.append(head(id(found.user), "What became of each event."), here, panel("Events", found.events.length ? grid.element : empty("Nothing yet", "No event was for this person.")));
  if (found.events.length) pick(found.events[0]);
}

async function event(view, context, found, ask) {
  const here = h("div", { class: "stack" });
  const rows = [...found.deliveries];
  const grid = new Grid("Recipients", [
    { title: "Person", width: "minmax(80px, 1fr)", cell: (row) => id(row.user) },
    { title: "State", width: "minmax(100px, 130px)", cell: (row) => chip(row.state) },
    { title: "Why", width: "minmax(0, 2fr)", wide: true, cell: (row) => visible(row.why ?? "") },
  ], { open: (row) => here.replaceChildren(answer(row.user, found.event, row), ...trailPanels(found.event, row)) });
  grid.set(rows);
  const counts = found.summary?.states ?? {}, sums = kinds(counts);
  view.append(head(visible(found.event.name), id(found.event.channel)),
    facts([["Policy", found.event.policy], ["Committed", time(found.event.committed_at)], ["Recipients", count(found.recipients)]]),
    panel("The first minute", h("div", { class: "body stack" }, bar(counts), h("div", { class: "legend" }, KINDS.map(([kind, word]) => h("span", { class: `chip ${kind}` }, h("b", null, count(sums[kind])), word))), found.summary && strip(found.summary.strip))),
    panel("Recipients", rows.length ? grid.element : empty("Nobody", "This event had no recipients."), { note: "choose one for the whole story" }), here);
  for (let after = found.next; after !== null && after !== undefined;) {
    const page = await ask({ limit: 1000, after });
    rows.push(...page.deliveries);
    after = page.next;
    grid.set(rows);
  }
}
