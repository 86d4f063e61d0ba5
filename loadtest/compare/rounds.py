"""What is measured of each server, and by which figures and ratios it is judged."""

import json
import os
import time

from common import programs as p

WARMUP_SECONDS = 0.5
RUN_SECONDS_MAX = 120
STOLEN_PERCENT_MAX = 5
# Characters of a server's output that are shown when a run failed.
SAID_MAX = 3000
# Printed; the others of a run say nothing in a comparison, or are the same for all.
FIGURES = {
    "fanout": (
        "server CPU per delivery", "writes per delivery", "deliveries per read", "deliveries per second", "client CPU per delivery",
        "machine stolen", "machine busy with other things"),
    "crowd": (
        "last delivery", "let in per second", "server CPU per connection", "server memory per connection", "machine stolen",
        "machine busy with other things"),
    "publish": ("server CPU per publish", "publishes per second", "machine stolen", "machine busy with other things"),
    "rooms": (
        "p50 of a delivery", "p99 of a delivery", "p99.9 of a delivery", "server CPU", "server CPU per delivery", "deliveries per second",
        "machine stolen", "machine busy with other things"),
}
NEEDED = {
    "fanout": ("server CPU per delivery", "machine stolen", "machine busy with other things"),
    "crowd": ("last delivery", "let in per second", "machine stolen", "machine busy with other things"),
    "publish": ("server CPU per publish", "machine stolen", "machine busy with other things"),
    "rooms": ("p50 of a delivery", "machine stolen", "machine busy with other things"),
}
LATENCIES = {
    "fanout": ("publish due to delivery",), "crowd": ("publish due to last delivery",), "publish": ("publish due to answer",),
    "rooms": ("publish due to delivery", "publish due to answer")}
PERCENTS = (50, 99, 99.9)
# Rounds of one server differ by a tenth.
LATENCY_RATIO_MAX = 1.1
# Rooms, subscribers of each, and publishes a second to all of them: half of what one core of the hub carries.
PACED = ((1, 1000, 100), (100, 10, 4000), (10_000, 1, 10_000))
PUBLISHERS = 16
LOADS = ("crowd", "few", "many", "nobody", "paced")


class Sizes:
    def __init__(self, subscribers, crowd, seconds, byte_count, envelope=0, loads=LOADS):
        self.loads = loads
        self.subscribers, self.crowd, self.seconds, self.bytes = subscribers, crowd, seconds, byte_count
        # Bytes that the events of servers without an envelope of their own get in addition.
        self.envelope = envelope

    def connections_max(self):
        """Of the load tester to one server."""
        paced = [rooms * each for rooms, each, _ in PACED] if "paced" in self.loads else []
        return max(self.crowd, self.subscribers, *paced)

    def bytes_for(self, server):
        return self.bytes + (self.envelope if server.sends_bare_data else 0)

    def few(self):
        return f"{self.subscribers:,} subscribers, 1 outstanding"

    def many(self):
        return f"{self.subscribers:,} subscribers, 16 outstanding"

    def nobody(self):
        return "no subscribers, publishes over 16 connections"

    def all(self):
        return f"{self.crowd:,} subscribers, one publish at a time"

    @staticmethod
    def paced(rooms, each, rate):
        return f"{rooms:,} rooms of {each:,}, {rate:,} publishes a second"

    def scenarios(self):
        """Name, kind and the load tester's arguments; the crowd first, since a fresh server shows what its connections cost."""
        fanout = ["--connections", str(self.subscribers), "--channel", "load"]
        known = {
            "crowd": [(self.all(), "crowd", ["--connections", str(self.crowd), "--channel", "private-crowd", "--rate", "2"])],
            "few": [(self.few(), "fanout", [*fanout, "--outstanding", "1"])],
            "many": [(self.many(), "fanout", [*fanout, "--outstanding", "16"])],
            "nobody": [(self.nobody(), "publish", ["--channel", "empty", "--outstanding", "16"])],
            "paced": [
                (self.paced(rooms, each, rate), "rooms", [
                    "--connections", str(rooms * each), "--channels", str(rooms), "--channel", f"room{rooms}", "--rate", str(rate),
                    "--publishers", str(PUBLISHERS)])
                for rooms, each, rate in PACED],
        }
        return [scenario for load in LOADS if load in self.loads for scenario in known[load]]


