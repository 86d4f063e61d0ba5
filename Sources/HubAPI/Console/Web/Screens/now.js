// Now: what the hub does, and what needs a hand.

import { ago, count, h, id, rate, span, visible } from "./dom.js";
import { chip, empty, fault, head, panel, spark, table } from "./parts.js";
import { call, poll } from "./api.js";
import { parse, quantile } from "./metrics.js";

const EVERY = 2000, KEPT = 31;
const accepted = (labels) => labels.outcome === "accepted";
const lane = (labels) => JSON.stringify([labels.provider, labels.environment, labels.credential, labels.lane, labels.app, labels.name]);

// Two environments of one gateway are two lanes.
const laneName = (labels) => visible(labels.lane ?? labels.provider);
// The gateway, and the end of the credential's name where several have one.
function laneCell(labels, all) {
  const whole = laneName(labels), [gateway, ...rest] = whole.split(" ");
  const isOnly = all.filter((one) => laneName(one).split(" ")[0] === gateway).length === 1;
  return h("span", { class: "keep", title: whole }, isOnly || !rest.length ? gateway : `${gateway} ${rest.at(-1)}`);
}

const TILES = [
  ["Connections", (now) => now.sum("tandem_connections"), count],
  ["Publishes per second", (now, per) => per("tandem_publishes_total"), rate],
  ["Deliveries per second", (now, per) => per("tandem_deliveries_total"), rate],
  ["Publish to write, p99", (now, per, before) => ms(quantile(0.99, "tandem_publish_write_seconds", now, before)), (value) => (value === null ? "–" : span(value))],
  ["Pushes accepted, per s", (now, per) => per("tandem_pushes_total", accepted), rate],
  ["Pushes not accepted, per s", (now, per) => per("tandem_pushes_total", (labels) => !accepted(labels)), rate, true],
  ["Receipts awaited", (now) => now.sum("tandem_awaited_receipts"), count],
  ["Pushes waiting", (now) => now.sum("tandem_outbox_waiting") + now.sum("tandem_outbox_parked"), count],
];
const ms = (seconds) => (seconds === null ? null : seconds * 1000);

export async function show(view, context) {
  const alarms = h("div"), tiles = h("div", { class: "tiles" }), rest = h("div", { class: "pair" }), state = h("p");
  view.append(head("Now", state), alarms, tiles, rest);
  const past = [], lines = TILES.map(() => []);
  await poll(EVERY, context.signal, async () => {
    try {
      const [text, ready, cluster, letters] = await Promise.all([
        call("GET", "metrics", { text: true, signal: context.signal }),
        call("GET", "ready", { signal: context.signal }).catch((error) => ({ error: error.message, status: error.status })),
        call("GET", "cluster", { signal: context.signal }),
        context.app.get("dead-letters", { limit: 100 }, context.signal),
      ]);
      const reading = { at: performance.now(), numbers: parse(text) };
      // A rate is of the same nodes at its beginning and its end.
      if (past.length && String(past.at(-1).numbers.nodes) !== String(reading.numbers.nodes)) past.length = 0;
      past.push(reading);
      while (past.length > KEPT) past.shift();
      draw(reading, ready, cluster, letters);
    } catch (error) {
      if (error.name !== "AbortError") alarms.replaceChildren(fault(error));
    }
  });

  function draw(reading, ready, cluster, letters) {
    const { numbers } = reading, before = past.at(-2);
    const seconds = before ? (reading.at - before.at) / 1000 : 0;
    const per = (name, holds) => (before ? Math.max(0, numbers.sum(name, holds) - before.numbers.sum(name, holds)) / seconds : NaN);
    tiles.replaceChildren(...TILES.map(([title, read, text, isBad], index) => {
      const value = read(numbers, per, past[0] === reading ? null : past[0].numbers);
      if (before || !Number.isNaN(value)) lines[index].push(value ?? 0);
      while (lines[index].length > KEPT) lines[index].shift();
      return h("div", { class: `panel tile${isBad && value > 0 ? " bad" : ""}` }, h("span", null, title), h("b", null, text(value)), spark(lines[index], 1));
    }));
    const wrong = problems(numbers, past[0].numbers, ready, cluster, letters, context);
    alarms.replaceChildren(wrong.length
      ? h("ul", { class: "alarms", "aria-label": "Needs attention" }, wrong.map(([text, to, word, kind]) => h("li", null, h("span", { class: `chip ${kind ?? "bad"}` }, text), to && h("a", { href: to }, word))))
      : h("p", { class: "note" }, h("span", { class: "chip ok" }, "Nothing needs attention.")));
    const here = cluster.nodes.find((node) => node.this);
    const [told, known] = [numbers.nodes.length, cluster.nodes.length];
    const whose = known < 2 ? "" : told < known ? `: numbers of ${told} of ${known} nodes` : `: numbers of all ${known} nodes`;
    state.textContent = here ? `Version ${here.version}, up ${ago(here.started_at)}, at ${here.address}${whose}` : "";
    rest.replaceChildren(...[lanes(numbers, per), loops(numbers, past[0].numbers, past), store(numbers, past[0].numbers, per), webhooks(numbers), nodes(cluster)].filter(Boolean));
  }
}

