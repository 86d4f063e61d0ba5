"""Subscribing and unsubscribing (C08; docs/protocol.md, 2.1 and 2.3)."""

import asyncio
import json

from client import SUCCEEDED, public
from hub import equal, expect


async def c08_public_subscribe(s):
    client = await s.client()
    variants = ({}, {"auth": ""}, {"auth": None}, {"auth": None, "channel_data": None}, {"auth": "", "channel_data": ""},
                {"auth": "nonsense", "channel_data": '{"user_id":"1"}'})
    for number, members in enumerate(variants):
        await client.send(public(f"c08-{number}", **members))
        equal((await client.event(SUCCEEDED, f"c08-{number}"))["data"], "{}")
    # Third-party clients send the data as text.
    await client.send({"event": "pusher:subscribe", "data": json.dumps({"channel": "c08-text"})})
    await client.event(SUCCEEDED, "c08-text")
    await client.sync()
    equal(len(client.all(SUCCEEDED)), len(variants) + 1, "acknowledgements")
    equal(client.errors(), [])


async def c08_every_kind_is_acknowledged_once(s):
    client = await s.client()
    for channel in ("c08", "private-c08", "private-encrypted-c08", "cache-c08", "private-cache-c08", "private-encrypted-cache-c08",
                    "presence-c08", "presence-cache-c08", "private-", "presence-"):
        await client.subscribe(channel, user="1")
        # Again: silence, or the hosted service's error; never a second acknowledgement.
        await client.send(client.subscription(channel, user="1"))
        await client.sync()
        equal(len(client.all(SUCCEEDED, channel)), 1, channel)
    expect(set(client.errors()) <= {None})


async def c08_kinds_by_prefix(s):
    """The prefix counts with its hyphen and its case; these are all public."""
    client = await s.client()
    for channel in ("privateers", "private", "presenceful", "presence", "cachet", "cache", "Private-x", "PRESENCE-x", "my-private-x"):
        await client.send(public(channel))
        equal((await client.event(SUCCEEDED, channel))["data"], "{}")
    for channel in ("private-encrypted", "presence-encrypted-x", "private-x", "presence-x", "private-cache-x", "presence-cache-x"):
        await client.refused(public(channel), channel)
    # Despite its name.
    equal((await client.subscribe("presence-encrypted-x", user="7"))["presence"]["ids"], ["7"])


async def c08_channel_names(s):
    client = await s.client()
    for channel in ("c" * 200, "private-" + "c" * 192, "-_=@,.;", "0"):
        await client.subscribe(channel)
        await s.hub.publish(channel, "named")
        await client.event("named", channel)
    for channel in ("c" * 201, "private-" + "c" * 193, "a b", "a/b", "a#b", "#a", "\u00e4", "a\nb", "a:b", "", "a+b", "a%20b"):
        if channel:
            await client.refused(client.subscription(channel), channel)
        else:
            await client.complained(public(""))
        answer = await s.hub.post("/events", {"name": "e", "data": "{}", "channels": [channel]})
        answer.refused(400)


async def c08_unsubscribe(s):
    client, other = await s.clients(2)
    await client.subscribe("c08-left")
    await other.subscribe("c08-left")
    known = len(client.frames)
    await client.unsubscribe("c08-left")
    await client.unsubscribe("c08-never-joined")
    await client.sync()
    equal(len(client.frames), known + 1, "frames")
    await s.hub.publish("c08-left", "told")
    await other.event("told")
    await client.sync()
    equal(client.all("told"), [])
    # Off and on again at once, as single-page apps do, ends subscribed, however fast.
    for _ in range(20):
        await client.send(public("c08-quick"))
        await client.unsubscribe("c08-quick")
        await client.send(client.subscription("presence-c08-quick", user="1"))
        await client.unsubscribe("presence-c08-quick")
    await client.send(public("c08-quick"))
    await client.send(client.subscription("presence-c08-quick", user="1"))
    await client.sync()
    for channel in ("c08-quick", "presence-c08-quick"):
        await s.hub.publish(channel, "again")
        await client.event("again", channel)
    await client.sync()
    equal(len(client.all("again")), 2)


async def c08_acknowledged_before_events(s):
    """What arrives on a channel arrives after its acknowledgement, and nothing that was published before."""
    listener = await s.client()
    await listener.subscribe("c08-busy")

    async def publish():
        for number in range(150):
            await s.hub.publish("c08-busy", "tick", str(number))

    publishing = asyncio.ensure_future(publish())
    clients = []
    while not publishing.done():
        client = await s.client()
        await client.send(public("c08-busy"))
        clients.append(client)
        await asyncio.sleep(0.02)
    await publishing
    await s.hub.publish("c08-busy", "end")
    for client in (listener, *clients):
        await client.event("end")
        names = [frame["event"] for frame in client.frames if frame.get("channel") == "c08-busy"]
        equal((names[0], names.count(SUCCEEDED)), (SUCCEEDED, 1))
        numbers = [int(data) for data in client.data("tick")]
        equal(numbers, list(range(150 - len(numbers), 150)), "a gap, a repetition or a wrong order")


async def c08_no_older_events(s):
    """What was answered before somebody subscribes is not told to them afterwards, whichever loops the two are on."""
    clients = await s.clients(4)
    for number in range(60):
        channel = f"c08-older-{number}"
        await s.hub.publish(channel, "older")
        await s.hub.travel()
        for client in clients:
            await client.send(public(channel))
        for client in clients:
            await client.event(SUCCEEDED, channel)
        # Whoever was told of the subscription can rely on it.
        equal((await s.hub.get(f"/channels/{channel}", info="subscription_count")).json, {"occupied": True, "subscription_count": 4}, channel)
        await s.hub.publish(channel, "newer")
        for client in clients:
            await client.event("newer", channel)
            equal([frame["event"] for frame in client.frames if frame.get("channel") == channel], [SUCCEEDED, "newer"], channel)
        for client in clients:
            await client.unsubscribe(channel)


async def c08_subscriptions_per_connection(s):
    """A safety cap, far above what apps need: a thousand, and the next one is refused."""
    client = await s.client()
    for number in range(1000):
        await client.send(public(f"c08-n{number}"))
    await client.sync()
    equal(len(client.all(SUCCEEDED)), 1000)
    await client.refused(public("c08-n1000"), "c08-n1000")
    await client.unsubscribe("c08-n0")
    await client.subscribe("c08-n1000")
