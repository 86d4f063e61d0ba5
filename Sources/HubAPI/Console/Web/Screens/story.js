// What became of an event for one person, told in words: made from the trail alone.

import { span, visible } from "./dom.js";

export const STATES = {
  confirmed: "ok", socket: "ok", awaited: "wait", pushing: "wait", pushed: "push", failed: "bad", expired: "bad", undeliverable: "bad",
  skipped_unconfigured: "bad", cancelled: "none", closed: "none", skipped: "none",
};
export const KINDS = [["ok", "read"], ["wait", "awaited"], ["push", "pushed"], ["bad", "failed"], ["none", "other"]];

const KNOWN = {
  live: "the app was on the screen", quiet: "the app had been quiet for a while", bg: "the app was in the background",
  bg_capable: "the app was in the background and read its socket", grace: "the connection had been cut a moment before",
  grace_server: "the hub had just started", absent: "there was no connection",
};
const OPEN = ["waiting", "due", "leased", "retry"];

const UNREACHED = {
  no_device: "no device is registered",
  no_token: "no device has a push token",
  permission_denied: "notifications are not allowed on any device",
  token_too_old: "no device has told its push token lately",
  expired: "the event had expired before it could be told",
  quiet_hours_dropped: "it fell into quiet hours, and this event is not told later",
  muted: "it was muted",
  capped: "the limit of alerts was reached",
  silent_budget: "the device had its share of silent pushes",
  superseded: "something newer of the same group took its place",
};

const CAUSES = [
  [/unregistered|not.?registered|baddevicetoken|410|404/i, "The app was removed there, or its token has changed: it comes back when the app registers again."],
  [/sender.?id|topic|bundle/i, "The token belongs to another project or app than the hub's credential."],
  [/auth|credential|provider.?token|403|401/i, "The gateway refuses the hub's credential: see tandem check --live."],
  [/quota|too.?many|429/i, "The gateway limits how much it takes."],
  [/payload|too.?large|413/i, "The notification is too long for the gateway."],
  [/50\d|unavailable|timeout|timed out|connect/i, "The gateway could not be reached or was down."],
];
// The decision says it, or the outcome of the wait, as "no device" or "token stale".
const unreached = (row) =>
  UNREACHED[row.decision] ?? UNREACHED[row.outcome?.replace(/^token .*/, "token_too_old").replace(" ", "_")] ?? visible(row.outcome ?? row.why);
export const remedy = (reason) => CAUSES.find(([pattern]) => pattern.test(reason ?? ""))?.[1] ?? "";

