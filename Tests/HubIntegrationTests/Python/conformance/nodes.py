"""One surface over several nodes: the people of a session are on different nodes, and so are the backend's requests (docs/nodes.md).

These checks are there where there are several nodes.
"""

import asyncio
import json
import time

from cluster import NODES
from hub import Hub, PATIENCE, equal, expect


async def _answer(node, method, path, body=None):
    """The answer of a node. 503 says that nothing was done, so the request is repeated: a channel may change its owner meanwhile."""
    ends = time.monotonic() + PATIENCE
    while (answer := await Hub.call(node, method, path, body)).status == 503 and time.monotonic() < ends:
        await asyncio.sleep(0.1)
    return answer


async def _on(node, method, path, body=None, status=200):
    answer = await _answer(node, method, path, body)
    expect(answer.status == status, method, path, answer.status, answer.body)
    return json.loads(answer.body) if answer.body else None


async def _session(s, name, people, definition="quiz"):
    """A session whose people have a device each. Each request goes to the next node."""
    nodes = s.hub.nodes
    await _on(nodes[0], "PUT", f"/sessions/{name}", {"definition": definition, "join_code": name.upper()[:12]})
    for place, (user, role) in enumerate(people.items()):
        body = {"name": user, **({"role": role} if role else {})}
        await _on(nodes[place % NODES], "PUT", f"/sessions/{name}/participants/{user}", body)
        await _on(nodes[(place + 1) % NODES], "PUT", f"/users/{user}/devices/phone-{user}",
                  {"token": f"token-{user}", "platform": "android", "notifications": True})


async def _come(s, node, user, channel, state="foreground"):
    client = await s.client(hub=node)
    await client.subscribe(channel, user=user)
    if state:
        await client.client_event("client-app-state", channel, {"state": state})
    return client


async def _until(question, what):
    ends = time.monotonic() + PATIENCE
    while True:
        answer = await question()
        if answer:
            return answer
        expect(time.monotonic() < ends, what)
        await asyncio.sleep(0.1)


async def _rows(node, event):
    return {row["user"]: row for row in (await _on(node, "GET", f"/events/{event}/deliveries"))["deliveries"]}


async def n01_one_surface_on_any_node(s):
    """Whoever is there reads the event, whoever is not gets a push, and every node has the same trail."""
    nodes = s.hub.nodes
    await _session(s, "n01", {"n01-ana": None, "n01-ben": None, "n01-cy": None, "n01-bo": None})
    channel = "presence-quiz-n01"
    ana, ben = await _come(s, nodes[1], "n01-ana", channel), await _come(s, nodes[2], "n01-ben", channel)
    away = await _come(s, nodes[0], "n01-bo", channel, "background")
    await s.hub.travel()
    for place, node in enumerate(nodes):
        event = (await _on(node, "POST", "/events", {"name": "session-started", "channel": channel, "data": json.dumps({"n": place})}))["event_id"]
        for client in (ana, ben, away):
            await client.until(lambda: [f for f in client.all("session-started") if f["event_id"] == event], f"the event of node {place}")

        async def settled():
            rows = await _rows(node, event)
            return rows if all(row["state"] != "awaited" for row in rows.values()) else None

        await _until(settled, "everybody is told")
        for other in nodes:
            rows = await _rows(other, event)
            equal({user: (row["state"] == "confirmed", len(row["pushes"])) for user, row in rows.items()},
                  {"n01-ana": (True, 0), "n01-ben": (True, 0), "n01-cy": (False, 1), "n01-bo": (False, 1)}, f"by node {place}")
    for client in (ana, ben, away):
        events = [frame["event_id"] for frame in client.all("session-started")]
        equal(len(events), len(set(events)), "each event once")


