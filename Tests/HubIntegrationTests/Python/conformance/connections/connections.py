"""Connections: handshake, versions, keep-alive, refusals (C01 to C07; docs/protocol.md, 1)."""

import asyncio
import json
import re

from client import ADDED, REMOVED, SUCCEEDED, Client, Ending
from hub import PATIENCE, Failed, equal, expect

# Queries of real libraries (docs/protocol.md, 1.1).
REAL_QUERIES = (
    "protocol=7&client=js&version=8.6.0&flash=false", "client=pusher-websocket-swift&version=10.1.10&protocol=7",
    "client=java-client&protocol=5&version=2.4.4", "protocol=5&client=pusher-dotnet-client&version=2.3.0",
    "client=Pysher&version=0.6.0&protocol=6", "client=pusher-ruby-client&version=0.6.0&protocol=6",
    "protocol=7&client=pusher-websocket-go&version=1.0")


async def c01_first_frame(s):
    for app, timeout in (("main", 120), ("quick", 7)):
        client = await s.client(app)
        await client.sync()
        first = client.frames[0]
        equal(first["event"], "pusher:connection_established")
        expect(isinstance(first["data"], str), "data is no string", first)
        data = json.loads(first["data"])
        equal(data["activity_timeout"], timeout, "activity_timeout")
        expect(isinstance(data["activity_timeout"], int) and data["activity_timeout"] > 0, data)
        expect(re.fullmatch(r"\d+\.\d+", data["socket_id"]), data)
        expect(all(int(part) < 2**53 for part in data["socket_id"].split(".")), data)
        equal(len(client.all("pusher:connection_established")), 1)


async def c01_socket_ids_are_never_reused(s):
    known = set()
    for _ in range(3):
        clients = await s.clients(10)
        ids = {client.socket_id for client in clients}
        equal(len(ids), 10)
        expect(not ids & known, "a socket id came back", ids & known)
        known |= ids
        await asyncio.gather(*(client.leave() for client in clients))


async def c01_real_queries(s):
    for query in (*REAL_QUERIES, "", "unknown=1&version=&protocol=7&client=%20%26", "protocol=%37"):
        client = await s.client(query=query)
        expect(client.handshake["activity_timeout"] > 0, query)
    # What a reverse proxy may have left in front.
    await s.client(path="/prefix/app/main-key?protocol=7")


async def c01_client_speaks_first(s):
    """Pysher sends `pusher:ping` on the open socket, before it has read anything."""
    client = await s.client(handshake=False)
    await client.send({"event": "pusher:ping", "data": ""})
    await client.event("pusher:pong")
    equal([frame["event"] for frame in client.frames], ["pusher:connection_established", "pusher:pong"])


async def c02_subprotocol(s):
    for version in (5, 6, 7):
        name = f"pusher-channels-protocol-{version}"
        client = await s.client(subprotocols=[name])
        equal(client.connection.subprotocol, name)
    several = await s.client(subprotocols=["something-else", "pusher-channels-protocol-7"])
    equal(several.connection.subprotocol, "pusher-channels-protocol-7")
    plain = await s.client()
    equal(plain.connection.subprotocol, None)


async def refusal(s, code, app="main", **options):
    """A connection that is upgraded, told why it cannot be, and closed with the same code and text."""
    for subprotocols in (None, ["pusher-channels-protocol-7"]):
        client = await s.client(app, handshake=False, subprotocols=subprotocols, **options)
        equal(await client.closed(), code, f"close code of {options}")
        equal([frame["event"] for frame in client.frames], ["pusher:error"])
        error = client.frames[0]["data"]
        equal((error["code"], error["message"]), (code, client.close_reason))
        expect(0 < len(client.close_reason.encode()) <= 123, client.close_reason)


async def c03_unknown_key(s):
    for key in ("nobody", "MAIN-KEY", "1", "main-key%20"):
        await refusal(s, 4001, path=f"/app/{key}?protocol=7")


async def c03_other_refusals(s):
    await refusal(s, 4003, "off")
    await refusal(s, 4009, "origin", origin="https://evil.example")
    handshake = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version": "13"}
    for path in ("/", "/nowhere?protocol=7", "/app?protocol=7", "/apps/1/channels"):
        answer = await s.hub.request("GET", path, headers=handshake)
        equal(answer.status, 401 if path.startswith("/apps/") else 404, path)
    # A native client has no origin.
    await s.client("origin")
    await s.client("origin", origin="https://good.example")


async def c03_connection_limit(s):
    first, _ = await s.client("quota"), await s.client("quota")
    await refusal(s, 4004, "quota")
    await first.leave()
    for attempt in range(200):
        client = await s.client("quota", handshake=False)
        await client.until(lambda: client.frames, "the first frame")
        if client.frames[0]["event"] == "pusher:connection_established":
            return
        await asyncio.sleep(0.05)
    raise Failed("the place of a connection that has gone stays taken")


async def c03_node_limits(s):
    """What is full is this node, not the app: 4100, after which clients come back."""
    hub = await s.own_hub({"main": s.hub.apps["main"]}, limits={"max_connections": 2})
    first = await s.client(hub=hub)
    await s.client(hub=hub)
    await refusal(s, 4100, hub=hub)
    await first.leave()
    crowded = await s.own_hub({"main": s.hub.apps["main"]}, limits={"connections_per_address": 2})
    await s.client(hub=crowded)
    await s.client(hub=crowded)
    await refusal(s, 4100, hub=crowded)


