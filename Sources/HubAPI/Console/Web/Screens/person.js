// A person: why did she not get it?

import { ago, count, h, id, moment, receipt, time, visible } from "./dom.js";
import { act, ask, channelLink, chip, empty, fault, head, panel, say, table } from "./parts.js";
import { path } from "./api.js";
import { Grid } from "./grid.js";
import { shareLink } from "./events.js";
import { answer, trailPanels } from "./trail.js";

export const show = (view, context) => (context.screen === "person" ? one(view, context) : all(view, context));

async function all(view, context) {
  const field = h("input", { type: "search", "aria-label": "A user id or a name", placeholder: "A user id or a name", maxlength: 200 });
  const body = h("div", null, empty("Who?", "The beginning of a user id or a name finds people of all sessions, and who has a device."));
  const grid = new Grid("People", [
    { title: "Person", width: "minmax(90px, 1fr)", cell: (row) => h("a", { href: context.href("person", row.user) }, id(row.user)) },
    { title: "Name", cell: (row) => visible(row.name ?? "–") },
    { title: "E-mail", wide: true, cell: (row) => row.email ?? "–" },
    { title: "Session", wide: true, cell: (row) => (row.session ? id(row.session) : "–") },
    { title: "Role", width: "100px", wide: true, cell: (row) => row.role ?? "–" },
    { title: "Device", width: "72px", cell: (row) => (row.registered ? "yes" : "none") },
  ], { open: (row) => { location.hash = context.href("person", row.user); } });
  let asked = 0;
  field.addEventListener("input", async () => {
    const text = field.value.trim(), mine = ++asked;
    if (!text) return;
    try {
      const found = await context.app.get("search", { q: text, limit: 20 }, context.signal);
      if (mine !== asked) return;
      grid.set(found.people);
      body.replaceChildren(found.people.length ? grid.element : empty("Nobody", "No user id and no name begins with this."));
    } catch (error) {
      if (error.name !== "AbortError") body.replaceChildren(fault(error));
    }
  });
  view.append(head("People", "Choose a person to see what became of each event."), panel("Find", body, { extra: field }));
  field.focus();
}

async function one(view, context) {
  const [user, wanted] = context.rest;
  const here = h("div", { class: "stack" }), now = h("div", { class: "stack" });
  const list = h("div", null, h("p", { class: "empty" }, "Loading"));
  const share = act("Link for an hour", () => shareLink(context, { user }), { disabled: !context.may });
  const test = act("Send a test", () => sendTest(context, user), { disabled: !context.may });
  const live = h("a", { class: "button", href: context.href("live", "", user) }, "Live tail");
  const name = h("span");
  const events = panel("Events", list, { note: "newest first" });
  view.append(head(id(user), name, live, test, share), here, h("div", { class: "pair" }, events, now));
  const grid = eventsOf(context, user);
  const trail = pages(context, user);
  const [first, places] = await Promise.all([trail.next(), presence(context, user, now, name)]);
  const rows = first.rows;
  const draw = () => {
    grid.set(rows);
    list.replaceChildren(rows.length ? grid.element : empty("Nothing yet", "No event with a policy was for this person in the last 30 days."));
    if (!trail.isDone()) list.append(h("div", { class: "body" }, act("Older", async () => {
      rows.push(...(await trail.next()).rows);
      draw();
    })));
  };
  draw();
  await answerFor(context, user, wanted, rows, here, places);
}

// The pages of a person's trail. An empty one may be followed by others.
function pages(context, user) {
  let after = undefined, isDone = false;
  return {
    isDone: () => isDone,
    async next() {
      for (let tries = 0; tries < 20; tries++) {
        const page = await context.app.get(`${path("users", user)}/deliveries`, { after, limit: 50 }, context.signal);
        after = page.next;
        isDone = page.next === null;
        if (page.events.length || isDone) return { rows: page.events };
      }
      return { rows: [] };
    },
  };
}