async def n02_states_and_receipts_over_http(s):
    """An app state over HTTP counts wherever it is said; people are listed as present by every node."""
    nodes = s.hub.nodes
    await _session(s, "n02", {"n02-ana": None})
    channel = "presence-quiz-n02"
    ana = await _come(s, nodes[1], "n02-ana", channel, state=None)
    await s.hub.travel()
    for node in nodes:
        listed = await _on(node, "GET", "/sessions/n02/participants")
        equal([(person["user"], person["connections"]) for person in listed["participants"]], [("n02-ana", 1)], "who is present")
    token = (await _on(nodes[2], "POST", "/sessions/n02/participants/n02-ana/token", {"scope": "session", "device": "phone-n02-ana"}))["token"]
    answer = await nodes[0].request(
        "PUT", "/me/state", json.dumps({"state": "background"}).encode(), {"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
    expect(answer.status < 300, "the state is refused", answer.status, answer.text)
    await s.hub.travel()
    event = (await _on(nodes[2], "POST", "/events", {"name": "session-started", "channel": channel, "data": "{}"}))["event_id"]
    await ana.event("session-started")
    # A push at once: an app in the background is not waited for.
    rows = await _rows(nodes[0], event)
    equal(len(rows["n02-ana"]["pushes"]), 1, "pushes")


async def n03_removed_on_another_node(s):
    """A removal is answered when every node has ended the subscriptions."""
    nodes = s.hub.nodes
    await _session(s, "n03", {"n03-ana": None, "n03-ben": None})
    channel = "presence-quiz-n03"
    ana, ben = await _come(s, nodes[1], "n03-ana", channel), await _come(s, nodes[1], "n03-ben", channel)
    await s.hub.travel()
    await _on(nodes[2], "DELETE", "/sessions/n03/participants/n03-ana")
    await _on(nodes[0], "POST", "/events", {"name": "session-started", "channel": channel, "data": "{}"})
    await ben.event("session-started")
    await ana.event("pusher:subscription_error", channel)
    equal(ana.all("session-started"), [], "events of somebody who was removed")


async def n04_roles_on_another_node(s):
    """Events for a role reach its sockets on all nodes, and no others; a new role is in force for the next event."""
    nodes = s.hub.nodes
    await _session(s, "n04", {"n04-hider": "hider", "n04-seeker": "seeker"}, "hide-and-seek")
    channel = "presence-game-n04"
    hider, seeker = await _come(s, nodes[1], "n04-hider", channel), await _come(s, nodes[2], "n04-seeker", channel)
    await s.hub.travel()

    async def ask(node, number):
        data = json.dumps({"type": "radar", "id": number, "radius_m": 5000})
        await _on(node, "POST", "/events", {"name": "question_asked", "channel": channel, "data": data})

    await ask(nodes[0], 1)
    await hider.event("question_asked")
    await seeker.sync()
    equal(seeker.all("question_asked"), [], "a question is for the hider")
    await _on(nodes[0], "PUT", "/sessions/n04/participants/n04-seeker", {"name": "seeker", "role": "hider"})
    await ask(nodes[2], 2)
    await seeker.event("question_asked")


async def n05_one_publish_under_a_key(s):
    """Requests under one key that meet on all nodes are one publish, with one answer."""
    nodes = s.hub.nodes
    await _session(s, "n05", {"n05-ana": None})
    channel = "presence-quiz-n05"
    ana = await _come(s, nodes[1], "n05-ana", channel)
    await s.hub.travel()
    for attempt in range(5):
        body = {"name": "session-started", "channel": channel, "data": json.dumps({"n": attempt}), "idempotency_key": f"n05-{attempt}"}
        answers = await asyncio.gather(*(_answer(node, "POST", "/events", body) for node in nodes for _ in range(2)))
        equal({answer.status for answer in answers}, {200}, "statuses")
        equal(len({answer.body for answer in answers}), 1, "answers")
    # A further event comes after all of them.
    await _on(nodes[2], "POST", "/events", {"name": "session-started", "channel": channel, "data": '{"n":"last"}'})
    await ana.until(lambda: [f for f in ana.all("session-started") if "last" in f["data"]], "the last event")
    equal([json.loads(frame["data"])["n"] for frame in ana.all("session-started")], [0, 1, 2, 3, 4, "last"], "events")


async def n06_several_owners_in_one_request(s):
    """A request about many channels goes to all their owners, and has an id for each."""
    nodes = s.hub.nodes
    channels = [f"presence-quiz-n06{letter}" for letter in "abcdefgh"]
    for letter in "abcdefgh":
        await _session(s, f"n06{letter}", {"n06-ana": None})
    ana = await s.client(hub=nodes[1])
    for channel in channels:
        await ana.subscribe(channel, user="n06-ana")
    await s.hub.travel()
    answer = await _on(nodes[2], "POST", "/events", {"name": "session-started", "channels": channels, "data": "{}"})
    equal(set(answer["event_ids"]), set(channels), "ids")
    for channel in channels:
        await ana.event("session-started", channel)
    equal({frame["channel"]: frame["event_id"] for frame in ana.all("session-started")}, answer["event_ids"], "ids on the socket")


async def n07_a_publish_for_later(s):
    """A scheduled publish goes out once, whatever node was asked."""
    nodes = s.hub.nodes
    await _session(s, "n07", {"n07-ana": None})
    channel = "presence-quiz-n07"
    ana = await _come(s, nodes[2], "n07-ana", channel)
    for node in nodes:
        await _on(node, "POST", "/events", {
            "name": "session-started", "channel": channel, "data": "{}", "deliver_at": int((time.time() + 2) * 1000)})
    await ana.event("session-started", count=len(nodes))
    await asyncio.sleep(2)
    equal(len(ana.all("session-started")), len(nodes), "events")


async def n08_a_cache_is_the_same_on_all_nodes(s):
    """Who asks any node for the cache after the answer of a publish gets this publish's event."""
    nodes = s.hub.nodes
    for turn in range(60):
        asked, other = nodes[turn % NODES], nodes[(turn + 1 + turn // NODES % 2) % NODES]
        await _on(asked, "POST", "/events", {"name": "kept", "channel": "cache-n08", "data": f"{turn}"})
        answer = await Hub.call(other, "GET", "/channels/cache-n08", params=(("info", "cache"),))
        equal((answer.status, (answer.json["cache"] or {}).get("data")), (200, f"{turn}"), "the cached event")
