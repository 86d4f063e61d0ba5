"""`python3 loadtest/bench`: measures the hub's deterministic costs and compares them with their thresholds."""

import argparse
import functools
import os
import signal
import subprocess
import sys

sys.path.insert(1, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import goals
from measures import accept, decided, instructions, loops, memory, publish, relief, rooms, stalled, storm, writes
import report

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MEASURES = {
    "instructions": instructions.measure,
    "rooms": rooms.measure,
    "publish": publish.measure,
    "decided": decided.measure,
    "writes": writes.measure,
    "memory": memory.measure,
    "relief": relief.measure,
    "stalled": stalled.measure,
    "accept": accept.measure,
    "loops": loops.measure,
    "storm": storm.measure,
}
# Those that no other work on the machine changes: instructions, allocations and system calls, and no CPU time.
COUNTED = {
    "instructions": instructions.measure,
    "rooms": functools.partial(rooms.measure, is_timed=False),
    "publish": functools.partial(publish.measure, is_timed=False),
    "decided": decided.measure,
    "writes": writes.measure,
}
# What `--profile` prints: of each phase a title, and where its tuple has the number of units.
PROFILES = {
    "instructions": {
        "alone": ("instructions per delivery, 1 outstanding, 1,000 subscribers", 2),
        "joined": ("instructions per delivery, 16 outstanding, 1,000 subscribers", 2),
        "few": ("instructions per publish with 10 subscribers", 1),
    },
    "rooms": {
        "rooms": ("instructions per delivery, 100 rooms of 10 subscribers in each publish", 2),
        "empty": ("instructions per publish to 100 channels without subscribers", 1),
    },
    "publish": {
        "hub": ("instructions per publish to nobody, 1 outstanding", 1),
        "bare": ("instructions per request at the bare endpoint, 1 outstanding", 1),
    },
    "decided": {
        "to_1": ("instructions per publish with a definition, one recipient", 1),
        "to_100": ("the same with 100 recipients", 1),
    },
    "accept": {
        "few": ("instructions per client until it is subscribed", 1),
        "many": ("the same with 3,000 there", 1),
    },
}


def demangled(lines):
    """Swift's names as one reads them, where the toolchain is at hand."""
    try:
        done = subprocess.run(
            ["swift", "demangle", "--simplified"], input="\n".join(lines), capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return lines
    return done.stdout.splitlines()


def main():
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("measures", nargs="*", metavar="counted|" + "|".join(MEASURES),
                        help="what to measure; everything when not given; counted: what needs no quiet machine")
    parser.add_argument("--binary", default=os.path.join(ROOT, ".build", "release", "tandem"), help="the hub to measure")
    parser.add_argument("--profile", type=int, default=0, metavar="N", help="also print the N hottest functions")
    options = parser.parse_args()
    binary = os.path.abspath(options.binary)
    if not os.access(binary, os.X_OK):
        parser.error(f"there is no {binary}: run `make build` first")
    measures = COUNTED if options.measures == ["counted"] else {name: MEASURES.get(name) for name in options.measures or MEASURES}
    for name in measures:
        if name not in MEASURES:
            parser.error(f"there is no measure {name}: choose from {', '.join(MEASURES)}")
    folder = os.path.join(ROOT, ".build", "bench")
    os.chdir(ROOT)
    # The time limit's signal unwinds like an error, so that no hub is left behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench: ended by SIGTERM"))

    results, profiles = {}, {}
    for name, measure in measures.items():
        print(f"bench: {name} ...", file=sys.stderr, flush=True)
        measured = measure(binary, os.path.join(folder, name))
        if name in PROFILES:
            measured, profiles[name] = measured
        results.update(measured)

    thresholds = report.load_thresholds()
    lines, passed = report.table(results, thresholds)
    print("\n".join(lines + goals.lines(results, thresholds)))
    for name in profiles if options.profile else ():
        for phase, (title, unit) in PROFILES[name].items():
            print(f"\n{title}")
            print("\n".join(demangled(report.hottest(profiles[name][phase][0], profiles[name][phase][unit], options.profile))))
    if not passed:
        # Once more at the end, where whoever sees only the last lines finds them.
        print("\n".join(line for line in lines if report.WORSE in line), file=sys.stderr)
        print("bench: a number is worse than its gate; loadtest/README.md says how to find out why", file=sys.stderr)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