// Each is one sentence and one place to go.
function problems(now, first, ready, cluster, letters, context) {
  const found = [];
  const grew = (name, holds) => now.sum(name, holds) - first.sum(name, holds);
  if (ready.error) found.push([ready.error, null]);
  if (grew("tandem_store_failures_total") > 0) found.push([`The store failed to commit ${count(grew("tandem_store_failures_total"))} times in the last minute.`, null]);
  if (now.sum("tandem_postgres_failing") > 0) found.push(["PostgreSQL takes no writes.", null]);
  const isHere = (labels) => !labels.node;
  if (now.has("tandem_backplane_connected") && !now.sum("tandem_backplane_connected", isHere)) {
    found.push(["This node is cut off from the others.", null]);
  }
  if (!cluster.complete) found.push(["Redis does not answer: other nodes may be missing here.", null]);
  if (cluster.definitions_differ) found.push(["The nodes have different channel definitions: reload them.", null]);
  if (cluster.partitions_held < cluster.partitions) found.push([`${cluster.partitions - cluster.partitions_held} of ${cluster.partitions} partitions have no owner.`, null, "", "wait"]);
  for (const { labels, value } of now.all("tandem_push_lane_state")) {
    if (value && labels.state !== "open") found.push([`The lane to ${laneName(labels)} is in the state ${labels.state}.`, context.href("letters"), "Dead letters"]);
  }
  const oldest = now.max("tandem_outbox_oldest_seconds");
  if (oldest > 30) found.push([`A push has been due for ${span(oldest * 1000)}.`, context.href("letters"), "Dead letters"]);
  if (now.sum("tandem_outbox_overflowed") > 0) found.push(["The store holds more due pushes than fit into memory.", null]);
  if (grew("tandem_slow_consumer_closes_total") > 0) found.push([`${count(grew("tandem_slow_consumer_closes_total"))} connections did not read what was sent to them, and were closed.`, context.href("live"), "Live tail", "wait"]);
  const number = letters.dead_letters.length;
  if (number) found.push([`${number}${letters.next ? " or more" : ""} dead letter${number === 1 && !letters.next ? "" : "s"} wait${number === 1 && !letters.next ? "s" : ""} for a decision.`, context.href("letters"), "Look at them", "wait"]);
  return found;
}

function lanes(now, per) {
  const by = new Map();
  const read = (name, member) => {
    for (const { labels, value } of now.all(name)) {
      const key = lane(labels);
      const known = by.get(key) ?? {};
      // A lane of several nodes is as well as its worst.
      const isState = member === "state", state = value && (known.state ?? "open") === "open" ? labels.state : known.state;
      by.set(key, { ...known, labels, ...(isState ? { state } : { [member]: (known[member] ?? 0) + value }) });
    }
  };
  read("tandem_push_lane_state", "state");
  read("tandem_push_lane_in_flight", "flight");
  read("tandem_push_lane_queued", "queued");
  read("tandem_push_lane_rate", "rate");
  if (!by.size) return panel("Push lanes", empty("No lane", "No push gateway is configured: notifications are logged and counted."));
  const oldest = now.max("tandem_outbox_oldest_seconds");
  return panel("Push lanes", table(["Lane", "State", "#In flight", "#Queued", "#Most per second"], [...by.values()].map((one) => [
    laneCell(one.labels, [...by.values()].map((lane) => lane.labels)), chip(one.state, one.state === "open" ? "ok" : "bad"), count(one.flight), count(one.queued),
    one.rate === Infinity ? "no limit" : rate(one.rate)])), { note: oldest > 0 ? `the oldest push is due for ${span(oldest * 1000)}` : "none is overdue" });
}

function loops(now, first, past) {
  const seconds = (past.at(-1).at - past[0].at) / 1000;
  const all = now.all("tandem_loop_cpu_seconds_total");
  if (!all.length) return null;
  return panel("Loops", table(["Loop", "#Core used", "#Turn, p99"], all.map(({ labels, value }) => {
    const mine = (other) => other.loop === labels.loop && other.node === labels.node;
    const used = seconds > 0 ? (100 * (value - first.sum("tandem_loop_cpu_seconds_total", mine))) / seconds : NaN;
    const turn = quantile(0.99, "tandem_loop_turn_seconds", now, first === now ? null : first, mine);
    const name = labels.node ? `${labels.loop} of ${labels.node.slice(0, 8)}` : labels.loop;
    return [name, Number.isFinite(used) ? `${rate(used)} %` : "–", turn === null ? "–" : span(turn * 1000)];
  })), { note: "over the last minute" });
}

function store(now, first, per) {
  const p99 = quantile(0.99, "tandem_store_transaction_seconds", now, first === now ? null : first);
  return panel("Store", table(["", "#"], [
    ["Transactions per second", rate(per("tandem_store_transactions_total"))], ["Transaction, p99 of the last minute", p99 === null ? "–" : span(p99 * 1000)],
    ["Rows that wait", count(now.sum("tandem_store_waiting_rows"))], ["Failed since the start", count(now.sum("tandem_store_failures_total"))]]));
}

function webhooks(now) {
  // One node sends the webhooks of an app.
  const queues = now.all("tandem_webhook_queue").filter(({ labels }) => !labels.node);
  if (!queues.length) return null;
  const rows = queues.map(({ labels: { app, endpoint } }) => {
    const waiting = now.sum("tandem_webhook_queue", (labels) => labels.app === app && labels.endpoint === endpoint);
    return [app, endpoint, count(waiting)];
  });
  return panel("Webhooks", table(["App", "Endpoint", "#Waiting"], rows),
    { note: `${count(now.sum("tandem_webhook_failures_total"))} attempts failed since the start` });
}

function nodes(cluster) {
  if (cluster.nodes.length < 2) return null;
  return panel("Nodes", table(["Node", "Address", "Version", "#Connections", "#Partitions", "#Lag"], cluster.nodes.map((node) => [
    h("span", null, id((node.node ?? "").slice(0, 8)), node.this && h("span", { class: "mute" }, " this")), node.address ?? "–", node.version ?? "–",
    count(node.connections), count(node.partitions), node.lag === null ? "–" : span(node.lag * 1000)])));
}
