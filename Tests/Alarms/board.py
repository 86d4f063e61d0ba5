"""docs/grafana/tandem.json on a real Prometheus that reads a real hub: each query is understood, and each has data."""

import json
import os
import socket
import time
import urllib.parse
import urllib.request

import cases
import wire
from common import frames
from common.programs import wait_for
from metrics import RULES, panels

# Data that comes with what did not happen here.
RARE = {"Replays", "Webhooks", "Alarms"}


def prometheus(world, port):
    """A Prometheus that reads the hub each second, on a free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        own = free.getsockname()[1]
    configuration = os.path.join(world.folder, "prometheus.json")
    with open(configuration, "w") as file:
        json.dump({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": [RULES],
            "scrape_configs": [{"job_name": "tandem", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}]}, file)
    output = os.path.join(world.folder, "prometheus.log")
    process = world.programs.start(
        ["prometheus", f"--config.file={configuration}", f"--storage.tsdb.path={world.folder}/prometheus",
         f"--web.listen-address=127.0.0.1:{own}"], output)
    world.started.append(process)
    wait_for("Server is ready to receive web requests", process, 60, "prometheus", output)
    return own


def ask(port, path, **query):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/{path}?{urllib.parse.urlencode(query)}", timeout=30) as answer:
        return json.load(answer)["data"]


def traffic(port, gateways):
    """A subscriber, events with and without a policy, a push, and somebody who is refused."""
    sockets = []
    for key in (wire.KEY, "no-such-key"):
        client = socket.create_connection(("127.0.0.1", port))
        client.sendall(wire.upgrade(port, "swift").replace(wire.KEY.encode(), key.encode()))
        client.sendall(frames.client_frame(frames.TEXT, json.dumps({"event": "pusher:subscribe", "data": {"channel": "news"}}).encode()))
        sockets.append(client)
    cases.call(port, "PUT", "/sessions/main", definition="arena", join_code="maincode")
    body = json.dumps({"name": "Ada", "email": "ada@example.com", "device_token": "a" * 64, "device_platform": "ios"}).encode()
    wire.Caller(port, timeout=30).call(wire.request("POST", "/api/scenarios/sessions/maincode/join", body))
    for number in range(5):
        cases.call(port, "POST", "/events", name="hello", channels=["news"], data="{}")
        cases.call(port, "POST", "/events", name="alarm", channels=["private-arena-main"], data=json.dumps({"n": number}))
    gateways.wait_quiet(30)
    return sockets


def try_board(world, expect):
    gateways = world.gateways()
    port, _, _ = cases.node(world, gateways)
    server = prometheus(world, port)
    cases.until(lambda: ask(server, "query", query="tandem_backplane_connected == 1")["result"], "Prometheus to see the node")
    sockets = traffic(port, gateways)
    queries = list(panels())

    def empty():
        return sorted({title for title, query in queries if not ask(server, "query", query=query)["result"]} - RARE)

    # Rates need two readings.
    end = time.monotonic() + 30
    while (missing := empty()) and time.monotonic() < end:
        time.sleep(0.5)
    expect(not missing, f"each of {len(queries)} queries of the dashboard has data{''.join(f' (none: {title})' for title in missing)}")
    rules = [rule for group in ask(server, "rules")["groups"] for rule in group["rules"]]
    expect([rule["name"] for rule in rules if rule["health"] != "ok"] == [], f"a real Prometheus evaluates all {len(rules)} rules")
    for client in sockets:
        client.close()
