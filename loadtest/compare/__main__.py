"""Servers beside each other under the same load: see loadtest/README.md.

Settings: SERVERS, LOADS, TLS, ROUNDS, SUBSCRIBERS, CROWD, SECONDS, BYTES, ENVELOPE, SERVER_CORE, CLIENT_CORES. `--out FOLDER` keeps the report.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time

sys.path.insert(1, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import rounds as r
import servers as s
from common import programs as p
from common.output import say
from common.workspace import ROOT, built, workspace

# Rounds in addition to those that were asked for, in place of spoiled ones.
REPEATED_MAX = 3
DESCRIPTORS_BESIDE = 500
VENV = ".build/compare-venv"


def number(name, default, kind=int, least=1):
    text = os.environ.get(name, "")
    try:
        value = kind(text) if text else default
    except ValueError:
        p.fail(f"{name} is a number, not {text!r}")
    if value < least:
        p.fail(f"{name} is at least {least}, not {text}")
    return value


def cores():
    """The server's core, and the client's: two where there are three, for receiving and publishing."""
    have = sorted(os.sched_getaffinity(0))
    if len(have) < 2:
        p.fail("two cores are needed, one for the server and one for the client")
    server = number("SERVER_CORE", have[-1], least=0)
    others = [core for core in have if core != server]
    text = os.environ.get("CLIENT_CORES", "")
    try:
        client = [int(core) for core in text.replace(",", " ").split()] or others[-2:]
    except ValueError:
        p.fail(f'CLIENT_CORES are numbers such as "1 2", not {text!r}')
    if server not in have or not set(client) <= set(have) or server in client:
        p.fail(f"SERVER_CORE and CLIENT_CORES are different ones of {have}")
    return server, client


def raise_descriptors(wanted):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < wanted:
        p.fail(f"{wanted} descriptors are needed and {hard} are allowed: run `ulimit -n {wanted}` as root, or set CROWD lower and LOADS without paced")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def commit():
    done = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty", "--abbrev=12"], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


# What a line says while it runs: figure and its form.
SAID = (
    ("server CPU per publish", "{:.1f} us/publish"), ("server CPU per delivery", "{:.2f} us/delivery"),
    ("last delivery", "last after {:.1f} ms"), ("let in per second", "{:,.0f} let in/s"), ("p99 of a delivery", "p99 {:,.0f} us"))


def summary(reports):
    """One line of a server's round."""
    said = []
    for name, form in SAID:
        values = [value for value in (r.figure(report, name) for report in reports) if value is not None]
        if values:
            said.append(" and ".join(form.format(value) for value in values))
    said.append(f"other work {max(r.figure(one, 'machine busy with other things') for one in reports):.0f} %")
    return ", ".join([*said, f"steal {r.stolen(reports):.1f} %"])


def measure_all(measurer, servers, count):
    """Rounds in which nobody stole, as many as wanted or as the bound allows; then the least spoiled in their place, and warnings."""
    clean, spoiled, empty, warnings = [], [], 0, []
    while len(clean) < count and len(clean) + len(spoiled) + empty < count + REPEATED_MAX:
        place = len(clean) + len(spoiled) + empty
        # Another one begins each time, so that none always follows the same one.
        order = servers[place % len(servers):] + servers[:place % len(servers)]
        found = {}
        try:
            for server in order:
                found[server.name] = measurer.measure(server)
                say(f"  round {place + 1}  {server.name:<11}{summary(found[server.name])}")
        except r.Unmeasured as why:
            empty += 1
            say(f"  round {place + 1} is left out: {why}")
            continue
        worst = max(r.stolen(reports) for reports in found.values())
        if worst > r.STOLEN_PERCENT_MAX:
            spoiled.append((worst, found))
            say(f"  round {place + 1} is spoiled: {worst:.1f} % of the machine went to others")
        else:
            clean.append(found)
    if len(clean) < count and spoiled:
        spoiled.sort(key=lambda entry: entry[0])
        used = spoiled[:count - len(clean)]
        clean += [found for _, found in used]
        warnings.append(f"{len(used)} of {len(clean)} rounds are among the figures although up to {used[-1][0]:.1f} % of the machine went to others.")
    elif spoiled:
        warnings.append(f"{len(spoiled)} rounds were repeated because more than {r.STOLEN_PERCENT_MAX} % of the machine went to others.")
    if not clean:
        p.fail("no round could be measured: the machine is too busy")
    if empty:
        warnings.append(f"{empty} rounds were left out because the machine was too busy to measure anything in them.")
    reports = [report for server in servers for found in clean for report in found[server.name]]
    order = {name: place for place, (name, _, _) in enumerate(measurer.sizes.scenarios())}
    return sorted(reports, key=lambda report: order[report["scenario"]]), warnings