const quote = (text) => `“${visible(text)}”`;
const list = (words) => (words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`);
const notices = (row) => (row.pushes ?? []).filter((push) => push.purpose !== "clear");
const lastAnswer = (push) => push.outcome ?? push.answers?.at(-1)?.answer ?? push.why;

function pushed(row) {
  const accepted = notices(row).filter((push) => push.state === "accepted");
  const devices = list(accepted.map((push) => quote(push.device)));
  const first = Math.min(...accepted.map((push) => push.accepted_ms ?? Infinity));
  const when = Number.isFinite(first) ? ` ${span(first)} after it was published` : "";
  const tries = Math.max(...accepted.map((push) => push.attempts ?? 1));
  return `the gateway took the notification for ${devices || "a device"}${when}${tries > 1 ? `, at attempt ${tries}` : ""}`;
}

const offset = (event, iso) => new Date(iso).getTime() - new Date(event.committed_at).getTime();

// A second try moves the due time on.
const firstDue = (event, push) =>
  Math.min(push.due_ms ?? (push.due_at ? offset(event, push.due_at) : Infinity), push.answers?.length ? offset(event, push.answers[0].started_at) : Infinity);

// The reason for the push, as the hub saw it.
function before(event, row) {
  if (row.decision === "push") return KNOWN[row.known] ? `${KNOWN[row.known]}, so the push went out at once` : "the push went out at once";
  const due = Math.min(row.outcome_ms ?? Infinity, ...notices(row).map((push) => firstDue(event, push)));
  return `no receipt came${Number.isFinite(due) ? ` within ${span(due)}` : " in time"}`;
}

// One sentence, and perhaps a second one with a remedy.
export function story(user, event, row) {
  const who = visible(user);
  const failed = notices(row).filter((push) => push.state === "failed" || push.state === "expired");
  switch (row.state) {
    case "confirmed": {
      const when = row.receipt_ms === null || row.receipt_ms === undefined ? ""
        : row.receipt_ms === 0 ? " within 100 ms" : `, ${span(row.receipt_ms)} after it was published`;
      const also = notices(row).some((push) => push.state === "accepted") ? " A notification had gone out as well." : "";
      return [`${who} got it: a receipt came${when}.`, also.trim()];
    }
    case "socket": return [`${who} was told over the socket alone.`, "This event's policy asks for no receipt and no push."];
    case "pushed": return [`${who} got it as a notification: ${before(event, row)}, and ${pushed(row)}.`, ""];
    case "awaited": return [`${who} may still get it: the hub waits for a receipt.`, "Without one, a push goes out."];
    case "pushing": {
      const answer = notices(row).map((push) => push.answers?.at(-1)?.answer).find(Boolean);
      return [`${who} has not got it yet: ${before(event, row)}, and the push is on its way.`, answer ? `The last answer was ${quote(answer)}.` : ""];
    }
    case "failed": {
      const reasons = [...new Set(failed.map(lastAnswer).filter(Boolean))];
      const where = list([...new Set(failed.map((push) => quote(push.device)))]);
      return [`${who} did not get it: ${before(event, row)}, and the push to ${where || "the device"} failed with ${list(reasons.map(quote)) || "no reason"}.`,
        remedy(reasons[0])];
    }
    case "expired": return [`${who} did not get it: it expired before it could be told.`, failed.map(lastAnswer).filter(Boolean).map(quote).join(", ")];
    case "undeliverable": {
      const waited = row.decision === "await_receipt" ? `, ${before(event, row)}` : "";
      return [`${who} did not get it: ${KNOWN[row.known] ? `${KNOWN[row.known]}${waited}, and ` : ""}${unreached(row)}.`,
        row.outcome === "no device" ? "Register a device for this person, or let the app do it." : ""];
    }
    case "skipped_unconfigured":
      return [`${who} did not get it: ${before(event, row)}, and the hub has no credentials for that gateway.`, "Set up push.apns or push.fcm."];
    case "cancelled":
      return row.decision === "actor"
        ? [`${who} caused the event, and so was not told.`, ""] : [`${who} needed no push: it was cancelled.`, visible(row.why)];
    case "closed": return [`${who}: no receipt came before the event closed, and no push was due.`, visible(row.why)];
    default: return [`${who} was not told: ${UNREACHED[row.decision] ?? visible(row.why)}.`, ""];
  }
}

const CHANGES = {
  opened: ["connection opened", "ok"], closed: ["connection closed", "none"], lost: ["connection lost", "bad"],
  foreground: ["app on the screen", "ok"], background: ["app in the background", "wait"],
};
const BEFORE = 2, MINUTE = 60_000;

// Changes of the connection around an event: the last ones before it, and those until a minute after it, or until its last step.
function around(event, changes, last) {
  const found = changes.map((change) => ({ at: offset(event, change.at), change }));
  const after = found.filter(({ at }) => at >= 0 && at <= Math.max(MINUTE, last));
  return [...found.filter(({ at }) => at < 0).slice(-BEFORE), ...after].map(({ at, change }) => {
    const [what, kind] = CHANGES[change.kind] ?? [visible(change.kind), "none"];
    return { at, what, detail: change.device ? visible(change.device) : "", kind, lane: "connection" };
  });
}

// What happened, in order: milliseconds after the commit, what, a longer text, and a kind for the colour.
export function steps(event, row, changes = []) {
  const found = [{ at: 0, what: "published", detail: `${visible(event.name)} in ${visible(event.channel)}`, kind: "none", lane: "event" }];
  found.push({ at: 0, what: row.decision ?? "sent", detail: visible(row.why ?? ""), kind: "none", lane: "decision" });
  if (row.confirmed_at) {
    const at = row.receipt_ms ?? offset(event, row.confirmed_at);
    found.push({ at, what: "receipt", detail: "the app said that it read everything up to this event", kind: "ok", lane: "socket" });
  }
  if (row.decision === "await_receipt" && row.outcome)
    found.push({ at: row.outcome_ms ?? 0, what: "no push", detail: unreached(row), kind: "bad", lane: "event" });
  for (const push of row.pushes ?? []) {
    const name = push.purpose === "clear" ? `clear on ${visible(push.device)}` : `push to ${visible(push.device)}`;
    const due = firstDue(event, push);
    found.push({ at: due, what: `${name} due`, detail: visible(push.why ?? ""), kind: "wait", lane: name });
    for (const attempt of push.answers ?? []) {
      const good = /^(accepted|ok|200)/i.test(attempt.answer);
      found.push({
        at: offset(event, attempt.started_at), until: offset(event, attempt.ended_at), what: `${name}, attempt ${attempt.attempt}`,
        detail: visible(attempt.answer), kind: good ? "push" : "bad", lane: name,
      });
    }
    if (push.state !== "accepted" && !OPEN.includes(push.state) && push.outcome) {
      const last = push.answers?.at(-1);
      found.push({
        at: last ? offset(event, last.ended_at) : due, what: `${name}: ${push.state}`, detail: visible(push.outcome),
        kind: push.state === "failed" || push.state === "expired" ? "bad" : "none", lane: name,
      });
    }
  }
  found.push(...around(event, changes, Math.max(...found.map((step) => step.until ?? step.at))));
  return found.sort((a, b) => a.at - b.at);
}

// Milliseconds after the commit at which the person was connected, as pairs, from all changes that are remembered.
export function connected(event, changes, end) {
  const spans = [];
  let open = 0, since;
  for (const { at, kind } of changes) {
    const ms = offset(event, at);
    if (kind === "opened" && open++ === 0) since = ms;
    if ((kind === "closed" || kind === "lost") && open > 0 && --open === 0) spans.push([since, ms]);
  }
  if (open > 0) spans.push([since, end]);
  return spans.map(([from, to]) => [Math.max(0, from), Math.min(end, to)]).filter(([from, to]) => to > from);
}
