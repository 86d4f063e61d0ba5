"""What is measured: each takes both hubs in turns, and prints its rows."""

import contextlib
import json
import os
import signal
import statistics
import subprocess
import time

import crowd as crowds
from client import Client
from common.output import say
from common.programs import environment, fail, text
from hubs import APP, KEY, SECRET, psql

SUBSCRIBERS, FEW, FAN_OUT_SECONDS, PUBLISH_SECONDS, IDLE_SECONDS = 1000, 30, 6, 5, 5
JOIN_CHANNELS, JOIN_WINDOW = 1000, 16
SETTLE_SECONDS = 4
SQL_PUBLISHES = 300
DELIVERY_RATIO_MAX, LATENCY_MS_MAX, STORM_RATIO_MAX, SQL_MS_MAX = 1.25, 1.0, 1.5, 50.0


def spread(values, digits=1):
    return f"{statistics.median(values):,.{digits}f} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"


class Measures:
    def __init__(self, world, report, rounds, rate, clients):
        self.world, self.report, self.rounds, self.rate, self.clients = world, report, rounds, rate, clients
        self.hubs, self.writers = (world.one, world.many), (world.one, world.wide, world.many)
        # Seconds of CPU a second: nodes, Redis, PostgreSQL.
        self.idle = {}

    def _load(self, scenario, hub, urls, *options):
        """A run of the load tester: its figures by name."""
        file = os.path.join(self.world.folder, "report.json")
        addresses = [part for port in urls for part in ("--url", f"ws://127.0.0.1:{port}")]
        servers = [part for node in hub.nodes for part in ("--server-pid", str(node.pid))]
        app = ("--app-id", APP, "--key", KEY, "--secret", SECRET)
        done = subprocess.run(
            [self.world.tester, scenario, *addresses, *servers, *app, "--json", file, *options], capture_output=True, text=True,
            env=environment())
        if done.returncode:
            fail(f"tandem-loadtest {scenario} to {hub.name} failed:\n{done.stdout}{done.stderr}")
        with open(file) as opened:
            report = json.load(opened)
        return {figure["name"]: figure["value"] for figure in report["figures"]}

    def _spent(self, hub, work):
        """CPU seconds of nodes, Redis and PostgreSQL while `work` runs, and the seconds that it took."""
        before, began = self.world.cpu(hub), time.monotonic()
        work()
        seconds = time.monotonic() - began
        return [now - then for now, then in zip(self.world.cpu(hub), before)], seconds

    def _above_idle(self, hub, spent, seconds):
        return [max(0.0, cpu - idle * seconds) for cpu, idle in zip(spent, self.idle[hub])]

    # Idle

    def rest(self):
        say("  nobody connected")
        for hub in self.writers:
            spent, seconds = self._spent(hub, lambda: time.sleep(IDLE_SECONDS))
            self.idle[hub] = [max(0.0, cpu) / seconds for cpu in spent]
            self.report.line(f"{hub.name}, ms of CPU a second", f"{self.idle[hub][0] * 1000:.1f}")
        for place, name in ((1, "Redis"), (2, "PostgreSQL")):
            self.report.line(f"  {name} of {self.world.many.name}, ms of CPU a second", f"{self.idle[self.world.many][place] * 1000:.1f}")

    # Deliveries

    def deliver(self):
        """One channel with its subscribers spread over the nodes: 1,000, and so few that the way through Redis is most of the time."""
        for subscribers in (SUBSCRIBERS, FEW):
            say(f"  {subscribers:,} subscribers of one channel, {self.rate} publishes a second through all nodes")
            self._deliver(subscribers)

    def _deliver(self, subscribers):
        cost, late, engines = ({hub: [] for hub in self.writers} for _ in range(3))
        for number in range(self.rounds):
            # There and back: a machine that slows down meanwhile favours nobody.
            for hub in self.writers[::1 - 2 * (number % 2)]:
                figures = {}

                def work():
                    figures.update(self._load(
                        "crowd", hub, hub.ports, "--connections", str(subscribers), "--rate", str(self.rate), "--seconds",
                        str(FAN_OUT_SECONDS), "--warmup", "1"))

                spent, seconds = self._spent(hub, work)
                cost[hub].append(figures["server CPU per delivery"])
                late[hub].append(figures["last delivery"])
                above = self._above_idle(hub, spent, seconds)
                engines[hub].append([cpu * 1e6 / figures["publishes"] for cpu in above[1:]])
        for hub in self.writers:
            self.report.line(f"CPU per delivery, {hub.name}, us", spread(cost[hub], 2))
        if subscribers == SUBSCRIBERS:
            self._ratio([many / alone for alone, many in zip(cost[self.world.one], cost[self.world.many])], DELIVERY_RATIO_MAX)
        for hub in self.writers:
            self.report.line(f"publish to last delivery, p50, {hub.name}, ms", spread(late[hub], 2))
        more, more_than_wide = (
            [many - alone for alone, many in zip(late[hub], late[self.world.many])] for hub in (self.world.one, self.world.wide))
        self.report.line(
            "  more, ms", spread(more, 2), f"<= {LATENCY_MS_MAX}", statistics.median(more) <= LATENCY_MS_MAX)
        self.report.line(f"  more than {self.world.wide.name}, ms", spread(more_than_wide, 2))
        self._engines("a publish", engines[self.world.many])

    def _ratio(self, ratios, most):
        self.report.line("  ratio", spread(ratios, 2), f"<= {most}", statistics.median(ratios) <= most)

    def _engines(self, what, rounds):
        for place, name in enumerate(("Redis", "PostgreSQL")):
            self.report.line(f"  {name}, {what}, us", spread([cpu[place] for cpu in rounds]))

    # Publications

    def publish(self):
        """Publishes to nobody, all through one node: what they cost there, and on the nodes that only read them."""
        for how, options in (("16 outstanding", ("--outstanding", "16")), ("500 a second", ("--rate", "500"))):
            say(f"  publishes to nobody through one node, {how}")
            rows = {name: [] for name in ("alone", "rate alone", "here", "rate", "there", "instructions", "engines")}
            for _ in range(self.rounds):
                self._publish(rows, options)
            self.report.line("CPU of a publish, one node, us", spread(rows["alone"]))
            self.report.line(f"  on the node that it comes in at, of {len(self.world.many.nodes)}, us", spread(rows["here"]))
            self.report.line("  on a node that only reads it, us", spread(rows["there"]))
            if any(rows["instructions"]):
                self.report.line("    user instructions there", spread(rows["instructions"], 0))
            self._engines("a publish", rows["engines"])
            self.report.line("publishes a second, one node", spread(rows["rate alone"], 0))
            self.report.line(f"  {self.world.many.name}, through one", spread(rows["rate"], 0))
        if not perf_counts():
            say("  perf cannot count instructions on this machine")

    def _publish(self, rows, options):
        options = (*options, "--seconds", str(PUBLISH_SECONDS), "--warmup", "0")
        one, many, figures = self.world.one, self.world.many, {}
        (spent, *_), seconds = self._spent(one, lambda: figures.update(self._load("publish", one, one.ports, *options)))
        rows["alone"].append((spent - self.idle[one][0] * seconds) * 1e6 / figures["publishes"])
        rows["rate alone"].append(figures["publishes per second"])
        before = [node.cpu() for node in many.nodes]
        counter = Instructions(many.nodes[1].pid, self.world.folder)
        spent, seconds = self._spent(many, lambda: figures.update(self._load("publish", many, many.ports[:1], *options)))
        instructions = counter.end()
        idle, count = self.idle[many][0] / len(many.nodes) * seconds, figures["publishes"]
        here, *there = (node.cpu() - then - idle for node, then in zip(many.nodes, before))
        rows["here"].append(here * 1e6 / count)
        rows["there"].append(statistics.mean(there) * 1e6 / count)
        rows["rate"].append(figures["publishes per second"])
        if instructions:
            rows["instructions"].append(instructions / count)
        rows["engines"].append([cpu * 1e6 / count for cpu in self._above_idle(many, spent, seconds)[1:]])

    # Joins

    def join(self):
        """Presence channels, each with a member on each of three connections, which go to the nodes in turns."""
        say(f"  {JOIN_CHANNELS:,} presence channels, three members each, {JOIN_WINDOW} joins of a connection under way")
        cost, engines = {hub: [] for hub in self.hubs}, []
        for place in range(self.rounds):
            for hub in self.hubs:
                clients = [Client(hub.ports[number % len(hub.ports)]) for number in range(3)]
                spent, seconds = self._spent(hub, lambda: join_all(clients, f"presence-join-{place}"))
                for client in clients:
                    client.close()
                # Nobody's leave falls into another's joins.
                time.sleep(SETTLE_SECONDS)
                above = self._above_idle(hub, spent, seconds)
                cost[hub].append(above[0] * 1e6 / (3 * JOIN_CHANNELS))
                if hub is self.world.many:
                    engines.append([cpu * 1e6 / (3 * JOIN_CHANNELS) for cpu in above[1:]])
        for hub in self.hubs:
            self.report.line(f"CPU per join, {hub.name}, us", spread(cost[hub]))
        more = [many - alone for alone, many in zip(cost[self.world.one], cost[self.world.many])]
        self.report.line("  through Redis it costs more, us", spread(more))
        self._engines("a join", engines)

    def storm(self):
        """All clients cut off at once and back at once."""
        binary = crowds.build_crowd(self.world.folder)
        for channel, what in (("private-storm", "one private channel"), ("presence-storm-%", "16 presence channels")):
            say(f"  a storm of {self.clients:,} clients, {what}")
            cost, late, told, engines = ({hub: [] for hub in self.hubs} for _ in range(4))
            for hub in self.hubs:
                parts = [(self.clients + place) // len(hub.nodes) for place in range(len(hub.nodes))]
                with contextlib.ExitStack() as stack:
                    crowd = [
                        stack.enter_context(crowds.Crowd(binary, port, channel, f"user=n{place}-", app=(KEY, SECRET)))
                        for place, port in enumerate(hub.ports)]
                    for each, part in zip(crowd, parts):
                        each.come(part, crowds.WAVE)
                    # The first warms up.
                    for place in range(self.rounds + 1):
                        spent, took = self._storm(hub, crowd, parts)
                        messages = sum(each.tell("say")["messages"] for each in crowd)
                        if place:
                            cost[hub].append(spent[0] * 1e6 / self.clients)
                            late[hub].append(took)
                            told[hub].append(messages / self.clients)
                            engines[hub].append([cpu * 1e6 / self.clients for cpu in spent[1:]])
                time.sleep(SETTLE_SECONDS)
            for hub in self.hubs:
                self.report.line(f"CPU of a client, {hub.name}, us", spread(cost[hub]))
            alone = statistics.median(cost[self.world.one])
            self._ratio([many / alone for many in cost[self.world.many]], STORM_RATIO_MAX)
            for hub in self.hubs:
                self.report.line(f"all back after, {hub.name}, s", spread(late[hub]))
            for hub in self.hubs:
                self.report.line(f"messages that a client got, {hub.name}", spread(told[hub]))
            self._engines("a client", engines[self.world.many])

    def _storm(self, hub, crowd, parts):
        took = 0.0

        def work():
            nonlocal took
            began = time.monotonic()
            for each in crowd:
                each.tell("drop")
            for each, part in zip(crowd, parts):
                each.begin(f"open {part}")
            for each in crowd:
                if each.answer()["failed"]:
                    fail(f"{hub.name} did not let everybody in")
            took = time.monotonic() - began
            time.sleep(SETTLE_SECONDS)

        spent, seconds = self._spent(hub, work)
        return self._above_idle(hub, spent, seconds), took

    # SQL

    def sql(self):
        say(f"  {SQL_PUBLISHES} publishes in SQL, a subscriber on each of {self.world.many.name}")
        clients = [Client(port) for port in self.world.many.ports]
        for client in clients:
            client.subscribe("told-by-sql")
            client.await_event("pusher_internal:subscription_succeeded")
        shell = subprocess.Popen(
            ["psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--dbname", os.environ["TANDEM_TEST_POSTGRES"]],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        took = []
        try:
            for number in range(SQL_PUBLISHES):
                shell.stdin.write(f"SELECT tandem.publish('{APP}', 'told-by-sql', 'told', '{number}');\n")
                shell.stdin.flush()
                # The answer of the statement is that of its commit.
                if not shell.stdout.readline().strip():
                    fail("psql gave no answer")
                committed = time.monotonic()
                for client in clients:
                    data = client.await_event("told")["data"]
                    if data != str(number):
                        fail(f"publish {number} in SQL was to arrive, {data} came")
                took.append(max(0.0, (time.monotonic() - committed) * 1000))
                time.sleep(0.01)
        finally:
            shell.kill()
            shell.wait()
            for client in clients:
                client.close()
        p50, p99 = sorted(took)[len(took) // 2], sorted(took)[len(took) * 99 // 100]
        self.report.line("commit to the last of the sockets, p50, ms", f"{p50:.1f}")
        self.report.line("  p99, ms", f"{p99:.1f}", f"<= {SQL_MS_MAX:.0f}", p99 <= SQL_MS_MAX)


def join_all(clients, name):
    """Returns when every client is a member of every channel."""
    for first in range(0, JOIN_CHANNELS, JOIN_WINDOW):
        places = range(first, min(first + JOIN_WINDOW, JOIN_CHANNELS))
        for number, client in enumerate(clients):
            for place in places:
                client.subscribe(f"{name}-{place}", f"user-{number}")
        for client in clients:
            for _ in places:
                client.await_event("pusher_internal:subscription_succeeded")


def perf_counts():
    """Whether perf can count user instructions here."""
    try:
        done = subprocess.run(["perf", "stat", "-x,", "-e", Instructions.EVENT, "true"], capture_output=True, text=True)
    except OSError:
        return False
    return done.returncode == 0 and done.stderr.split(",")[0].isdigit()


class Instructions:
    """User instructions of a process, by perf; nothing where it cannot count them."""

    EVENT = "instructions:u"

    def __init__(self, pid, folder):
        self.output, self.process = os.path.join(folder, "perf.csv"), None
        if perf_counts():
            self.process = subprocess.Popen(["perf", "stat", "-x,", "-e", self.EVENT, "-p", str(pid), "-o", self.output])

    def end(self):
        if not self.process:
            return None
        self.process.send_signal(signal.SIGINT)
        self.process.wait(10)
        return next((int(line.split(",")[0]) for line in text(self.output).splitlines() if self.EVENT in line), None)
