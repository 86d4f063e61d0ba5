"""Every frame of the hub, and every kind of nonsense of clients (C30, C31; docs/protocol.md, 1.4 and 1.7)."""

import json
import random

from websockets.exceptions import ConnectionClosed

from client import ADDED, COUNT, REFUSED, REMOVED, SUCCEEDED, WATCHLIST
from hub import Failed, equal, expect


async def c30_every_kind_of_frame(s):
    """One session in which the hub says all that it can say; `judge` looks at each frame."""
    one = await s.client("count")
    two = await s.client("count")
    for client, user in ((one, "a"), (two, "b")):
        await client.subscribe("presence-c30", user=user)
        await client.subscribe("c30")
        await client.subscribe("private-c30")
    await one.event(ADDED, "presence-c30")
    await one.complained({"event": "client-x", "channel": "nowhere", "data": 1})
    await one.refused({"event": "pusher:subscribe", "data": {"channel": "private-other"}}, "private-other")
    await two.client_event("client-a", "presence-c30", {"n": 1})
    await two.client_event("client-b", "private-c30", None)
    await one.event("client-a", "presence-c30")
    await one.subscribe("cache-c30")
    await s.hub.publish("cache-c30", "c30-cached", app="count")
    await one.event("c30-cached")
    await one.event("pusher:cache_miss", "cache-c30")
    await one.sign_in("c30-one", watchlist=["c30-two"])
    await one.event(WATCHLIST)
    await two.sign_in("c30-two")
    await one.subscribe("#server-to-user-c30-one")
    await s.hub.publish("#server-to-user-c30-one", "note", app="count")
    await one.event("note", "#server-to-user-c30-one")
    await two.leave()
    await one.event(REMOVED, "presence-c30")
    await one.event(COUNT, "c30")
    await one.sync()
    expected = {"pusher:connection_established", "pusher:error", "pusher:pong", "pusher:cache_miss", "pusher:signin_success", REFUSED,
                SUCCEEDED, ADDED, REMOVED, COUNT, WATCHLIST}
    equal(expected - {frame["event"] for frame in one.frames}, set(), "kinds that were not seen")


MALFORMED = (
    "", " ", "{", "[]", '"text"', "17", "null", "true", "{}", '{"data":{}}', '{"event":5}', '{"event":null}', '{"event":["a"]}',
    '{"event":"pusher:subscribe"}', '{"event":"pusher:subscribe","data":null}', '{"event":"pusher:subscribe","data":[]}',
    '{"event":"pusher:subscribe","data":"no json"}', '{"event":"pusher:subscribe","data":{}}',
    '{"event":"pusher:subscribe","data":{"channel":5}}', '{"event":"pusher:subscribe","data":{"channel":null}}',
    '{"event":"pusher:subscribe","data":{"channel":"private-x","auth":5}}', '{"event":"pusher:unsubscribe"}',
    '{"event":"pusher:unheard-of","data":{}}', '{"event":"pusher_internal:member_added","channel":"x","data":"{}"}',
    '{"event":"pusher_internal:subscription_succeeded","channel":"x","data":"{}"}', '{"event":"x","data":{}}',
    '{"event":"client-x"}', '{"event":"client-x","data":{}}', '{"event":"client-x","channel":"private-x"}',
    '{"event":"client-x","channel":5,"data":{}}', '{"event":"pusher:signin"}', '{"event":"pusher:signin","data":{}}',
    '{"event":"pusher:signin","data":{"auth":5,"user_data":[]}}', '{"event":"pusher:ping","data":{}} trailing', "{'event':'x'}",
    '{"event":"x","data":' + "[" * 2000 + "]" * 2000 + "}", '{"event":"x","data":' + '{"a":' * 2000 + "1" + "}" * 2000 + "}",
    "[" * 5000, '{"event":"\\ud800"}', '{"event":"a\\u0000b","data":{}}', '{"event":"' + "e" * 5000 + '","data":{}}')


async def c31_malformed_frames(s):
    """Each is answered with an error without a code, on a connection that stays usable."""
    client = await s.client()
    await client.subscribe("c31")
    for message in MALFORMED:
        known = len(client.errors())
        await client.send(message)
        await client.sync()
        equal(client.errors()[known:], [None], f"codes after {message[:60]}")
    await client.send(b"binary")
    await client.send(b"\x00\xff")
    await client.sync()
    await s.hub.publish("c31", "still")
    await client.event("still")
    equal(set(client.errors()), {None})
    equal([frame["event"] for frame in client.frames if frame.get("channel") not in (None, "c31")], [])


