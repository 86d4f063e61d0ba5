"""Random faults on three nodes: see loadtest/README.md. Settings: MINUTES, PEOPLE, SEED, EVERY, FAULTS, BUILD, KEEP, OUT."""

import collections
import contextlib
import json
import os
import random
import re
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# In this order: both have a client, and that of one-surface is a program.
sys.path[1:1] = [
    os.path.dirname(HERE), os.path.join(ROOT, "Tests", "ClusterTests", "faults"),
    os.path.join(ROOT, "Tests", "HubIntegrationTests", "Python", "conformance"), os.path.join(os.path.dirname(HERE), "one-surface")]

import wire
from common.output import Report, say, setting
from common.programs import fail, raise_descriptor_limit
from common.workspace import built, workspace
from departures import Departures
from judge import Judge, Person, read_logs
from plan import Plan
from programs import Gateways

# Seconds around a fault in which somebody may be told twice.
MARGIN = 10.0
DUPLICATES_MAX = 0.001
SECONDS_PER_EVENT = 2.0
# Without a fault, before the first one and after the last.
CALM_SECONDS = 15.0
FINDINGS_SHOWN = 12


class Tee:
    """Writes what is said into a file as well."""

    def __init__(self, stream, path):
        self.stream, self.file = stream, open(path, "w")

    def write(self, text):
        self.file.write(text)
        return self.stream.write(text)

    def flush(self):
        self.file.flush()
        self.stream.flush()


def trails(port, lost):
    """Says what the hub's trails tell of pairs that are lost."""
    caller = wire.Caller(port, timeout=30)
    for event, user in lost[:FINDINGS_SHOWN]:
        for id in set(re.findall(r"[0-9a-f]{8}-[0-9a-f-]{27}", json.dumps(event.get("answer")))):
            status, answer = caller.call(wire.signed("GET", f"/apps/{wire.APP}/events/{id}/deliveries", user=user))
            if status == 200 and answer["deliveries"]:
                say(f"  trail of event {event['n']}, {answer['event']['committed_at']}: {json.dumps(answer['deliveries'])}")
            elif status != 200:
                say(f"  trail of event {event['n']}: {status} {answer}")


def report(judge, nodes, departures, facts, oddities, plan, given_up, outcome):
    faults, counts, pairs = nodes.faults, judge.counts, judge.counts["pairs"]

    def is_near(sent, alert):
        return any(begin - MARGIN <= alert and sent <= end + MARGIN for begin, end, _, _ in faults)

    inside = [why for sent, alert, why, _ in judge.twice if is_near(sent, alert)]
    outside = [why for sent, alert, why, _ in judge.twice if not is_near(sent, alert)]
    unexplained = [finding for sent, alert, _, finding in judge.twice if finding and not is_near(sent, alert)]
    say("\nPairs of event and participant")
    outcome.line("pairs", f"{pairs:,}")
    for name in ("told by the socket", "told by a notification", "told by both"):
        outcome.line(name, f"{counts[name]:,}")
    outcome.line("lost", f"{counts['lost']:,}", "0", counts["lost"] == 0)
    share = len(outside) / pairs if pairs else 0.0
    outcome.line("told twice, outside of 10 s around a fault", f"{len(outside):,} = {share:.3%}", f"<= {DUPLICATES_MAX:.1%}", share <= DUPLICATES_MAX)
    for why in sorted(set(outside)):
        outcome.line(f"  {why}", f"{outside.count(why):,}")
    outcome.line("  unexplained", f"{outside.count('UNEXPLAINED'):,}", "0", "UNEXPLAINED" not in outside)
    outcome.line("told twice, within 10 s around a fault", f"{len(inside):,} = {len(inside) / pairs if pairs else 0:.3%}")
    for why in sorted(set(inside)):
        outcome.line(f"  {why}", f"{inside.count(why):,}")
    outcome.line("notified first, then read by the returning app (same event id)", f"{sum(judge.later.values()):,}")
    for name in ("read more than once on the socket (one event id)", "sent more than once to a gateway (one id)"):
        outcome.line(name, f"{counts[name]:,}")
    say("\nMembers of the presence channel, as webhooks tell of them")
    outcome.line("people whose comings and goings are known", f"{departures.told:,}")
    outcome.line("member_removed", f"{departures.removals:,}")
    outcome.line("people told removed more or less often than they left", f"{len(departures.mistakes):,}", "0", not departures.mistakes)
    say("\nFaults")
    for name in sorted({name for _, _, name, _ in faults}):
        outcome.line(name, str(sum(one == name for _, _, one, _ in faults)))
    outcome.line("faults that went wrong themselves", f"{len(nodes.mistakes)}", "0", not nodes.mistakes)
    waits = [event["answered"] - event["sent"] for event in plan.events if "answered" in event]
    outcome.line("publishes, and those asked again", f"{len(waits)} / {sum(event['tries'] > 1 for event in plan.events)}")
    outcome.line("publishes without an answer within 60 s", f"{len(given_up)}", "0", not given_up)
    outcome.line("a publish's answer, s, at the most", f"{max(waits, default=0):.1f}")
    for name, count in sorted(facts.items()):
        outcome.line(name, f"{count:,}")
    for text in sorted(set(oddities))[:5]:
        say(f"  the hub complained: {text}")
    findings = judge.findings + departures.mistakes + given_up
    if findings:
        say(f"\nFindings ({len(findings)}; at most {FINDINGS_SHOWN} of each kind are shown; loadtest/README.md says how to read them)")
        kinds = collections.defaultdict(list)
        for finding in judge.findings:
            kinds["outside of faults" if finding in unexplained else finding.split(":")[0]].append(finding)
        # The rarest first: a lost pair is one among hundreds that were told twice.
        for shown in [*sorted(kinds.values(), key=len), departures.mistakes, given_up]:
            for finding in shown[:FINDINGS_SHOWN]:
                say(f"  - {finding}")


