"""Several nodes as one hub beside one node, measured in one run: see loadtest/README.md."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.dirname(HERE), os.path.join(os.path.dirname(HERE), "bench")]

from common.output import Report, say, setting  # noqa: E402
from common.programs import fail, raise_descriptor_limit  # noqa: E402
from common.workspace import workspace  # noqa: E402
from hubs import World  # noqa: E402
from measures import Measures  # noqa: E402

KINDS = ["deliver", "publish", "join", "storm", "sql"]


def load(moment):
    say(f"  load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores {moment}")


def main():
    names = sys.argv[1:] or KINDS
    if not set(names) <= set(KINDS):
        fail(f"usage: loadtest/nodes.sh [{'|'.join(KINDS)}]…")
    clients = setting("CLIENTS", 10_000)
    # Both ends are in processes of their own, and inherit this.
    raise_descriptor_limit(clients + 1000)
    with workspace(kept="what was run with is") as (folder, programs):
        load("at the beginning")
        report = Report(52, 28, 10)
        measures = Measures(World(folder, programs), report, setting("ROUNDS", 5), setting("RATE", 50), clients)
        measures.rest()
        for name in names:
            getattr(measures, name)()
        load("at the end")
        say(f"\n{'A target was missed' if report.is_missed else 'All targets are met'}")
    sys.exit(1 if report.is_missed else 0)


main()
