// Dead letters: pushes that failed, by cause, with a second chance.

import { count, h, id, time, visible } from "./dom.js";
import { act, ask, empty, head, panel, say, table } from "./parts.js";
import { path } from "./api.js";
import { Grid } from "./grid.js";
import { remedy } from "./story.js";

// The gateway's own word, without the details that differ from push to push.
const cause = (letter) => (letter.reason ?? "unknown").split(":")[0].trim();

export async function show(view, context) {
  let letters = [], isWhole = false, chosen = null;
  const groups = h("div"), body = h("div"), detail = h("div", { class: "stack" });
  const note = h("span", { class: "mute" }), buttons = h("div", { class: "row" });
  const grid = new Grid("Dead letters", [
    { title: "Failed", width: "92px", cell: (row) => time(row.failed_at) },
    { title: "Person", width: "minmax(80px, 1fr)", cell: (row) => h("a", { href: context.href("person", row.user, row.event_id) }, id(row.user)) },
    { title: "Device", wide: true, cell: (row) => id(row.device) },
    { title: "Gateway", width: "72px", wide: true, cell: (row) => row.provider },
    { title: "Cause", width: "minmax(90px, 1.6fr)", cell: (row) => h("span", { title: visible(row.reason ?? "") }, visible(row.reason ?? "")) },
    { title: "Attempts", width: "76px", number: true, wide: true, cell: (row) => count(row.attempts) },
  ], { open: (row) => look(row).catch((error) => say(error.message)), rows: 14 });

  async function load() {
    letters = [];
    isWhole = false;
    for (let after; !context.signal.aborted;) {
      const page = await context.app.get("dead-letters", { limit: 1000, after }, context.signal);
      letters.push(...page.dead_letters);
      isWhole = page.next === null || letters.length >= 20_000;
      draw();
      if (isWhole) return;
      after = page.next;
    }
  }

  function draw() {
    const by = Map.groupBy ? Map.groupBy(letters, cause) : letters.reduce((map, letter) => map.set(cause(letter), [...(map.get(cause(letter)) ?? []), letter]), new Map());
    if (chosen !== null && !by.has(chosen)) chosen = null;
    const rows = chosen === null ? letters : by.get(chosen);
    grid.set(rows);
    note.textContent = `${count(rows.length)}${isWhole ? "" : ", loading"}`;
    const isNone = !letters.length && isWhole;
    body.replaceChildren(rows.length ? grid.element : isNone ? empty("No dead letters", "Every push was taken, or is still being tried.") : h("p", { class: "empty" }, "Loading"));
    groups.replaceChildren(isNone ? "" : panel("By cause", table(["Cause", "#Pushes", "#People", ""], [...by].sort((a, b) => b[1].length - a[1].length).map(([name, list]) => [
      [h("button", { type: "button", "aria-pressed": String(chosen === name), onclick: () => { chosen = chosen === name ? null : name; draw(); } }, visible(name)), h("span", { class: "sub" }, remedy(name))],
      count(list.length), count(new Set(list.map((letter) => letter.user)).size),
      h("div", { class: "row keep" }, act("Send again", () => replay(name, list), { disabled: !context.may }), act("Dismiss", () => dismiss(name, list), { grave: true, disabled: !context.may }))]))));
    buttons.replaceChildren(chosen === null ? "" : h("span", { class: "chip none" }, "only ", visible(chosen)));
  }

  // Says first what would happen, and to whom.
  async function replay(name, list) {
    const people = new Set(list.map((letter) => letter.user)).size;
    const first = list.reduce((a, b) => (a.failed_at < b.failed_at ? a : b)), last = list.reduce((a, b) => (a.failed_at > b.failed_at ? a : b));
    const values = await ask("Send these again?", h("div", { class: "form" },
      h("p", null, h("b", null, `${count(list.length)} pushes to ${count(people)} people`), ` that failed with ${visible(name)}, between `, time(first.failed_at), " and ", time(last.failed_at), ". Each goes out under its own id, so nobody is told twice."),
      h("p", { class: "mute" }, "Expired ones stay where they are, unless you give them more time."),
      h("label", { class: "field" }, "More time for expired ones", h("select", { name: "ttl" }, [["", "none"], ["10m", "10 minutes"], ["1h", "1 hour"], ["1d", "1 day"]].map(([value, text]) => h("option", { value }, text))))), "Send again");
    if (!values) return "";
    let sent = 0;
    for (let more = true; more;) {
      const done = await context.app.send("POST", "dead-letters/replay", { reason: name, before: new Date(new Date(last.failed_at).getTime() + 1).toISOString(), ...(values.ttl ? { ttl: values.ttl } : {}) });
      sent += done.replayed;
      more = done.more && done.replayed > 0;
    }
    await load();
    return `${count(sent)} of ${count(list.length)} pushes are due again.`;
  }

  async function dismiss(name, list) {
    if (!(await ask("Dismiss these?", h("p", null, `${count(list.length)} pushes that failed with ${visible(name)} end as cancelled. Nobody is told.`), "Dismiss", true))) return "";
    let ended = 0;
    for (let more = true; more;) {
      const done = await context.app.send("DELETE", `dead-letters?${new URLSearchParams({ reason: name })}`);
      ended += done.dismissed;
      more = done.more && done.dismissed > 0;
    }
    await load();
    return `${count(ended)} pushes are dismissed.`;
  }

  async function look(row) {
    const where = path("dead-letters", row.nid, row.device);
    const letter = await context.app.get(where, {}, context.signal);
    detail.replaceChildren(panel(`Push to ${visible(row.user)}`, h("div", { class: "body stack" },
      letter.message ? h("pre", null, visible(JSON.stringify(letter.message, null, 2)).replaceAll("\\u{a}", "\n")) : h("p", { class: "mute" }, "Its text is not kept any more."),
      table(["#Attempt", "Time", "Answer"], (letter.answers ?? []).map((one) => [count(one.attempt), time(one.started_at), visible(one.answer)])),
      h("div", { class: "row" },
        act("Send this one again", async () => {
          const done = await context.app.send("POST", "dead-letters/replay", { nids: [row.nid] });
          detail.replaceChildren();
          await load();
          return done.replayed ? "It is due again." : `Refused: ${done.refused?.[0]?.error ?? "it is gone"}.`;
        }, { disabled: !context.may }),
        h("a", { class: "button", href: context.href("person", row.user, row.event_id) }, "Why did they not get it?")))));
    detail.firstChild.scrollIntoView({ block: "nearest" });
  }

  view.append(head("Dead letters and tokens", "Pushes that their gateway refused, or whose attempts ran out. They stay for 30 days."), groups, panel("Pushes", body, { note, extra: buttons }), detail);
  await load();
}