def main():
    build = os.environ.get("BUILD") or "release"
    binaries = {name: built(name, "one-surface", build) for name in ("tandem", "tandem-gateways")}
    os.environ.update(TANDEM=binaries["tandem"], CHANNELS=os.path.join(os.path.dirname(HERE), "one-surface", "channels"))
    # They read the environment.
    from nodes import FAULTS, Nodes
    from run import Run

    class Chaos(Run):
        every, names = setting("EVERY", 20), os.environ.get("FAULTS", "").split() or sorted(FAULTS)
        # By event: nobody was promised these.
        given_up = {}

        def unanswered(self, event, finding):
            self.given_up[event["n"]] = finding

        def faults(self):
            moment, last = CALM_SECONDS, self.plan.seconds - CALM_SECONDS
            agenda = []
            while moment < last:
                agenda.append((moment, lambda: self.hub.fault(self.start)))
                moment += self.every
            return agenda

    unknown = [name for name in Chaos.names if name not in FAULTS]
    if unknown:
        fail(f"there is no fault {unknown[0]}; there are {' '.join(sorted(FAULTS))}")
    seed = setting("SEED", random.SystemRandom().randrange(1_000_000))
    minutes, people = setting("MINUTES", 30), setting("PEOPLE", 2000)
    raise_descriptor_limit(people * 2 + 2000)
    plan = Plan(seed, people, int(minutes * 60 / SECONDS_PER_EVENT), seconds=minutes * 60.0)
    outcome, out = Report(62, 16, 14), os.environ.get("OUT")
    if out:
        os.makedirs(out, exist_ok=True)
    with workspace(kept="logs are") as (folder, programs), contextlib.ExitStack() as stack:
        if out:
            stack.enter_context(contextlib.redirect_stdout(Tee(sys.stdout, os.path.join(out, "chaos.txt"))))
        gateways = Gateways(programs, binaries["tandem-gateways"], folder)
        nodes = Nodes(folder, gateways, seed, Chaos.names)
        run = Chaos(programs, folder, plan, gateways, nodes)
        say(f"chaos: SEED={seed} MINUTES={minutes} PEOPLE={people} EVERY={Chaos.every} BUILD={build}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        try:
            say("People join and connect")
            connected = run.prepare()
            say(f"  {connected:,} of {people:,} are connected to three nodes, by {len(run.clients)} processes")
            say(f"{len(plan.events)} events in {plan.seconds:.0f} s")
            run.perform()
            known = {person["user"]: Person(person) for person in plan.people}
            facts, oddities = read_logs(known, run.clients, run.end)
            outages = [(begin, end) for begin, end, _, _ in nodes.faults]
            judge = Judge(known, [event for event in plan.events if "answered" in event], gateways.requests, outages, run.end)
            judge.judge()
            stage = next((person["channel"] for person in plan.people if person["stage"]), None)
            # The clients left before the end of the run's logs: only what was told until then counts.
            webhooks = [told for told in nodes.webhooks() if told[0] <= run.end]
            with open(os.path.join(folder, "webhooks.tsv"), "w") as file:
                for at, *what, made in webhooks:
                    file.write("\t".join([f"{at - run.start:.3f}", *map(str, what), f"{made - run.start:.3f}"]) + "\n")
            departures = Departures(known, webhooks, nodes.faults, stage, run.start, run.end)
            trails(nodes.port, judge.lost)
            report(judge, nodes, departures, facts, oddities, plan, list(run.given_up.values()), outcome)
        finally:
            nodes.end()
        say(f"\n{'A target was missed' if outcome.is_missed else 'All targets are met'} (SEED={seed})")
    sys.exit(1 if outcome.is_missed else 0)


main()
