"""The console of one node shows what happens on two others. Needs redis-server, and PostgreSQL from Tests/StoreTests/postgres.sh."""

import copy
import json
import os
import re
import urllib.error
import urllib.request

import stage
import wire
from common.nodes import start_redis

CHANNEL = "presence-stage-nodes"
PARTITIONS = 64


class Node(stage.Hub):
    """One node of three."""

    def __init__(self, world, place, redis):
        super().__init__(
            world.programs, world.binaries["tandem"], world.folder, world.hub.channels, world.gateways, loops=1, name=f"node-{place}")
        self.shared = {"TANDEM_STORE": os.environ["TANDEM_TEST_POSTGRES"], "TANDEM_BACKPLANE": f"redis://127.0.0.1:{redis}"}

    def partitions(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=30) as answer:
            return int(re.search(rb"^tandem_postgres_partitions_owned (\d+)", answer.read(), re.MULTILINE)[1])


def try_all(world):
    if not os.environ.get("TANDEM_TEST_POSTGRES"):
        print("  nodes: skipped: Tests/StoreTests/postgres.sh python3 -B Tests/BrowserTests nodes")
        return
    _, redis = start_redis(world.programs, world.folder)
    nodes = [Node(world, place, redis) for place in (1, 2, 3)]
    for node in nodes:
        node.start()
    views = [view(world, node) for node in nodes]
    counts = lambda: [node.partitions() for node in nodes]
    world.expect(
        stage.eventually(lambda: sum(counts()) == PARTITIONS and max(counts()) - min(counts()) <= 1, 60),
        f"three nodes share the partitions: {counts()}")
    try:
        screens(world, *views)
        signed_out(world, *views)
    finally:
        for node in nodes:
            world.programs.kill(node.process)


def view(world, node):
    """The world as somebody sees it who asks this node."""
    seen = copy.copy(world)
    seen.hub, seen.caller = node, wire.Caller(node.port, timeout=30)
    return seen


def screens(world, first, second, third):
    nora, olaf, petra = first.people("nodes", "nora", "olaf", "petra")
    tail = stage.operator(first, "live")
    tail.wait_text("all nodes")
    # Other nodes hear of a new listener within a second.
    names = node_names(tail)
    world.expect(len(names) == 3, f"node 1 knows three nodes: {sorted(names)}")
    tabs = [second.open(olaf), third.open(petra)]
    told = lambda kind, user: any(row[1] == kind and row[3] == user for row in tail.rows())
    world.expect(
        stage.eventually(lambda: told("join", olaf["user"]) and told("join", petra["user"])), "its live tail shows who comes to nodes 2 and 3")
    # Every channel has another owner.
    event = stage.publish(third, channel=CHANNEL)
    world.expect(
        stage.eventually(lambda: all(told("decision", one["user"]) for one in (nora, olaf, petra))),
        "and what is decided about an event that node 3 was asked to publish")
    world.expect(stage.eventually(lambda: told("receipt", petra["user"])), "and the receipt of somebody on node 3")
    # One tab is in front of the others.
    tabs[0].show()
    rows = lambda: stage.call(first, "GET", "/sessions/nodes/participants")["participants"]
    stage.eventually(lambda: any(row["user"] == olaf["user"] and row["app_state"] == "foreground" for row in rows()))
    stage.publish(second, channel=CHANNEL)
    world.expect(stage.eventually(lambda: told("receipt", olaf["user"])), "and of somebody on node 2")
    world.expect(stage.eventually(lambda: told("push", nora["user"])), "and the push of somebody who is not there")
    plain = stage.call(second, "POST", "/events", {"name": "plain", "channel": "lobby", "data": "{}"})
    world.expect(stage.eventually(lambda: any("plain" in row[4] for row in tail.rows())), f"and an event without a policy {plain or ''}")
    tail.picture("nodes-live")
    world.expect(not stage.clean(tail), f"the live tail of three nodes is well {stage.clean(tail) or ''}")
    channel(world, first, names, second, third, olaf, petra)
    trail(world, first, third, event, petra)
    overview(world, first, second, third)
    for tab in tabs:
        tab.close()
    world.expect(stage.eventually(lambda: told("leave", olaf["user"]) and told("leave", petra["user"])), "the live tail shows who goes, too")
    world.expect("all nodes" in tail.text(), "and has missed no node meanwhile")
    tail.close()