async def c31_inbound_frame_limit(s):
    """Twice the event data and four kilobytes, not more."""
    limit = 2 * 10240 + 4096
    frame = '{"event":"pusher:ping","data":"%s"}'
    client = await s.client()
    await client.send(frame % ("x" * (limit - len(frame) + 2)))
    await client.event("pusher:pong")
    await client.send(frame % ("x" * (limit - len(frame) + 3)))
    equal(await client.closed(), 1009)


async def c31_megabyte_frame(s):
    client = await s.client()
    try:
        await client.send("x" * (1 << 20))
    except ConnectionClosed:
        pass  # Closed while it was still sending.
    code = await client.closed()
    expect(code in (1006, 1009) or 4100 <= code <= 4299, f"closed with {code}")
    await (await s.client()).sync()


async def outcome(wire):
    """Goes on until the connection is closed, and returns the code, or answers a ping and thereby goes on."""
    while (frame := await wire.frame()) is not None:
        if frame[0] == 1 and b"pusher:pong" in frame[1]:
            return
        if frame[0] == 8:
            code = int.from_bytes(frame[1][:2], "big")
            expect(code not in range(4000, 4100), "closed for good", frame)
            return code


async def c31_broken_websocket(s):
    """What breaks WebSocket's own rules costs at most its own connection."""
    codes = []
    for number, write in enumerate((
        lambda wire: wire.write(b'{"event":"\xff\xfe"}'),
        lambda wire: wire.write(b'{"event":"pusher:ping"}', mask=None),
        lambda wire: wire.write(b"x", opcode=3),
        lambda wire: wire.write(b"x", opcode=11),
        lambda wire: wire.write(b"x", first=0xF1),
        lambda wire: wire.write(b"x" * 126, opcode=9),
        lambda wire: wire.write(b"part", opcode=9, final=False),
        lambda wire: wire.write(b"continues nothing", opcode=0),
        lambda wire: wire.write(b"\x03", opcode=8),
        lambda wire: wire.write(b"\x03\xe7no such code", opcode=8),
        lambda wire: wire.writer.write(b"GET / HTTP/1.1\r\n\r\n"),
    )):
        wire = await s.wire()
        write(wire)
        wire.say("pusher:ping")
        try:
            codes.append(await outcome(wire))
        except Failed as failure:
            raise Failed(f"number {number}: {failure}") from None
        await (await s.client()).sync()
    equal(codes[0], 1007, "text that is no UTF-8")


async def c31_announced_length(s):
    """A frame that announces exabytes costs nothing."""
    before = s.hub.resident_kilobytes()
    for _ in range(20):
        wire = await s.wire()
        wire.writer.write(b"\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff\x01\x02\x03\x04" + bytes(100))
    await (await s.client()).sync()
    expect(s.hub.resident_kilobytes() - before < 32 * 1024, "memory grew")


async def c31_fragments(s):
    """A message in many frames, with control frames between them, is one message."""
    wire = await s.wire()
    text = json.dumps({"event": "pusher:subscribe", "data": {"channel": "c31-fragments"}}).encode()
    wire.write(text[:1], opcode=1, final=False)
    for byte in text[1:-1]:
        wire.write(bytes([byte]), opcode=0, final=False)
    wire.write(b"between", opcode=9)
    wire.write(text[-1:], opcode=0)
    answers = dict([await wire.frame(), await wire.frame()])
    equal((answers[10], json.loads(answers[1])["event"]), (b"between", SUCCEEDED))


async def c31_random_bytes(s):
    """Two hundred broken variants of good frames, from a fixed seed."""
    numbers = random.Random(31)
    good = [json.dumps(frame) for frame in (
        {"event": "pusher:subscribe", "data": {"channel": "presence-c31", "auth": "main-key:00", "channel_data": '{"user_id":1}'}},
        {"event": "client-x", "channel": "private-c31", "data": {"a": [1, None, "\u00e9"]}},
        {"event": "pusher:signin", "data": {"auth": "main-key:00", "user_data": '{"id":"1"}'}})]
    client = await s.client()
    for _ in range(200):
        text = list(numbers.choice(good))
        for _ in range(numbers.randint(1, 6)):
            place = numbers.randrange(len(text))
            text[place:place + numbers.randint(0, 4)] = numbers.choices('{}[]",:\\u0 \u00e9\U0001f3afnull1e9-', k=numbers.randint(0, 4))
            if not text:
                break
        await client.send("".join(text))
    await client.sync()
    equal(set(client.errors()) - {None}, set())
    equal(client.all(SUCCEEDED), [])