def targets(sizes, names, is_secure=False):
    """As docs and issues set them; only those whose servers take part."""

    def target(name, scenario, figure, base, **bound):
        return {"name": name, "scenario": scenario, "figure": figure, "server": "tandem", "base": base, **bound}

    cpu = "server CPU per delivery"
    wanted = [
        target("CPU per delivery, 16 outstanding / floor that joins", sizes.many(), cpu, "floor-join", atMost=1.15),
        target("CPU per delivery, 16 outstanding / uWebSockets", sizes.many(), cpu, "socketify", atMost=0.8),
        target("CPU per delivery, 16 outstanding / nchan", sizes.many(), cpu, "nchan", atMost=round(1 / 6, 4)),
        target("CPU per delivery, 16 outstanding / nats-server", sizes.many(), cpu, "nats"),
        target("CPU per delivery, 1 outstanding / floor", sizes.few(), cpu, "floor", atMost=1.25),
        target("CPU per delivery, 1 outstanding / uWebSockets", sizes.few(), cpu, "socketify"),
        target("CPU per delivery, 1 outstanding / nchan", sizes.few(), cpu, "nchan"),
        target("CPU per delivery, 1 outstanding / nats-server", sizes.few(), cpu, "nats"),
        target(f"last of {sizes.crowd:,} deliveries / floor", sizes.all(), "last delivery", "floor", atMost=1.25),
        target("let in per second, private channel / floor without", sizes.all(), "let in per second", "floor", atLeast=0.5),
        target("CPU per connection let in / floor without", sizes.all(), "server CPU per connection", "floor"),
        target("CPU per connection let in / uWebSockets", sizes.all(), "server CPU per connection", "socketify", atMost=1.2),
        target("CPU per publish to nobody / nchan", sizes.nobody(), "server CPU per publish", "nchan", atMost=1.0),
        target("CPU per publish to nobody / uWebSockets", sizes.nobody(), "server CPU per publish", "socketify"),
        target("memory per idle connection / uWebSockets", sizes.all(), "server memory per connection", "socketify"),
        target("memory per idle connection / nchan", sizes.all(), "server memory per connection", "nchan"),
    ]
    if is_secure:
        rows = [
            (f"CPU per delivery, {few}", size, cpu, 1.0)
            for few, size in (("1 outstanding", sizes.few()), ("16 outstanding", sizes.many()))]
        rows += [("CPU per connection let in", sizes.all(), "server CPU per connection", 1.5),
                 ("CPU per publish to nobody", sizes.nobody(), "server CPU per publish", 1.5)]
        peers = (("nchan", "nchan"), ("floor", "floor"), ("socketify", "uWebSockets"))
        wanted = [
            target(f"{row} / {title}", size, figure, base, **({"atMost": bound} if base == "nchan" else {}))
            for row, size, figure, bound in rows for base, title in peers]
    wanted += [
        target(f"p{percent} of a delivery, {rooms:,} rooms of {each:,} / {title}", sizes.paced(rooms, each, rate), f"p{percent} of a delivery", base, atMost=LATENCY_RATIO_MAX)
        for rooms, each, rate in PACED for base, title in (("socketify", "uWebSockets"), ("nchan", "nchan")) for percent in PERCENTS]
    measured = {name for name, _, _ in sizes.scenarios()}
    return [one for one in wanted if one["server"] in names and one["base"] in names and one["scenario"] in measured]


