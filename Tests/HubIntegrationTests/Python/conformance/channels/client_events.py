"""Client events (C18; docs/protocol.md, 2.10)."""

import asyncio
import time

from hub import equal, expect


async def c18_who_gets_it(s):
    sender, other, twin = await s.clients(3)
    for channel in ("private-c18", "presence-c18", "private-cache-c18", "presence-cache-c18"):
        await sender.subscribe(channel, user="s")
        await twin.subscribe(channel, user="s")
        await other.subscribe(channel, user=7)
        await sender.client_event("client-move", channel, {"x": 1})
        for client in (other, twin):
            frame = await client.event("client-move", channel)
            wanted = {"event": "client-move", "channel": channel, "data": '{"x":1}'}
            if channel.startswith("presence-"):
                wanted["user_id"] = "s"
            equal(frame, wanted)
        # Only the server says who sent it.
        await other.send({"event": "client-forged", "channel": channel, "data": "x", "user_id": "admin"})
        frame = await sender.event("client-forged", channel)
        equal(frame.get("user_id"), "7" if channel.startswith("presence-") else None)
    await sender.sync()
    equal((sender.all("client-move"), sender.errors()), ([], []), "an echo or an acknowledgement")


async def c18_data_is_a_string(s):
    sender, other = await s.clients(2, "steady")
    for client in (sender, other):
        await client.subscribe("private-c18-data")
    for number, (sent, wanted) in enumerate((
        ('"text"', "text"), ('""', ""), ('"{\\"x\\": 1}"', '{"x": 1}'), ('{ "b" : 1, "a" : [ 1.50, null, "\u00e9" ] }', '{"b":1,"a":[1.50,null,"\u00e9"]}'),
        ("5", "5"), ("true", "true"), ("[]", "[]"), ('"\\u0000\\u001f\\"\\\\"', '\u0000\u001f"\\'), ("-1.5e300", "-1.5e300"),
    ), start=1):
        await sender.send('{"event":"client-data","channel":"private-c18-data","data":%s}' % sent)
        equal((await other.event("client-data", count=number))["data"], wanted, sent)


async def c18_what_is_refused(s):
    sender, other = await s.clients(2)
    for client in (sender, other):
        for channel in ("c18-public", "cache-c18-public", "private-c18-r", "presence-c18-r"):
            await client.subscribe(channel, user=client.socket_id)
    await other.subscribe("private-c18-other")
    for event, channel, data in (
        ("client-x", "c18-public", 1), ("client-x", "cache-c18-public", 1), ("client-x", "private-c18-other", 1), ("client-x", "private-nowhere", 1),
        ("other-x", "private-c18-r", 1), ("clientx", "private-c18-r", 1), ("Client-x", "private-c18-r", 1),
        ("pusher_internal:member_added", "presence-c18-r", '{"user_id":"x"}'), ("pusher:error", "private-c18-r", 1),
        ("client-x", "bad name!", 1), ("client-" + "x" * 194, "private-c18-r", 1), ("client-x", "private-c18-r", "x" * 10241),
        ("client-x", "private-c18-r", {"x": "y" * 10233 + "z"}),
    ):
        await sender.complained({"event": event, "channel": channel, "data": data})
    await sender.complained({"event": "client-x", "channel": "private-c18-r"})
    await sender.client_event("client-" + "x" * 193, "private-c18-r", 1)
    await sender.client_event("client-x", "private-c18-r", "x" * 10240)
    await sender.client_event("client-y", "private-c18-r", "\u00e9" * 5120)
    await other.event("client-y")
    equal([frame["event"] for frame in other.frames if frame["event"].startswith(("client-", "pusher_internal:member_added"))
           and frame.get("channel") != "presence-c18-r"], ["client-" + "x" * 193, "client-x", "client-y"])
    off = await s.client("small")
    await off.subscribe("private-c18-off")
    await off.complained({"event": "client-x", "channel": "private-c18-off", "data": 1})


async def c18_rate(s):
    """Ten in a second; the eleventh is refused with 4301 and the connection stays."""
    sender, other = await s.clients(2)
    for client in (sender, other):
        await client.subscribe("private-c18-rate")
    for number in range(10):
        await sender.client_event("client-ten", "private-c18-rate", number)
    await other.event("client-ten", count=10)
    await sender.sync()
    equal(sender.errors(), [])
    # The second is that of the events, wherever the clock's seconds begin.
    for pause in (0, 0.3, 0.5):
        await asyncio.sleep(1.1)
        known, began = len(sender.errors()), time.monotonic()
        for number in range(10):
            await sender.client_event("client-eleven", "private-c18-rate", number)
        await sender.sync()
        equal(sender.errors()[known:], [], "ten")
        await asyncio.sleep(pause)
        await sender.client_event("client-eleven", "private-c18-rate", 10)
        await sender.sync()
        # A machine that stands still for so long proves nothing.
        if time.monotonic() - began < 1:
            equal(sender.errors()[known:], [4301], f"the eleventh after {pause} s")
    await asyncio.sleep(1.1)
    known, began = len(sender.errors()), time.monotonic()
    for number in range(60):
        await sender.client_event("client-many", "private-c18-rate", number)
    await sender.sync()
    refused = len(sender.errors()) - known
    # Ten for each of the clock's seconds that they touch.
    seconds = int(time.monotonic() - began) + 2
    expect(60 - 10 * seconds <= refused <= 50, f"{refused} of 60 were refused")
    await asyncio.sleep(1.1)
    await sender.client_event("client-later", "private-c18-rate", 1)
    await other.event("client-later")
    equal(len(other.all("client-many")), 60 - refused, "delivered, and refused or delivered")
    # Each connection has its own ten, and an app may have more.
    await other.client_event("client-back", "private-c18-rate", 1)
    await sender.event("client-back")
    fast, listener = await s.clients(2, "steady")
    for client in (fast, listener):
        await client.subscribe("private-c18-fast")
    for number in range(100):
        await fast.client_event("client-fast", "private-c18-fast", number)
    await listener.event("client-fast", count=100)
    equal((listener.data("client-fast"), fast.errors()), ([str(n) for n in range(100)], []))
