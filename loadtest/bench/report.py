"""The table that `make bench` prints, and its verdict."""

import json
import os
import statistics

# Counts solved from two runs carry some background work (timers, the other threads); one call in two hundred deliveries is none.
NOTHING = 0.005
WORSE = "WORSE THAN THE GATE"

THRESHOLDS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "thresholds.json")


class Spread(float):
    """The median of several rounds, which counts for the gate, with the lowest and the highest of them."""

    @classmethod
    def of(cls, values):
        values = list(values)
        spread = cls(statistics.median(values))
        spread.lowest, spread.highest = min(values), max(values)
        return spread


def load_thresholds():
    with open(THRESHOLDS) as file:
        return json.load(file)


def is_within(value, bound):
    return value <= (bound if bound > 0 else NOTHING)


def number(value):
    if value is None:
        return "-"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    # A zero that was measured, and not one that was rounded off, would be misleading to sign.
    return f"{value + 0.0:.4f}".replace("-0.0000", "0.0000")


def judge(row, value):
    if row["gate"] is None:
        return "measured"
    if not is_within(value, row["gate"]):
        return WORSE
    if row["goal"] is not None and not is_within(value, row["goal"]):
        return "goal not met yet"
    return "ok"


def table(results, thresholds):
    """The lines to print, and whether every gated number that was measured is within its gate."""
    lines = [f"{'':58}{'measured':>12}{'gate':>12}{'goal':>12}  verdict"]
    passed = True
    for name, row in thresholds.items():
        if name not in results:
            continue
        verdict = judge(row, results[name])
        passed = passed and not verdict.startswith(WORSE)
        if isinstance(results[name], Spread):
            verdict += f" ({number(results[name].lowest)} to {number(results[name].highest)})"
        lines.append(
            f"{row['what']:58}{number(results[name]):>12}{number(row['gate']):>12}{number(row['goal']):>12}  {verdict}")
    return lines, passed


def hottest(profile, units, rows):
    """The functions that execute most, in instructions per unit: by themselves, and with what they call.

    The second number is too high for functions that call themselves by way of others.
    """
    most = sorted(profile.instructions.items(), key=lambda item: -item[1])[:rows]
    return [f"{count / units:12.1f} {profile.inclusive[name] / units:12.1f}  {name}" for name, count in most if count > 0]
