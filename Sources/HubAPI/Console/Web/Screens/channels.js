// Channels: who is there, what was published, and what the definition says.

import { count, h, id, span, visible } from "./dom.js";
import { chip, empty, facts, head, panel } from "./parts.js";
import { path, poll } from "./api.js";
import { eventGrid } from "./events.js";
import { Grid } from "./grid.js";

export const show = (view, context) => (context.screen === "channel" ? one(view, context) : all(view, context));

async function all(view, context) {
  const filter = h("input", { type: "search", "aria-label": "Beginning of a channel's name", placeholder: "Begins with", maxlength: 200 });
  const note = h("span", { class: "mute" });
  const grid = new Grid("Occupied channels", [
    { title: "Channel", width: "minmax(120px, 2fr)", cell: (row) => h("a", { href: context.href("channel", row.name) }, id(row.name)) },
    { title: "Subscriptions", width: "100px", number: true, cell: (row) => count(row.subscription_count) },
  ], { open: (row) => { location.hash = context.href("channel", row.name); }, rows: 18 });
  const body = h("div");
  let channels = [];
  function draw() {
    const rows = channels.filter((row) => row.name.startsWith(filter.value.trim()));
    note.textContent = `${count(rows.length)} of ${count(channels.length)}`;
    grid.set(rows);
    body.replaceChildren(rows.length ? grid.element
      : channels.length ? empty("None", "No occupied channel begins with this.") : empty("No channel is occupied", "A channel stands here while somebody is subscribed to it."));
  }
  filter.addEventListener("input", draw);
  view.append(head("Channels", "Occupied now. A channel nobody is in can be opened by its name."), panel("Occupied", body, { note, extra: filter }));
  await poll(5000, context.signal, async () => {
    const found = await context.app.get("channels", { info: "subscription_count" }, context.signal);
    channels = Object.entries(found.channels).map(([name, info]) => ({ name, ...info })).sort((a, b) => b.subscription_count - a.subscription_count || (a.name < b.name ? -1 : 1));
    draw();
  });
}

// The definition whose pattern the name fits, and what stands for its placeholders.
export function match(pattern, name) {
  const names = [];
  const source = pattern.split(/(\{\w+\})/).map((part) => {
    if (!/^\{\w+\}$/.test(part)) return part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    names.push(part.slice(1, -1));
    return "(.+)";
  }).join("");
  const found = new RegExp(`^${source}$`).exec(name);
  return found && Object.fromEntries(names.map((key, index) => [key, found[index + 1]]));
}

async function definitionOf(context, channel) {
  const found = await context.app.get("search", { q: channel, limit: 20 }, context.signal);
  for (const one of found.definitions) {
    const values = match(one.channel, channel);
    if (values) return { ...one, values };
  }
  return null;
}

async function one(view, context) {
  const [channel] = context.rest;
  const top = h("div"), members = h("div"), events = h("div"), rules = h("div");
  const note = h("span", { class: "mute" });
  const button = context.may && h("a", { class: "button", href: context.href("try", channel) }, "Publish here");
  const live = h("a", { class: "button", href: context.href("live", channel) }, "Live tail");
  view.append(
    head(id(channel), null, live, button), top,
    panel("Members", members, { note }),
    h("div", { class: "pair lead" }, panel("Last events", events, { note: "read, awaited, pushed, failed" }), h("div", { class: "stack" }, rules)),
  );
  const people = memberGrid(context);
  const last = eventGrid(context, "Last events of this channel", { hasChannel: false, rows: 12 });
  const definition = await definitionOf(context, channel);
  rules.replaceChildren(policies(context, channel, definition));
  const session = definition?.values.session;
  const isPresence = channel.startsWith("presence-");
  await poll(4000, context.signal, async () => {
    const info = [isPresence && "user_count", "subscription_count"].filter(Boolean).join(",");
    const [now, found, recent] = await Promise.all([
      context.app.get(path("channels", channel), { info }, context.signal), whoIsThere(context, channel, definition, isPresence),
      context.app.get("events", { channel, limit: 25, info: "counts" }, context.signal).then((page) => page.events),
    ]);
    top.replaceChildren(facts([
      ["State", now.occupied ? chip("occupied", "ok") : chip("vacated", "none")], ["Subscriptions", count(now.subscription_count)],
      isPresence && ["Users", count(now.user_count)], ["Definition", definition?.definition ?? "none"], session && ["Session", id(session)],
    ]));
    people.set(found.rows);
    note.textContent = found.note;
    members.replaceChildren(found.rows.length ? people.element : empty("Nobody", found.empty));
    last.set(recent);
    events.replaceChildren(recent.length ? last.element : empty("No events yet", definition ? "No event with a policy was published here in the last 30 days." : "Without a definition events leave no trail."));
    
  });
}

