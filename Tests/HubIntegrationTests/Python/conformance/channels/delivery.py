"""Who gets what, in which order and in which bytes (C19, C20; docs/protocol.md, 2.11 and 5.2)."""

import json

from hub import equal


async def c19_exclusion(s):
    """One connection is left out, wherever it is; the others of the same person are not."""
    clients = await s.clients(5)
    for client in clients:
        await client.subscribe("presence-c19", user="same")
        await client.subscribe("c19")
    for number, client in enumerate(clients):
        await s.hub.publish("c19", "single", str(number), socket_id=client.socket_id)
        await s.hub.publish(["c19", "presence-c19"], "double", str(number), socket_id=client.socket_id)
    for number in range(0, 4, 2):
        batch = [{"channel": "c19", "name": "batch", "data": str(n), "socket_id": clients[n].socket_id} for n in (number, number + 1)]
        batch.append({"channel": "c19", "name": "batch", "data": f"all {number}"})
        equal((await s.hub.post("/batch_events", {"batch": batch})).status, 200)
    for socket_id in ("1.1", "99999999.99999999", None):
        await s.hub.publish("c19", "unknown", socket_id=socket_id)
    await s.hub.publish("c19", "end")
    await s.hub.publish("presence-c19", "end")
    for number, client in enumerate(clients):
        await client.event("end", "c19")
        await client.event("end", "presence-c19")
        others = [str(n) for n in range(5) if n != number]
        equal(client.data("single"), others)
        equal((client.data("double", "c19"), client.data("double", "presence-c19")), (others, others))
        equal(client.data("batch"), [data for data in ("0", "1", "all 0", "2", "3", "all 2") if data != str(number)])
        equal(len(client.all("unknown")), 3)
    for socket_id in ("nonsense", "1", "1.2.3", "", "1.x", 5, "-1.2"):
        (await s.hub.post("/events", {"name": "e", "channel": "c19", "data": "{}", "socket_id": socket_id})).refused(400)


EVENT_NAMES = ("App\\Events\\OrderShipped", ".a:b c", "client-over-http", "x" * 200, "\u00e4\U0001f3af", '"quoted"', "a/b?c=d&e", " ", "pusher", "Pusher:x")
EVENT_DATA = ("", " ", "plain", "{not json", '{"a":  1}', '"', "\\", "\\u00eb", "\u00eb", "\U0001f3af\u2028\u2029",
              "a\u0000b\u001f\t\n\r", "[1,2", "null", "5", "</script>", "\ufeffx", "x" * 10240)


async def c20_names(s):
    clients = await s.clients(2)
    for client in clients:
        await client.subscribe("c20-names")
    for name in EVENT_NAMES:
        await s.hub.publish("c20-names", name, "named")
    for client in clients:
        await client.until(lambda: len([frame for frame in client.frames if frame["data"] == "named"]) == len(EVENT_NAMES), "all names")
        equal([frame["event"] for frame in client.frames if frame["data"] == "named"], list(EVENT_NAMES))


async def c20_data(s):
    """The very string, whatever is in it and however the publisher escaped it."""
    clients = await s.clients(2)
    for client in clients:
        await client.subscribe("c20-data")
    for ascii in (True, False):
        for data in EVENT_DATA:
            body = json.dumps({"name": "data", "channel": "c20-data", "data": data}, ensure_ascii=ascii).encode()
            equal((await s.hub.post("/events", raw=body)).status, 200, repr(data))
        for data in EVENT_DATA:
            body = json.dumps({"batch": [{"name": "data", "channel": "c20-data", "data": data}]}, ensure_ascii=ascii).encode()
            equal((await s.hub.post("/batch_events", raw=body)).status, 200, repr(data))
    for client in clients:
        await client.event("data", count=len(EVENT_DATA) * 4)
        equal(client.data("data"), list(EVENT_DATA) * 4)


async def c20_order(s):
    """Three hundred events of one channel, single and in batches, arrive in the order in which they were accepted, on each loop."""
    clients = await s.clients(3)
    for client in clients:
        await client.subscribe("c20-order")
    for start in range(0, 300, 10):
        if start % 50 == 0:
            for number in range(start, start + 10):
                await s.hub.publish("c20-order", "tick", str(number))
            continue
        batch = [{"channel": "c20-order", "name": "tick", "data": str(n)} for n in range(start, start + 10)]
        equal((await s.hub.post("/batch_events", {"batch": batch})).status, 200)
    for client in clients:
        await client.event("tick", count=300)
        equal(client.data("tick"), [str(n) for n in range(300)])


async def c20_apps_are_apart(s):
    """The same names in two apps are different channels."""
    one, two = await s.client("main"), await s.client("keys")
    for client in (one, two):
        await client.subscribe("c20-apart")
        await client.subscribe("presence-c20-apart", user="same")
    await s.hub.publish("c20-apart", "main", app="main")
    await s.hub.publish("c20-apart", "keys", app="keys")
    await one.event("main")
    await two.event("keys")
    await one.sync()
    await two.sync()
    equal((one.all("keys"), two.all("main")), ([], []))
    equal((await s.hub.get("/channels/presence-c20-apart", "keys", info="user_count")).json["user_count"], 1)
