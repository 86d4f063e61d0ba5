"""Encrypted channels, cache channels and subscription counts (C16, C17; docs/protocol.md, 2.7 to 2.9)."""

import asyncio
import base64
import json

from client import ADDED, COUNT, SUCCEEDED, public
from hub import Clock, equal, expect

# --- Encrypted ---

async def c16_encrypted(s):
    """The hub carries what it cannot read: as it came, and with `{}` where it speaks itself."""
    for app in ("main", "count"):
        client, other = await s.clients(2, app)
        for channel in ("private-encrypted-c16", "private-encrypted-cache-c16"):
            await client.subscribe(channel)
            await other.subscribe(channel)
            data = json.dumps({"nonce": base64.b64encode(bytes(24)).decode(), "ciphertext": base64.b64encode(b"\x00\xff" * 40).decode()})
            await s.hub.publish(channel, "secret", data, app)
            equal((await client.event("secret", channel))["data"], data)
            # Java decrypts everything whose data is not exactly `{}`.
            own = [text for text, frame in zip(client.texts, client.frames) if frame.get("channel") == channel and frame["event"].startswith("pusher")]
            expect(all('"data":"{}"' in text for text in own), own)
            await other.unsubscribe(channel)
        await client.sync()
        await client.refused(public("private-encrypted-c16-b"), "private-encrypted-c16-b")


# --- Cache ---

CACHES = ("cache-", "private-cache-", "presence-cache-", "private-encrypted-cache-")


async def c17_cache(s):
    for prefix in CACHES:
        channel = prefix + "c17-kinds"
        empty = await s.client()
        await empty.subscribe(channel, user="a")
        equal((await empty.event("pusher:cache_miss", channel))["data"], "{}")
        await s.hub.publish(channel, "old", "1")
        await s.hub.publish(channel, "new", '{"a": "\u00e9"}')
        await empty.event("new", channel)
        # On every loop.
        for client in await s.clients(4):
            await client.subscribe(channel, user="b")
            await client.event("new", channel)
            await client.sync()
            mine = [(frame["event"], frame["data"]) for frame in client.frames if frame.get("channel") == channel]
            equal(mine[0][0], SUCCEEDED)
            equal([entry for entry in mine if entry[0] not in (SUCCEEDED, ADDED)], [("new", '{"a": "\u00e9"}')], channel)
        equal(len(empty.all("new", channel)), 1)


async def c17_order(s):
    """First the acknowledgement, then the cached event or the miss, on the same connection."""
    await s.hub.publish("cache-c17-order", "cached")
    client = await s.client()
    await client.send(public("cache-c17-order"))
    await client.send(public("cache-c17-order-empty"))
    await client.event("cached")
    await client.event("pusher:cache_miss")
    for channel, second in (("cache-c17-order", "cached"), ("cache-c17-order-empty", "pusher:cache_miss")):
        equal([frame["event"] for frame in client.frames if frame.get("channel") == channel], [SUCCEEDED, second])


async def c17_what_fills_it(s):
    """Events of batches, of many channels at once, and those that nobody heard; not client events."""
    listener, sender = await s.clients(2)
    batch = [{"channel": "cache-c17-batch", "name": "b", "data": str(n)} for n in range(3)]
    equal((await s.hub.post("/batch_events", {"batch": batch})).status, 200)
    await s.hub.publish(["cache-c17-x", "cache-c17-y"], "many", "m")
    for channel, data in (("cache-c17-batch", "2"), ("cache-c17-x", "m"), ("cache-c17-y", "m")):
        await listener.subscribe(channel)
        await listener.until(lambda: [frame for frame in listener.frames if frame.get("channel") == channel and frame["data"] == data], data)
    for client in (listener, sender):
        await client.subscribe("private-cache-c17")
    await s.hub.publish("private-cache-c17", "real", "1")
    await sender.client_event("client-x", "private-cache-c17", {"n": 2})
    await listener.event("client-x")
    late = await s.client()
    await late.subscribe("private-cache-c17")
    await late.event("real", "private-cache-c17")
    await late.sync()
    equal(late.all("client-x"), [])
    # The cache outlives the subscribers.
    for client in (listener, sender, late):
        await client.leave()
    again = await s.client()
    await again.subscribe("private-cache-c17")
    await again.event("real")


