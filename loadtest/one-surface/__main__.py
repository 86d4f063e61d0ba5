"""Exactly one surface, tried on a real server: see loadtest/README.md. Settings: SEED, PARTICIPANTS, EVENTS, RECIPIENTS, KEEP."""

import json
import os
import random
import sys

sys.path.insert(1, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import decide
from common.output import Report, say, setting
from common.programs import raise_descriptor_limit
from common.workspace import built, workspace
from judge import DEADLINES, LEFT, SILENCE, SLIPPED, Judge, Person, percentile, read_logs
from plan import Plan
from programs import Gateways, Hub
from run import Run

DECIDE_LIVE = 0.2
DECIDE_MS_MAX = 150.0
DUPLICATES_MAX = 0.001
RESCUE_SLACK = 0.5
# With a companion: told twice, of the pairs that no crash touches; seconds to the push of a critical event once the screen was left.
COMPANION_TWICE_MAX, COMPANION_PUSH_MAX = 0.0005, 1.0
FINDINGS_SHOWN = 12


def report(run, judge, facts, oddities, report):
    plan, counts = run.plan, judge.counts
    pairs = counts["pairs"]
    say("\nPairs of event and participant")
    report.line("pairs", f"{pairs:,}")
    for name in ("told by the socket", "told by a notification", "told by both"):
        report.line(name, f"{counts[name]:,}")
    for name in sorted(counts):
        if name.startswith("sync:"):
            report.line(name, f"{counts[name]:,}")
    late = counts["told by the socket alone, later than a push would have been"]
    report.line("told by the socket alone, later than a push would have been", f"{late:,}", "0", late == 0)
    report.line("lost", f"{counts['lost']:,}", "0", counts["lost"] == 0)
    side_by_side(judge, report)
    told_twice(judge, report)
    report.line("notified first, then read by the returning app (same event id)", f"{sum(judge.later.values()):,}")
    for why, count in judge.later.most_common():
        report.line(f"  {why}", f"{count:,}")
    for name in ("read more than once on the socket (one event id)", "sent more than once to a gateway (one id)"):
        report.line(name, f"{counts[name]:,}")
    say("\nPushes to people who were looking at the app all the time")
    outside = judge.surplus["outside"]
    report.line("outside of crash windows", f"{outside:,}", "0", outside == 0)
    report.line("inside (from a kill until 35 s after the restart)", f"{judge.surplus['inside']:,}")
    report.line("  of these, whose apps tell their state", f"{judge.surplus['inside, telling their state']:,}")
    report.line("because their client process did not get to run", f"{judge.surplus['client did not run']:,}")
    say("\nSeconds from the publish's answer to the push at the gateway, outside of crash windows: p50 / p99 / pushes")
    for (row, policy), waits in sorted(judge.rescues.items()):
        if not waits:
            continue
        p50, p99 = percentile(waits, 0.5), percentile(waits, 0.99)
        most = DEADLINES.get(policy, 0) + RESCUE_SLACK if row == "stopped, socket open" and policy in ("critical", "notify") else None
        report.line(
            f"{row}: {policy}", f"{p50:.2f} / {p99:.2f} / {len(waits)}", f"p99 <= {most}" if most else "", p99 <= most if most else None)
    for policy in ("critical", "notify"):
        if not judge.rescues["stopped, socket open", policy]:
            report.line(f"stopped, socket open: {policy}", "none", "some", False)
    say("\nThe server")
    report.line("user CPU while events were published, us per pair", f"{run.user_seconds / pairs * 1e6:.1f}")
    waits = [event["answered"] - event["sent"] for event in plan.events if event["tries"] == 1]
    if waits:
        report.line("a publish's answer, ms, p50 / max, of those asked once", f"{percentile(waits, 0.5) * 1000:.0f} / {max(waits) * 1000:.0f}")
    report.line("publishes that were asked again", str(sum(event["tries"] > 1 for event in plan.events)))
    for name, count in sorted(facts.items()):
        report.line(name, f"{count:,}")
    for name in sorted(counts):
        if name.startswith("gateway answered"):
            report.line(name, f"{counts[name]:,}")
    for text in sorted(set(oddities))[:5]:
        say(f"  the hub complained: {text}")
    if judge.findings:
        say(f"\nFindings ({len(judge.findings)}; at most {FINDINGS_SHOWN} are shown; loadtest/README.md says how to read them)")
        for finding in judge.findings[:FINDINGS_SHOWN]:
            say(f"  - {finding}")


def side_by_side(judge, report):
    """Apps that do what the companions do beside those that do not."""
    say("\nSide by side, of critical and notify: with a companion | without")

    def line(what, values, form, most=None):
        texts = [form.format(value) if value is not None else "none" for value in values]
        met = None if most is None else values[0] is not None and values[0] <= most
        report.line(what, " | ".join(texts), f"<= {form.format(most)}" if most else "", met)

    line("pairs", [sum(number for (tells, _), number in judge.own_pairs.items() if tells == own) for own in (True, False)], "{:,}")
    line("told twice, where no crash was near", [judge.calm(own) for own in (True, False)], "{:.3%}", COMPANION_TWICE_MAX)
    line("told twice, three crashes included", [judge.told_twice(own)[1] for own in (True, False)], "{:.3%}")
    for policy in ("critical", "notify"):
        for part, name in ((0.5, "p50"), (0.99, "p99")):
            values = [percentile(judge.rescues[row, policy], part) for row in (LEFT, SLIPPED)]
            line(f"s to the push, off the screen already: {policy}, {name}", values, "{:.2f}",
                 COMPANION_PUSH_MAX if (policy, name) == ("critical", "p99") else None)


def told_twice(judge, report):
    say("\nTold twice: seen on the screen, and notified as well. Shares are of the same apps' pairs of critical and notify")
    for tells, name, without in ((True, "apps that tell their state, crashes included", ()), (False, "apps that say nothing", SILENCE)):
        own = sum(number for (its_tells, _), number in judge.own_pairs.items() if its_tells == tells)
        report.line(f"pairs of {name}", f"{own:,}")
        for why, count in judge.explanations(tells):
            if why not in without:
                report.line(f"  {why}", f"{count:,}")
        count, share = judge.told_twice(tells, without=without)
        what = "  told twice, for other reasons than their silence" if without else "  told twice, for all reasons"
        report.line(what, f"{count:,} = {share:.3%}", f"<= {DUPLICATES_MAX:.1%}", share <= DUPLICATES_MAX)
        by_session(judge, report, tells, without=without)
    report.line("  told twice though they stayed, with replay, no crash", f"{judge.staying:,}", "0", judge.staying == 0)
    say("  Told twice because the app says nothing: nobody can know whether its user looked (loadtest/README.md). No target")
    for why in SILENCE:
        count, share = judge.told_twice(False, of=why)
        report.line(f"  {why}", f"{count:,} = {share:.3%}")
        by_session(judge, report, False, of=why)
    unexplained = sum(judge.told_twice(tells, of="UNEXPLAINED")[0] for tells in (True, False))
    report.line("unexplained", f"{unexplained:,}", "0", unexplained == 0)
    report.line("told twice in all, of all pairs", f"{sum(judge.duplicates.values()) / judge.counts['pairs']:.3%}")


def by_session(judge, report, tells, **which):
    for stage, name in ((False, "with replay"), (True, "without")):
        count, share = judge.told_twice(tells, stage=stage, **which)
        report.line(f"    in the session {name}", f"{count:,} = {share:.3%}")


def keep(run, judge):
    """What the verdict was made of, beside the logs; `KEEP=1` leaves it there."""
    with open(os.path.join(run.folder, "run.json"), "w") as file:
        json.dump({
            "people": run.plan.people, "events": run.plan.events, "outages": run.outages, "pushes": run.gateways.requests, "end": run.end,
            "clients": [{"log": client.log, "users": client.users, "stops": client.stops} for client in run.clients]}, file)
    with open(os.path.join(run.folder, "findings.txt"), "w") as file:
        file.write("\n".join(judge.findings) + "\n")


def main():
    binaries = {name: built(name, "one-surface") for name in ("tandem", "tandem-gateways")}
    seed = setting("SEED", random.SystemRandom().randrange(1_000_000))
    participants, events = setting("PARTICIPANTS", 2000), setting("EVENTS", 100)
    recipients = setting("RECIPIENTS", 10_000)
    raise_descriptor_limit(max(participants, recipients) + 1000)
    plan = Plan(seed, participants, events)
    outcome = Report(62, 16, 14)
    with workspace(kept="logs are") as (folder, programs):
        channels = os.path.join(os.path.dirname(os.path.abspath(__file__)), "channels")
        gateways = Gateways(programs, binaries["tandem-gateways"], folder)
        run = Run(programs, folder, plan, gateways, Hub(programs, binaries["tandem"], folder, channels, gateways))
        say(f"one-surface: SEED={seed} PARTICIPANTS={participants} EVENTS={events}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        say("People join and connect")
        connected = run.prepare()
        say(f"  {connected:,} of {participants:,} are connected, by {len(run.clients)} processes; {len(plan.processes) - 3} of these get stopped")
        say(f"{events} events in {plan.seconds:.0f} s")
        run.perform()
        people = {person["user"]: Person(person) for person in plan.people}
        facts, oddities = read_logs(people, run.clients, run.end)
        judge = Judge(people, plan.events, run.gateways.requests, run.outages, run.end)
        judge.judge()
        run.hub.kill()
        report(run, judge, facts, oddities, outcome)
        keep(run, judge)
        if recipients:
            say("\nDeciding one event")
            median, times, cpu, live = decide.measure(
                programs, binaries["tandem"], folder, channels, gateways, recipients, int(recipients * DECIDE_LIVE), say)
            outcome.line(
                f"ms to decide, commit and answer for {recipients:,}, {live:,} of them live", f"{median:.0f}", f"<= {DECIDE_MS_MAX:.0f}",
                median <= DECIDE_MS_MAX)
            outcome.line("  all rounds", " ".join(f"{value:.0f}" for value in sorted(times)))
            outcome.line("user CPU of the server, us per recipient", f"{cpu:.1f}")
        say(f"\n{'A target was missed' if outcome.is_missed else 'All targets are met'} (SEED={seed})")
    sys.exit(1 if outcome.is_missed else 0)


main()
