"""The goals of the fan-out in one table: what was counted in this run, and the ratios of the last comparison that is kept."""

import glob
import os
import re

import report

RESULTS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "results")
# The rows of thresholds.json that are goals of the fan-out, in the order of the table.
COUNTED = [
    "instructions_per_delivery", "instructions_per_delivery_16", "writes_per_delivery_16", "allocations_per_delivery",
    "retains_per_delivery", "releases_per_delivery", "pthread_locks_per_delivery", "rooms_cpu_ratio", "two_loops_cpu_ratio",
    "two_loops_cpu_ratio_16", "two_loops_connection_split", "two_loops_cpu_split", "bytes_per_idle_connection",
    "bytes_per_idle_connection_15000", "bytes_per_idle_tls_connection",
]
TARGET = re.compile(r"^  (?P<what>.+?)  +(?P<figures>\S.*?)  +(?P<bound>[<>]= [0-9.]+)  +(?P<verdict>ok|MISSED)$")


def compared():
    """Folder's name and target lines of the newest kept comparison; None where none is kept."""
    for path in sorted(glob.glob(os.path.join(RESULTS, "*", "table.txt")), reverse=True):
        with open(path) as file:
            found = [match for match in map(TARGET.match, file.read().splitlines()) if match]
        if found:
            return os.path.basename(os.path.dirname(path)), found
    return None


def lines(results, thresholds):
    """What to print; empty where nothing of it was measured in this run."""
    rows = []
    for name in COUNTED:
        if name in results and thresholds[name]["goal"] is not None:
            value, goal = results[name], thresholds[name]["goal"]
            verdict = "ok" if report.is_within(value, goal) else "MISSED"
            rows.append(f"  {thresholds[name]['what']:58}{report.number(value):>28}  {'<= ' + report.number(goal):>12}  {verdict}")
    if not rows:
        return []
    kept = compared()
    if kept:
        rows.append(f"  timed, of loadtest/results/{kept[0]} (loadtest/compare.sh):")
        rows += [f"  {row['what']:58}{' '.join(row['figures'].split()):>28}  {row['bound']:>12}  {row['verdict']}" for row in kept[1]]
    return ["", "the goals of the fan-out"] + rows
