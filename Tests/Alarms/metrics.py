"""What a hub prints at /metrics, and what Prometheus' own rule engine makes of it."""

import json
import os
import re
import subprocess
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RULES = os.path.join(ROOT, "docs", "grafana", "alerts.yaml")
BOARD = os.path.join(ROOT, "docs", "grafana", "tandem.json")
SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
NAME = re.compile(r"\b((?:tandem|process)_[a-z0-9_]+)")
# Seconds between two samples of a series in a test of rules; and after how many of these it is judged.
STEP, STEPS = 15, 80
# Of the samples, those before something happened.
BEFORE = 40


class Reading:
    """One scrape: values by series, in Prometheus' notation."""

    def __init__(self, port, context=None):
        scheme = "https" if context else "http"
        with urllib.request.urlopen(f"{scheme}://127.0.0.1:{port}/metrics", timeout=30, context=context) as answer:
            text = answer.read().decode()
        self.time, self.values, self.counters = time.monotonic(), {}, set()
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split()
                if kind in ("counter", "histogram"):
                    self.counters |= {name, f"{name}_bucket", f"{name}_sum", f"{name}_count"}
            elif line and not line.startswith("#"):
                name, labels, value = SAMPLE.match(line).groups()
                labels = f"{labels}," if labels else ""
                self.values[name, f'{name}{{{labels}instance="hub",job="tandem"}}'] = float(value)


def alerts():
    """The names of all alerts, and each one's expression."""
    with open(RULES) as file:
        return dict(re.findall(r"- alert: (\w+).*\n\s+expr: (.*)", file.read()))


def series(before, after, grows):
    """The samples of a quiet time, and then of what happened between two readings.

    A counter either steps from its first value to its last, or `grows` on as fast as it did between the readings.
    """
    for (name, text), value in after.values.items():
        first = before.values.get((name, text), 0.0 if name in after.counters else value)
        if name in after.counters:
            slope = (value - first) / max(after.time - before.time, 1e-9) * STEP if grows else 0.0
            yield text, f"{first:.9g}+0x{BEFORE} {value:.9g}+{slope:.9g}x{STEPS}"
        else:
            yield text, f"{first:.9g}+0x{BEFORE} {value:.9g}+0x{STEPS}"


def firing(folder, before, after, grows=False, is_up=True):
    """The alerts that fire in the end, by Prometheus' rule engine."""
    inputs = [{"series": text, "values": values} for text, values in series(before, after, grows)]
    inputs.append({"series": 'up{instance="hub",job="tandem"}', "values": f"1+0x{BEFORE} {int(is_up)}+0x{STEPS}"})
    found = []
    for alert in alerts():
        # 10 minutes after it happened: longer than any rule waits, and within what the longest of them looks back at.
        question = {"expr": f'group(ALERTS{{alertname="{alert}",alertstate="firing"}})', "eval_time": f"{(BEFORE + 40) * STEP}s"}
        test = {
            "rule_files": [RULES], "evaluation_interval": f"{STEP}s",
            "tests": [{"interval": f"{STEP}s", "input_series": inputs,
                       "promql_expr_test": [question | {"exp_samples": [{"labels": "{}", "value": 1}]}]}]}
        path = os.path.join(folder, "rules.json")
        with open(path, "w") as file:
            json.dump(test, file)
        run = subprocess.run(["promtool", "test", "rules", path], capture_output=True, text=True, timeout=120)
        if run.returncode == 0:
            found.append(alert)
        elif "got:[]" not in (run.stdout + run.stderr).replace(" ", "").replace("\n", "").replace("nil", "[]"):
            raise SystemExit(f"alarms: promtool failed:\n{run.stdout}{run.stderr}")
    return found


def panels():
    """Each panel's title with each of its expressions, as Grafana sends them."""
    with open(BOARD) as file:
        board = json.load(file)
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"].replace("$__rate_interval", "1m").replace("$instance", ".*")
