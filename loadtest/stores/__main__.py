"""PostgreSQL as the store, measured: see loadtest/README.md."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.dirname(HERE), os.path.join(os.path.dirname(HERE), "push")]

import rot
import sizes
import speed
from common.output import say
from common.programs import fail
from common.workspace import workspace
from world import World

KINDS = {"rot": rot, "sizes": sizes, "speed": speed}


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in KINDS:
        fail("usage: loadtest/stores.sh speed|rot|sizes")
    with workspace(kept="what was run with is") as (folder, programs):
        say(f"stores: {sys.argv[1]}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        report = KINDS[sys.argv[1]].measure(World(folder, programs))
        say(f"\n{'A target was missed' if report.is_missed else 'All targets are met'}")
    sys.exit(1 if report.is_missed else 0)


main()