async def c17_attribute(s):
    async def cache(channel, **params):
        return (await s.hub.get(f"/channels/{channel}", info="cache", **params)).json

    equal(await cache("cache-c17-info"), {"occupied": False, "cache": None})
    await s.hub.publish("cache-c17-info", "e", 'not "JSON"')
    answer = await cache("cache-c17-info")
    equal((answer["occupied"], answer["cache"]["data"]), (False, 'not "JSON"'))
    expect(isinstance(answer["cache"]["ttl"], int) and 1700 < answer["cache"]["ttl"] <= 1800, answer)
    (await s.hub.get("/channels/c17-info", info="cache")).refused(400)


async def c17_no_gap(s):
    """Whoever subscribes while events are published gets the newest cached one and then each later one, once."""
    channel = "cache-c17-gap"

    async def publish():
        for number in range(120):
            await s.hub.publish(channel, "tick", str(number))

    publishing = asyncio.ensure_future(publish())
    clients = []
    while not publishing.done():
        client = await s.client()
        await client.send(public(channel))
        clients.append(client)
        await asyncio.sleep(0.02)
    await publishing
    await s.hub.publish(channel, "end")
    for client in clients:
        await client.event("end")
        numbers = [int(data) for data in client.data("tick")]
        # The same number twice would be one event twice.
        equal(numbers, list(range(120 - len(numbers), 120)))


async def c17_lifetime(s):
    """Half an hour: on a hub whose clocks the test moves."""
    folder = s.suite.folder()
    folder.mkdir(parents=True)
    clock = Clock(folder)
    hub = await s.own_hub({"main": s.hub.apps["main"]}, clock=clock)
    listeners = [await s.client(hub=hub) for _ in range(4)]
    for listener in listeners:
        await listener.subscribe("cache-c17-ttl")
    await hub.publish("cache-c17-ttl", "cached", "x")
    # Only then every loop has it, at the time before the shift.
    for listener in listeners:
        await listener.event("cached")
    clock.shift(1790)
    client = await s.client(hub=hub)
    await client.subscribe("cache-c17-ttl")
    await client.event("cached")
    left = (await hub.get("/channels/cache-c17-ttl", info="cache")).json["cache"]["ttl"]
    expect(0 < left <= 10, f"{left} seconds left")
    clock.shift(1801)
    late = await s.client(hub=hub)
    await late.subscribe("cache-c17-ttl")
    await late.event("pusher:cache_miss")
    equal(late.all("cached"), [])
    equal((await hub.get("/channels/cache-c17-ttl", info="cache")).json["cache"], None)
    for one in (client, late, *listeners):
        one.left = True


# --- Counts ---

async def c17_subscription_count(s):
    """Told at every change to all subscribers, the new one after its acknowledgement; never on presence channels."""
    app = "count"
    clients = await s.clients(3, app)
    for channel in ("c17-count", "private-c17-count"):
        for number, client in enumerate(clients, start=1):
            await client.subscribe(channel)
            for present in clients[:number]:
                told = '{"subscription_count":%d}' % number
                await present.until(lambda: present.data(COUNT, channel)[-1:] == [told], "the count")
        await clients[2].unsubscribe(channel)
        await clients[0].until(lambda: clients[0].data(COUNT, channel)[-1] == '{"subscription_count":2}', "the count")
        await clients[1].sync()
        info = (await s.hub.get(f"/channels/{channel}", app, info="subscription_count")).json
        equal(info, {"occupied": True, "subscription_count": 2})
        await clients[2].sync()
        expect(clients[2].data(COUNT, channel)[-1] == '{"subscription_count":3}', "told after leaving")
    for client in clients:
        events = [frame["event"] for frame in client.frames if frame.get("channel") == "c17-count"]
        equal(events[0], SUCCEEDED)
    await clients[0].subscribe("presence-c17-count", user="a")
    await clients[1].subscribe("presence-c17-count", user="b")
    await clients[0].event(ADDED)
    await clients[0].sync()
    equal(clients[0].all(COUNT, "presence-c17-count"), [])
    # Off unless it is asked for.
    plain = await s.client()
    await plain.subscribe("c17-count")
    await plain.sync()
    equal(plain.all(COUNT), [])


async def c17_large_channels_are_told_less(s):
    """Above a hundred connections the count is told every five seconds at most."""
    channel = "c17-large"
    watcher = await s.client("count")
    await watcher.subscribe(channel)
    crowd = await s.clients(104, "count")
    for client in crowd:
        await client.send(public(channel))
    for client in crowd:
        await client.event(SUCCEEDED, channel)
    await watcher.until(lambda: '{"subscription_count":105}' in watcher.data(COUNT, channel), "the final count")
    above = [data for data in watcher.data(COUNT, channel) if json.loads(data)["subscription_count"] > 101]
    expect(len(above) <= 3, "not throttled", above)
