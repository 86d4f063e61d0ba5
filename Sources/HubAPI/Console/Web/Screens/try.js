// Try it: publish an event, see the same as a command, and see first who would get it how.

import { count, h, id, span, visible } from "./dom.js";
import { act, ask, chip, empty, facts, fault, head, panel } from "./parts.js";
import { Grid } from "./grid.js";

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function commands(app, body) {
  const text = JSON.stringify(body);
  return [
    `tandem publish ${quoted(body.channel)} ${quoted(body.name)} ${quoted(body.data)}`,
    `body=${quoted(text)}`, `curl -d "$body" "$(signed POST /apps/${app}/events "$body")"`, "# signed is a function of docs/http-api.md",
  ].join("\n");
}

export async function show(view, context) {
  const [channel = "", name = ""] = context.rest;
  const fields = {
    channel: h("input", { name: "channel", value: channel, required: true, maxlength: 200, placeholder: "presence-quiz-monday", spellcheck: "false" }),
    name: h("input", { name: "name", value: name, required: true, maxlength: 200, placeholder: "session-started", spellcheck: "false" }),
    data: h("textarea", { name: "data", spellcheck: "false" }, "{}"),
  };
  const code = h("pre", { "aria-label": "The same from a shell" }), result = h("div", { class: "stack" }), problem = h("p", { class: "mute" });
  const body = () => ({ name: fields.name.value, channel: fields.channel.value, data: fields.data.value });

  function check() {
    try {
      JSON.parse(fields.data.value);
      problem.textContent = "";
    } catch (error) {
      problem.textContent = `Not JSON, so it goes out as plain text: ${error.message}`;
    }
    code.textContent = commands(context.app.id, body());
  }
  const isFilled = () => fields.channel.reportValidity() && fields.name.reportValidity();
  const dry = act("Who would get it?", async () => {
    if (!isFilled()) return "";
    try {
      const found = await context.app.send("POST", "events", { ...body(), dry_run: true });
      result.replaceChildren(...Object.entries(found.channels).map(([where, plan]) => planned(context, where, plan)));
      return "Nothing was stored or sent.";
    } catch (error) {
      result.replaceChildren(fault(error));
      return "";
    }
  }, { disabled: !context.may });
  const publish = act("Publish", async () => {
    if (!isFilled()) return "";
    if (!(await ask("Publish this event?", h("p", null, h("b", null, visible(fields.name.value)), " to ", id(fields.channel.value), ". Whoever it is for is told."), "Publish"))) return "";
    try {
      const done = await context.app.send("POST", "events", body());
      const event = done.event_id;
      result.replaceChildren(h("p", { class: "note", role: "status" }, "Published. ",
        event ? h("a", { href: context.href("event", event) }, "See who gets it") : "It has no policy, so it went to whoever is subscribed, and leaves no trail."));
      return "Published.";
    } catch (error) {
      result.replaceChildren(fault(error));
      return "";
    }
  }, { disabled: !context.may });
  publish.classList.add("main");
  const form = h("form", { class: "form" },
    h("label", { class: "field" }, "Channel", fields.channel), h("label", { class: "field" }, "Event", fields.name), h("label", { class: "field" }, "Data", fields.data), problem,
    h("div", { class: "row" }, dry, publish, !context.may && h("span", { class: "mute" }, "Viewers may look and not act.")));
  form.addEventListener("input", check);
  form.addEventListener("submit", (event) => { event.preventDefault(); if (context.may) dry.click(); });
  view.append(head("Try it", "Publish an event, or see who would get it."),
    h("div", { class: "pair" }, panel("Event", h("div", { class: "body" }, form)), panel("The same from a shell", h("div", { class: "body" }, code))), result);
  check();
}

function planned(context, channel, plan) {
  const grid = new Grid("Who would get it", [
    { title: "Person", width: "minmax(80px, 1fr)", cell: (row) => h("a", { href: context.href("person", row.user) }, id(row.user)) },
    { title: "Surface", width: "minmax(84px, 110px)", cell: (row) => chip(row.surface, { socket: "ok", push: "push", none: "bad" }[row.surface] ?? "none") },
    {
      title: "Push after", width: "76px", number: true,
      cell: (row) => (row.wait_ms ? span(row.wait_ms) : row.surface === "push" ? "at once" : "–"),
    },
    { title: "Known", width: "96px", wide: true, cell: (row) => row.known ?? "–" },
    { title: "Devices", wide: true, cell: (row) => visible((row.devices ?? []).join(", ") || "–") },
    { title: "Why", width: "minmax(0, 2fr)", wide: true, cell: (row) => h("span", { title: visible(row.why ?? "") }, visible(row.why ?? "")) },
  ], { open: (row) => { location.hash = context.href("person", row.user); } });
  grid.set(plan.deliveries ?? []);
  return panel("Who would get it", [
    h("div", { class: "body" }, facts([["Channel", id(channel)], ["Definition", plan.definition ?? "none"], ["Policy", plan.policy ?? "none: the socket only"], ["Recipients", count(plan.recipients)],
      plan.expires_in_ms !== null && plan.expires_in_ms !== undefined && ["Expires after", span(plan.expires_in_ms)],
      ...Object.entries(plan.decisions ?? {}).map(([decision, number]) => [decision, count(number)])])),
    plan.deliveries?.length ? grid.element : empty("Nobody in particular", "Whoever is subscribed gets it over the socket."),
  ], { note: plan.more ? "the first 1,000" : "decided now, nothing stored or sent" });
}