def node_names(page):
    """The nodes' names by their ports."""
    nodes = page.value("fetch('api/cluster').then((answer) => answer.json()).then((found) => found.nodes)")
    return {int(node["address"].rsplit(":", 1)[1]): node["node"] for node in nodes}


def channel(world, first, names, second, third, olaf, petra):
    page = stage.operator(first, "channel", CHANNEL)
    page.wait_text("of 3 on the roster are there")
    place = lambda user: next((row[4:6] for row in page.rows() if row[0] == user), None)
    wanted = {one["user"]: f"node {names[node.hub.port][:8]}, loop 0" for one, node in ((olaf, second), (petra, third))}
    found = {user: place(user) for user in wanted}
    world.expect({user: cells and cells[0] for user, cells in found.items()} == wanted, f"a channel's members are on nodes 2 and 3: {found}")
    world.expect(all(cells and cells[1].endswith(" ago") for cells in found.values()), "and the age of their last receipts is known")
    page.picture("nodes-channel")
    world.expect(not stage.clean(page), f"the channel of three nodes is well {stage.clean(page) or ''}")
    page.close()


def trail(world, first, third, event, petra):
    page = stage.operator(first, "event", event)
    page.wait_text("Recipients")
    wanted = [[row["user"], row["state"]] for row in stage.call(third, "GET", f"/events/{event}/deliveries")["deliveries"]]
    world.expect([row[:2] for row in page.rows(2)] == wanted, f"node 1 shows the trail that node 3 answers: {wanted}")
    stage.visit(first, page, "person", petra["user"], event)
    page.wait_text("got it: a receipt came")
    page.wait_text("connection opened")
    page.picture("nodes-person")
    world.expect(not stage.clean(page), f"a person of node 3 is well on node 1, with the connection {stage.clean(page) or ''}")
    page.close()


CONNECTIONS_ADD_UP = """(() => {
    const nodes = [...document.querySelectorAll("table")].find((table) => table.innerText.includes("Partitions"));
    const sum = [...nodes.tBodies[0].rows].reduce((all, row) => all + Number(row.cells[3].textContent), 0);
    return sum > 0 && Number(document.querySelector(".tile b").textContent) === sum;
})()"""


def overview(world, first, second, third):
    page = stage.operator(first, "now")
    for node in (first, second, third):
        page.wait_text(f"127.0.0.1:{node.hub.port}")
    page.wait_text("numbers of all 3 nodes")
    page.wait_text("0 of ")
    page.wait(CONNECTIONS_ADD_UP)
    world.expect(page.value(CONNECTIONS_ADD_UP), "the connections of all nodes add up")
    page.picture("nodes-now")
    world.expect(not stage.clean(page), f"the overview names all three nodes {stage.clean(page) or ''}")
    page.close()


def signed_out(world, first, second, third):
    """A session that is signed out on one node is refused by the others."""
    cookie, other = (f"{name}={value}" for name, value in (stage.cookie("viewer"), stage.cookie("viewer")))
    nodes = (first, second, third)
    world.expect([answer(node, cookie) for node in nodes] == [200, 200, 200], "a session is known to all nodes")
    world.expect(answer(second, cookie, "DELETE", "session") == 200, "it is signed out on node 2")
    world.expect(answer(second, cookie) == 401, "where it is refused at once")
    world.expect(stage.eventually(lambda: answer(first, cookie) == 401 and answer(third, cookie) == 401, 10), "and soon on the others")
    world.expect([answer(node, other) for node in nodes] == [200, 200, 200], "another session stays")


def answer(node, cookie, method="GET", path="apps"):
    """The status of a request of the console's page."""
    request = urllib.request.Request(
        f"{stage.root(node)}api/{path}", method=method, headers={"Cookie": cookie, "X-Tandem-Console": "1", "Sec-Fetch-Site": "same-origin"})
    try:
        with urllib.request.urlopen(request, timeout=30) as found:
            return found.status
    except urllib.error.HTTPError as error:
        return error.code