def set_figure(report, name, value, unit):
    report["figures"] = [figure for figure in report["figures"] if figure["name"] != name]
    report["figures"].append({"name": name, "value": value, "unit": unit})


def figure(report, name):
    return next((one["value"] for one in report["figures"] if one["name"] == name), None)


class Unmeasured(Exception):
    """A run went well and yet has no figures: the machine let nothing happen in its time."""


class Measurer:
    """Runs the load tester against one server after the other."""

    def __init__(self, programs, binary, folder, sizes, server_cores, client_cores):
        self.programs, self.binary, self.folder, self.sizes = programs, binary, folder, sizes
        self.server_cores, self.client_cores = server_cores, client_cores
        self.started = 0

    def measure(self, server):
        """One round of one server, in a process of its own; the reports of all scenarios."""
        self.started += 1
        server.start(self.programs, os.path.join(self.folder, f"{self.started}-{server.name}"), self.server_cores)
        try:
            return [
                self._load(server, name, kind, arguments) for name, kind, arguments in self.sizes.scenarios()
                if kind != "publish" or server.answers_publishes]
        finally:
            self.programs.stop(server.process)

    def _load(self, server, name, kind, arguments):
        result, output = os.path.join(self.folder, "result.json"), os.path.join(self.folder, "loadtest.out")
        if os.path.exists(result):
            os.remove(result)
        before = server.counts()
        process = self.programs.start(
            [self.binary, kind, "--dialect", server.dialect, "--url", server.url("ws"), *server.options(), "--json", result,
             "--server-pid", str(server.process.pid), "--bytes", str(self.sizes.bytes_for(server)), "--seconds", str(self.sizes.seconds),
             "--warmup", str(WARMUP_SECONDS), *arguments], output, cores=self.client_cores)
        deadline = time.monotonic() + RUN_SECONDS_MAX
        while process.poll() is None and time.monotonic() < deadline and server.process.poll() is None:
            time.sleep(0.02)
        is_done = process.poll() is not None
        self.programs.stop(process)
        if not is_done or process.returncode != 0 or not os.path.exists(result):
            p.fail(f"{server.name}, {name}: the run failed:\n{p.text(output)}\nThe server said:\n{self._said(server)}")
        with open(result) as file:
            report = json.load(file)
        report["scenario"], report["dialect"] = name, server.name
        self._count_writes(report, before, server.counts())
        self._add_percentiles(report)
        report["figures"] = [one for wanted in FIGURES[kind] for one in report["figures"] if one["name"] == wanted]
        absent = [wanted for wanted in NEEDED[kind] if figure(report, wanted) is None]
        if absent:
            raise Unmeasured(f"{server.name}, {name}: no {' and no '.join(absent)}")
        report["latencies"] = [one for one in report["latencies"] if one["name"] in LATENCIES[kind]]
        # A point a second of a run that lasts three says nothing.
        report["timelines"] = []
        # Of no use here: the client is meant to be busy, and machine and steal are figures.
        report["warnings"] = [text for text in report["warnings"] if "bottleneck" not in text and "do not trust" not in text]
        report["settings"] = [one for one in report["settings"] if one["name"] not in ("channel", "rate", "outstanding")]
        return report

    @staticmethod
    def _count_writes(report, before, after):
        if before and after and after[0] > before[0]:
            set_figure(report, "writes per delivery", (after[1] - before[1]) / (after[0] - before[0]), "")

    @staticmethod
    def _add_percentiles(report):
        for latency in report["latencies"]:
            if latency["name"] == "publish due to delivery" and latency["count"]:
                for percent in PERCENTS:
                    value = next((one["microseconds"] for one in latency["percentiles"] if one["percent"] >= percent), latency["maximum"])
                    set_figure(report, f"p{percent} of a delivery", value, "us")

    @staticmethod
    def _said(server):
        return p.text(server.output)[-SAID_MAX:]


def stolen(reports):
    return max(figure(report, "machine stolen") or 0 for report in reports)