async def c31_slow_beginnings(s):
    """Half a handshake, half a request and a silent connection end by themselves, and delay nobody meanwhile."""
    # Long enough for the newcomer below on a busy machine, whose own request has the same limit.
    hub = await s.own_hub({"main": s.hub.apps["main"]}, limits={"request_timeout": "6s"})
    beginnings = (b"", b"GET /app/main-key?protocol=7 HTTP/1.1\r\nHost: hub\r\nUpgra",
                  b"POST /apps/1/events HTTP/1.1\r\nHost: hub\r\nContent-Length: 500\r\n\r\n{")
    connections = [await hub.connect() for _ in beginnings]
    for (_, writer), beginning in zip(connections, beginnings):
        writer.write(beginning)
    await (await s.client(hub=hub)).sync()
    for (reader, writer), beginning in zip(connections, beginnings):
        try:
            async with asyncio.timeout(PATIENCE):
                while await reader.read(4096):
                    pass
        except ConnectionError:
            pass
        except TimeoutError:
            raise Failed(f"still open: {beginning}") from None
        finally:
            writer.close()


async def c04_versions(s):
    for version in (4, 5, 6, 7):
        await s.client(query=f"protocol={version}")
    await s.client(query="client=js")
    for version in ("1", "3", "8", "99", "99999999999999999999"):
        await refusal(s, 4007, query=f"protocol={version}")
    for version in ("abc", "7.0", ""):
        await refusal(s, 4006, query=f"protocol={version}")


PINGS = ('{"event":"pusher:ping"}', '{"event":"pusher:ping","data":{}}', '{"event":"pusher:ping","data":""}',
         '{"event":"pusher:ping","data":null}', '{"event":"pusher:ping","data":"{}"}', '{"data":{},"event":"pusher:ping"}')


async def c05_pings(s):
    client = await s.client()
    for number, ping in enumerate(PINGS, start=1):
        await client.send(ping)
        equal((await client.event("pusher:pong", count=number))["data"], "{}", ping)
    await client.subscribe("c05")
    for number, ping in enumerate(PINGS, start=len(PINGS) + 1):
        await client.send(ping)
        equal((await client.event("pusher:pong", count=number))["data"], "{}", ping)
    expect('"data":"{}"' in client.texts[-1].replace(" ", ""), client.texts[-1])
    # Answers of the client are not answered.
    known = len(client.frames)
    for data in ("{}", '""', "null"):
        await client.send('{"event":"pusher:pong","data":%s}' % data)
    await client.send('{"event":"pusher:pong"}')
    await client.sync()
    equal(len(client.frames), known + 1, "frames")


async def c06_control_ping_is_answered(s):
    client = await s.client()
    for payload in (b"", b"tandem", bytes(range(125))):
        # Resolves only for the same payload.
        async with asyncio.timeout(20):
            await (await client.connection.ping(payload))
    await client.sync()


async def c06_silent_peer_is_closed(s):
    """The hub asks with a control PING, and ends the connection when nothing comes back."""
    watcher = await s.client("quick")
    await watcher.subscribe("presence-c06", user="watcher")
    wire = await s.wire("quick")
    subscription = Client.subscription(wire, "presence-c06", user="silent")
    wire.write(json.dumps(subscription).encode())
    await watcher.event(ADDED, "presence-c06")
    began = asyncio.get_running_loop().time()
    ending = await Ending.of(wire)
    took = asyncio.get_running_loop().time() - began
    expect(ending.pings >= 1, "no control PING")
    equal((ending.errors, ending.close_code), ([4201], 4201))
    expect(took < PATIENCE, f"one second of silence and one for the answer took {took} s")
    await watcher.event(REMOVED, "presence-c06")


async def c07_control_pong_is_life(s):
    """A peer that does nothing but answer control PINGs stays, as PusherSwift does for hours."""
    wire = await s.wire("calm")
    # Longer than a second of silence and the six for an answer.
    end = asyncio.get_running_loop().time() + 8
    while asyncio.get_running_loop().time() < end:
        frame = await wire.frame()
        expect(frame is not None and frame[0] == 9, "not a control PING", frame)
        wire.write(frame[1], opcode=10)
    wire.say("pusher:ping")
    opcode, payload = await wire.frame()
    expect(opcode in (1, 9), payload)


async def c07_control_ping_is_life(s):
    """A peer that sends control PINGs and answers none of the hub's."""
    wire = await s.wire("calm")
    end = asyncio.get_running_loop().time() + 8
    while asyncio.get_running_loop().time() < end:
        wire.write(b"here", opcode=9)
        opcode, payload = await wire.frame()
        while opcode == 9:
            opcode, payload = await wire.frame()
        equal((opcode, payload), (10, b"here"))
        await asyncio.sleep(0.3)


async def c07_outgoing_frames_are_no_life(s):
    """A dead peer on a busy channel is noticed: only what it sends counts."""
    wire = await s.wire("quick")
    wire.say("pusher:subscribe", {"channel": "c07-busy"})
    expect(SUCCEEDED.encode() in (await wire.frame())[1])

    async def publish():
        while True:
            await s.hub.publish("c07-busy", "tick", app="quick")
            await asyncio.sleep(0.1)

    publishing = asyncio.ensure_future(publish())
    try:
        equal((await Ending.of(wire)).close_code, 4201)
    finally:
        publishing.cancel()


async def c07_java_times(s):
    """Default times: a client that is silent for longer than the hub's own interval is only asked, not dropped."""
    client = await s.client("calm")
    # The library answers control PINGs by itself and sends nothing else.
    await asyncio.sleep(8)
    await client.sync()
    expect(client.close_code is None)
    equal(client.all("pusher:ping"), [], "pusher:ping")