async function whoIsThere(context, channel, definition, isPresence) {
  const session = definition?.values.session;
  if (session && !definition.values.user) {
    const found = await context.app.get(`${path("sessions", session)}/participants`, {}, context.signal).catch((error) => {
      if (error.status !== 404) throw error;
      return { participants: [] };
    });
    const rows = found.participants.sort((a, b) => Number(b.present) - Number(a.present));
    return { rows, note: `${count(rows.filter((row) => row.present).length)} of ${count(rows.length)} on the roster are there`, empty: "The session's roster is empty." };
  }
  const isKnown = isPresence || definition?.values.user;
  if (!isKnown) return { rows: [], note: "", empty: "Only presence channels and channels with a definition know who is there." };
  const found = await context.app.get(`${path("channels", channel)}/members`, { limit: 1000 }, context.signal);
  return { rows: found.members, note: found.more ? "the first 1,000" : count(found.members.length), empty: "Nobody is in this channel." };
}

// The sockets of one person: on which node and loop each is.
const place = (socket) => [socket.node && `node ${socket.node.slice(0, 8)}`, socket.loop !== null && `loop ${socket.loop}`].filter(Boolean).join(", ");
const places = (sockets = []) => [...new Set(sockets.map(place))].join("; ") || "–";
const titles = (sockets = []) => sockets.map((one) =>
  [place(one), one.device && visible(one.device), one.app_state, one.receipt_age_ms !== null && `receipt ${span(one.receipt_age_ms)} ago`].filter(Boolean).join(" · ")).join("\n");
function lastReceipt(sockets = []) {
  const ages = sockets.map((one) => one.receipt_age_ms).filter((age) => age !== null);
  return ages.length ? `${span(Math.min(...ages))} ago` : "–";
}

// Without a definition nothing is known of the app, and there is no push.
const reach = (row) => (row.present && row.app_state === null ? chip("socket", "ok") : reachOf(row));
const reachOf = (row) =>
  row.app_state === "foreground" ? chip("socket", "ok") : row.present ? chip("socket or push", "wait") : row.devices ? chip("push", "push") : row.devices === 0 ? chip("no way", "bad") : "–";

const memberGrid = (context) => new Grid("Members", [
  { title: "Person", width: "minmax(90px, 1.2fr)", cell: (row) => h("a", { href: context.href("person", row.user) }, id(row.user)) },
  { title: "Name", width: "minmax(60px, 1fr)", cell: (row) => visible(row.name ?? "–") },
  { title: "Role", width: "76px", wide: true, cell: (row) => row.role ?? "–" },
  { title: "App", width: "minmax(84px, 104px)", wide: true, cell: (row) => (row.present ? row.app_state ?? "there" : "not there") },
  { title: "On", width: "minmax(148px, 1fr)", wide: true, cell: (row) => h("span", { title: titles(row.sockets) }, places(row.sockets)) },
  { title: "Last receipt", width: "104px", wide: true, cell: (row) => lastReceipt(row.sockets) },
  { title: "Devices", width: "60px", number: true, wide: true, cell: (row) => count(row.devices) },
  { title: "Reached by", width: "minmax(92px, 132px)", cell: reach },
], { open: (row) => { location.hash = context.href("person", row.user); }, rows: 12 });

function policies(context, channel, definition) {
  if (!definition) return panel("Policies", empty("No definition", "Every event goes to the socket of whoever is subscribed, and nowhere else."));
  const lines = definition.events.map(({ name, policies }) => h("li", null,
    context.may ? h("a", { href: context.href("try", channel, name) }, visible(name)) : h("span", null, visible(name)),
    h("b", null, policies.join(", "))));
  return panel("Policies", h("div", { class: "body" }, h("ul", { class: "plain" }, lines)), { note: `${definition.definition}.yaml` });
}