def annotate(reports, sizes, servers, count, server_core, client_cores):
    others = max(r.figure(report, "machine busy with other things") for report in reports)
    about = [
        ("commit", commit()), ("bytes that bare events get in addition", str(sizes.envelope)),
        ("rounds, interleaved", str(count)), ("server's core", str(server_core)),
        ("client's cores", " ".join(map(str, client_cores))), ("versions", "; ".join(filter(None, (server.version() for server in servers)))),
    ]
    for report in reports:
        report["machine"] = [{"name": name, "value": value} for name, value in about] + report["machine"]
    if others > 10:
        return [f"Other work took up to {others:.0f} % of the machine: trust the ratios of the same round only, and little."]
    return []


def write(folder, data, binary):
    """report.json, report.html and table.txt; returns the table and whether a target was missed."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "report.json")
    # A line for each run: short enough to be kept, and still comparable line by line.
    head = json.dumps({**data, "reports": []}, indent=1, sort_keys=True)
    lines = ",\n".join(json.dumps(report, sort_keys=True, separators=(",", ":")) for report in data["reports"])
    with open(path, "w") as file:
        file.write(head.replace('"reports": []', f'"reports": [\n{lines}\n]') + "\n")
    table = p.run([binary, "report", path, "--html", os.path.join(folder, "report.html")], "making the report")
    with open(os.path.join(folder, "table.txt"), "w") as file:
        file.write(table)
    return table, " MISSED" in table


def main():
    parser = argparse.ArgumentParser(prog="loadtest/compare.sh", description="Put the hub beside other servers.")
    parser.add_argument("--out", help="folder for report.json, report.html and table.txt")
    out = parser.parse_args().out
    count = number("ROUNDS", 7)
    sizes = r.Sizes(number("SUBSCRIBERS", 1000), number("CROWD", 10_000), number("SECONDS", 2.5, float, 0.5), number("BYTES", 128, least=48),
                    number("ENVELOPE", 0, least=0), os.environ.get("LOADS", "").split() or r.LOADS)
    if not set(sizes.loads) <= set(r.LOADS):
        p.fail(f"LOADS knows {' '.join(r.LOADS)}, not {' '.join(sorted(set(sizes.loads) - set(r.LOADS)))}")
    is_secure = number("TLS", 0, least=0) == 1
    names = os.environ.get("SERVERS", "").split() or [name for name, kind in s.KINDS.items() if kind.speaks_tls or not is_secure]
    server_core, client_cores = cores()
    raise_descriptors(sizes.connections_max() + DESCRIPTORS_BESIDE)
    binary = built("tandem-loadtest", "compare")
    servers = s.chosen(names, ROOT, os.path.join(ROOT, VENV), is_secure)
    started = time.monotonic()
    with workspace() as (folder, programs):
        for server in servers:
            server.build(folder)
        say(f"compare: {' '.join(names)}; {count} rounds; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; server on core {server_core}, "
            f"client on {' '.join(map(str, client_cores))}")
        measurer = r.Measurer(programs, binary, folder, sizes, {server_core}, set(client_cores))
        reports, warnings = measure_all(measurer, servers, count)
        warnings += annotate(reports, sizes, servers, count, server_core, client_cores)
        data = {
            "title": "Servers beside each other" + (", through TLS" if is_secure else ""), "warnings": warnings,
            "targets": r.targets(sizes, names, is_secure), "reports": reports}
        table, is_missed = write(out or os.path.join(folder, "report"), data, binary)
        say(f"\n{table}")
        say(f"{time.monotonic() - started:.0f} s" + (f"; written to {out}" if out else ""))
    sys.exit(1 if is_missed else 0)


main()
