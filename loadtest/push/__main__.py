"""What a push costs beside the least that libcurl can do it for: see loadtest/README.md.

Settings: DEVICES, ROUNDS, REGISTERED, PROVIDERS, IN_FLIGHT, KEEP.
"""

import http.client
import json
import os
import statistics
import sys
import time

sys.path.insert(1, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import programs as p
import store
from common.figures import kilobytes
from common.http import signed
from common.output import Report, say, setting
from common.programs import fail, run
from common.workspace import built, workspace

RATIO_MAX = 1.6
LOOKUP_RATIO_MAX = 1.2
PEAK_MB_MAX = 512
LOOKUP_MEMBERS = 1000
LOOKUP_EVENTS = 10
EVENT = "session-started"


def call(port, method, path, body):
    """A backend's request."""
    data = json.dumps(body).encode()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    connection.request(method, signed(method, path, data, p.KEY, p.SECRET), data, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    if answer.status not in (200, 201):
        fail(f"{method} {path} was refused: {answer.status} {text[:300]!r}")


def open_session(hub, session):
    call(hub.port, "PUT", f"/apps/{p.APP}/sessions/{session}", {"definition": "crowd", "join_code": f"{session}code"})


def publish(hub, session, number):
    call(hub.port, "POST", f"/apps/{p.APP}/events", {
        "name": EVENT, "channels": [f"private-crowd-{session}"], "data": json.dumps({"n": number})})


def settled(hub, seconds=30):
    """Waits until the hub has written down what it was answered: its CPU time stands still."""
    deadline, last, since = time.monotonic() + seconds, hub.usage().total, time.monotonic()
    while time.monotonic() < deadline and time.monotonic() - since < 0.3:
        time.sleep(0.05)
        now = hub.usage().total
        if now - last > 0.011:
            last, since = now, time.monotonic()
    return hub.usage()


def push(hub, sink, session, number, devices):
    """One event; returns what it took."""
    target = sink.requests + devices
    before, sink_before, start = hub.usage(), p.Usage(sink.process.pid).total, time.monotonic()
    publish(hub, session, number)
    answered, decided = time.monotonic(), hub.usage()
    last = sink.wait(target, 600)
    after = settled(hub)
    if sink.requests != target:
        fail(f"{sink.requests - target} pushes too many arrived")
    threads = {name: (after.threads[name] - before.threads.get(name, 0)) / devices * 1e6 for name in after.threads}
    return {
        "rate": devices / (last - answered) if last > answered else 0, "answer": answered - start,
        "whole": (after.total - before.total) / devices * 1e6, "deciding": (decided.total - before.total) / devices * 1e6,
        "sending": (after.total - decided.total) / devices * 1e6, "system": (after.system - before.system) / devices * 1e6,
        "sink": (p.Usage(sink.process.pid).total - sink_before) / devices * 1e6,
        "threads": sorted(((value, name) for name, value in threads.items() if value >= 0.5), reverse=True),
    }


def bare(binary, sink, certificate, in_flight, devices):
    sink_before = p.Usage(sink.process.pid).total
    accepted, seconds, user, system, connections = run(
        [binary, sink.url, certificate, sink.record_path, str(in_flight), str(devices)], "the bare loop").split()
    if int(accepted) != devices or int(connections) != 1:
        fail(f"the bare loop had {accepted} of {devices} accepted over {connections} connections")
    return {
        "rate": devices / float(seconds), "whole": (float(user) + float(system)) / devices * 1e6,
        "system": float(system) / devices * 1e6, "sink": (p.Usage(sink.process.pid).total - sink_before) / devices * 1e6}


def spread(values, digits=1):
    return f"{statistics.median(values):,.{digits}f} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"


class Run:
    def __init__(self, programs, folder):
        self.folder, self.programs, self.report = folder, programs, Report(58, 32, 10)
        self.binary = built("tandem", "push-bench")
        here = os.path.dirname(os.path.abspath(__file__))
        for name, libraries in (("sink", ["-lnghttp2", "-lssl", "-lcrypto"]), ("bare", ["-lcurl"])):
            run(["cc", "-O2", "-Wall", "-o", os.path.join(folder, name), os.path.join(here, f"{name}.c"), *libraries],
                f"compiling {name}.c")
        self.certificate, key = p.make_keys(folder)
        self.sink = p.Sink(self.programs, os.path.join(folder, "sink"), folder, self.certificate, key)
        p.write_account(folder, self.sink.port)
        self.credentials = p.credentials(folder, self.sink.port)

    def hub(self, name, session, provider, members, others=0):
        """A hub whose store knows so many people."""
        hub = p.Hub(self.programs, self.binary, self.folder, name, self.credentials)
        hub.start()
        open_session(hub, session)
        hub.stop()
        store.fill(hub.store(), p.APP, session, provider, members, others)
        hub.start()
        return hub

    def compare(self, provider, devices, rounds, in_flight):
        say(f"\n{provider.upper()}: one event to {devices:,} absent devices, {rounds} rounds")
        hub = self.hub(provider, provider, provider, devices)
        self.sink.record(True)
        # Fetches tokens, opens connections, warms pages, and tells the bare loop what to post.
        push(hub, self.sink, provider, 0, devices)
        self.sink.record(False)
        ours, theirs = [], []
        for number in range(1, rounds + 1):
            theirs.append(bare(os.path.join(self.folder, "bare"), self.sink, self.certificate, in_flight, devices))
            ours.append(push(hub, self.sink, provider, number, devices))
            say(f"  round {number}: {ours[-1]['rate']:,.0f} and {theirs[-1]['rate']:,.0f} pushes/s, "
                f"{ours[-1]['sending']:.1f} and {theirs[-1]['whole']:.1f} us")
        line = self.report.line
        line("sustained pushes per second, from the answer to the last", spread([round["rate"] for round in ours], 0))
        line("  the bare loop", spread([round["rate"] for round in theirs], 0))
        line("CPU per push (user and system), us, without deciding", spread([round["sending"] for round in ours]))
        line("  of it and deciding, system", spread([round["system"] for round in ours]))
        line("  deciding, committing and answering, per push, us", spread([round["deciding"] for round in ours]))
        line("  the bare loop, us", spread([round["whole"] for round in theirs]))
        line("  of it, system", spread([round["system"] for round in theirs]))
        line("the sink's, per push, us: the hub's / the bare loop's", "{:.1f} / {:.1f}".format(
            statistics.median(round["sink"] for round in ours), statistics.median(round["sink"] for round in theirs)))
        line("the hub's threads, last round, us", ", ".join(f"{name} {value:.0f}" for value, name in ours[-1]["threads"][:4]))
        line("seconds until the publish was answered", spread([round["answer"] for round in ours], 2))
        ratios = [mine["sending"] / bare["whole"] for mine, bare in zip(ours, theirs)]
        line("ratio of CPU per push", spread(ratios, 2), f"<= {RATIO_MAX}", statistics.median(ratios) <= RATIO_MAX)
        whole = [mine["whole"] / bare["whole"] for mine, bare in zip(ours, theirs)]
        line("  with deciding and committing", spread(whole, 2))
        peak = kilobytes(hub.process.pid, "VmHWM") * 1024 / 1e6
        line("peak resident memory, MB", f"{peak:.0f}", f"<= {PEAK_MB_MAX}", peak <= PEAK_MB_MAX)
        for text in sorted(set(hub.complaints()))[:5]:
            say(f"  the hub complained: {text}")
        hub.stop()

    def lookups(self, registered, rounds):
        say(f"\nLookups: {LOOKUP_EVENTS} events to {LOOKUP_MEMBERS:,} devices, of which no others and {registered:,} are registered")
        few = self.hub("few", "few", "fcm", LOOKUP_MEMBERS)
        many = self.hub("many", "many", "fcm", LOOKUP_MEMBERS, registered - LOOKUP_MEMBERS)
        costs = {"few": [], "many": []}
        for number in range(rounds + 1):
            for name, hub in (("few", few), ("many", many)):
                before, target = hub.usage().total, self.sink.requests
                for event in range(LOOKUP_EVENTS):
                    publish(hub, name, number * LOOKUP_EVENTS + event)
                    self.sink.wait(target + (event + 1) * LOOKUP_MEMBERS, 120)
                cost = (settled(hub).total - before) / (LOOKUP_EVENTS * LOOKUP_MEMBERS) * 1e6
                # The first round warms the pages up.
                if number > 0:
                    costs[name].append(cost)
        self.report.line(f"CPU per push, decided and sent, us: {LOOKUP_MEMBERS:,} registered", spread(costs["few"]))
        self.report.line(f"  {registered:,} registered", spread(costs["many"]))
        ratio = statistics.median(costs["many"]) / statistics.median(costs["few"])
        self.report.line("ratio", f"{ratio:.2f}", f"<= {LOOKUP_RATIO_MAX}", ratio <= LOOKUP_RATIO_MAX)
        few.stop()
        many.stop()


def main():
    devices, rounds = setting("DEVICES", 100_000), setting("ROUNDS", 5)
    registered, in_flight = setting("REGISTERED", 1_000_000), setting("IN_FLIGHT", 200)
    providers = os.environ.get("PROVIDERS", "fcm apns").split()
    with workspace(kept="what was run with is") as (folder, programs):
        run = Run(programs, folder)
        say(f"push: DEVICES={devices} ROUNDS={rounds} IN_FLIGHT={in_flight}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        for provider in providers:
            run.compare(provider, devices, rounds, in_flight)
        if registered:
            run.lookups(registered, rounds)
        say(f"\n{'A target was missed' if run.report.is_missed else 'All targets are met'}")
    sys.exit(1 if run.report.is_missed else 0)


main()