async function answerFor(context, user, wanted, rows, here, places) {
  let found = wanted ? rows.find((row) => row.event.event_id === wanted) : rows[0];
  if (!found && wanted) {
    const page = await context.app.get(`${path("events", wanted)}/deliveries`, { user, limit: 1 }, context.signal);
    if (!page.deliveries.length) {
      return here.append(h("section", { class: "panel answer none" }, h("h2", null, "Did ", id(user), " get ", h("b", null, visible(page.event.name)), "?"),
        h("p", { class: "sentence" }, `${visible(user)} was not a recipient of this event.`),
        h("p", { class: "remedy" }, "When it was published, this person was not on the roster of the session, or not among those whom the definition names.")));
    }
    found = { event: page.event, delivery: page.deliveries[0] };
  }
  if (!found) return;
  const { event, delivery } = found;
  const failed = delivery.pushes?.some((push) => push.state === "failed");
  const actions = [
    h("a", { class: "button", href: context.href("event", event.event_id) }, "The whole event"),
    failed && act("Resend", () => resend(context, delivery), { disabled: !context.may, title: "Makes the failed pushes due again" }),
  ];
  const changes = places.find((place) => place.channel === event.channel)?.changes ?? [];
  here.replaceChildren(answer(user, event, delivery, { actions }), ...trailPanels(event, delivery, changes));
}

function eventsOf(context, user) {
  return new Grid("Events of this person", [
    { title: "Time", width: "92px", cell: (row) => time(row.event.committed_at) },
    { title: "Event", cell: (row) => h("a", { href: context.href("person", user, row.event.event_id) }, visible(row.event.name)) },
    { title: "State", width: "124px", cell: (row) => chip(row.delivery.state) },
    { title: "Receipt", width: "84px", number: true, wide: true, cell: (row) => receipt(row.delivery.receipt_ms) },
  ], { open: (row) => { location.hash = context.href("person", user, row.event.event_id); }, rows: 12 });
}

async function presence(context, user, now, name) {
  try {
    const found = await context.app.get(path("users", user), {}, context.signal);
    name.textContent = visible(found.participants[0]?.name ?? "");
    const seats = table(["Session", "App", "#Sockets"], found.participants.map((one) => [
      h("span", null, channelLink(context, one.channel ?? one.session), h("span", { class: "sub" }, [one.name, one.role, one.email].filter(Boolean).map(visible).join(" · "))),
      one.present ? chip(one.app_state ?? "unknown", one.app_state === "background" ? "wait" : "ok") : chip("not there", "none"), count(one.connections)]));
    const devices = table(["Device", "Push", ""], found.devices.map((device) => [
      h("span", null, id(device.device), h("span", { class: "sub", title: `registered ${moment(device.registered_at)}` }, `${[device.platform, device.app_version].filter(Boolean).map(visible).join(" ")} · told ${ago(device.refreshed_at)} ago`)),
      !device.notifications ? chip("not allowed", "bad") : device.has_token ? chip(device.provider, "ok") : chip("no token", "bad"),
      act("Forget", () => forget(context, user, device.device), { grave: true, disabled: !context.may, title: `Forget the device ${visible(device.device)}` })]));
    now.replaceChildren(
      panel(
        "Right now", found.participants.length ? seats : empty("In no session", "This person is on no roster."),
        { note: found.more ? "the newest 20 sessions" : null },
      ),
      panel("Devices", found.devices.length ? devices : empty("No device", "Without a device there is no push. Apps register them, or the backend does.")));
    return found.participants;
  } catch (error) {
    if (error.name !== "AbortError") now.replaceChildren(fault(error));
    return [];
  }
}

async function sendTest(context, user) {
  const values = await ask(`Send a test to ${visible(user)}`, h("div", { class: "form" },
    h("p", { class: "mute" }, "A notification to each device of this person. It counts like every direct send."),
    h("label", { class: "field" }, "Title", h("input", { name: "title", required: true, value: "Test", maxlength: 100 })),
    h("label", { class: "field" }, "Text", h("input", { name: "body", value: "Sent from the console.", maxlength: 200 }))), "Send");
  if (!values) return "";
  const sent = await context.app.send("POST", "notifications", { to: { users: [user] }, notification: { title: values.title, body: values.body }, data: { console_test: "1" } });
  return sent.devices ? `On its way to ${count(sent.devices)} device${sent.devices === 1 ? "" : "s"}.` : "Nothing was sent: there is no device that a push could reach.";
}

async function resend(context, row) {
  const done = await context.app.send("POST", "dead-letters/replay", { nids: [row.nid] });
  return done.replayed ? `${count(done.replayed)} push${done.replayed === 1 ? " is" : "es are"} due again.` : `Refused: ${done.refused?.[0]?.error ?? "no dead letter has this id"}.`;
}

async function forget(context, user, device) {
  if (!(await ask("Forget this device?", h("p", null, id(device), " gets no more pushes until its app registers it again."), "Forget it", true))) return "";
  await context.app.send("DELETE", `${path("users", user)}/${path("devices", device)}`);
  dispatchEvent(new HashChangeEvent("hashchange"));
  setTimeout(() => say("The device is forgotten."), 300);
  return "";
}
