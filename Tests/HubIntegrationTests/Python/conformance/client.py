"""A WebSocket client that asks nothing of its server but the protocol, and judges every frame it gets."""

import asyncio
import contextlib
import json
import re
import socket as sockets
import time

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from hub import PATIENCE, Failed, Hub, equal, expect

SUCCEEDED = "pusher_internal:subscription_succeeded"
ADDED = "pusher_internal:member_added"
REMOVED = "pusher_internal:member_removed"
COUNT = "pusher_internal:subscription_count"
WATCHLIST = "pusher_internal:watchlist_events"
REFUSED = "pusher:subscription_error"

# The names of a server's own events (docs/protocol.md, 1.8).
OWN_EVENTS = {
    "pusher:connection_established", "pusher:error", "pusher:ping", "pusher:pong", "pusher:subscription_error", "pusher:cache_miss",
    "pusher:signin_success", SUCCEEDED, ADDED, REMOVED, COUNT, WATCHLIST}
WITH_CHANNEL = {SUCCEEDED, ADDED, REMOVED, COUNT, REFUSED, "pusher:cache_miss"}


def judge(text):
    """The frame in a text message, after the rules that hold for every frame (C30; docs/protocol.md, 1.4 and 1.7)."""
    frame = json.loads(text)
    expect(isinstance(frame, dict) and isinstance(frame.get("event"), str) and frame["event"], "no event", text)
    expect("data" in frame, "no data", text)
    for name in ("channel", "user_id"):
        expect(name not in frame or isinstance(frame[name], str), f"{name} is no text", text)
    event, data = frame["event"], frame["data"]
    if event.startswith(("pusher:", "pusher_internal:")):
        expect(event in OWN_EVENTS, "an event that no server sends", text)
        equal("channel" in frame, event in WITH_CHANNEL, f"channel of {text}")
    else:
        expect("channel" in frame, "no channel", text)
    if event == "pusher:error":
        expect(isinstance(data, dict) and isinstance(data.get("message"), str), "error data", text)
        code = data.get("code")
        expect(code is None or (isinstance(code, int) and not isinstance(code, bool)), "error code", text)
        expect(code is None or code >= 4000, "error code that is none of the protocol's", text)
    else:
        expect(isinstance(data, str), "data is no string", text)
        if event in OWN_EVENTS:
            expect(isinstance(json.loads(data), dict), "data holds no object", text)
    return frame


def public(channel, **members):
    """A subscribe frame with these members of data and no others."""
    return {"event": "pusher:subscribe", "data": {"channel": channel, **members}}


class Client:
    """One connection. Frames that break a rule fail the check that waits next."""

    def __init__(self, hub, app, connection):
        self.hub, self.app = hub, app
        self.connection = connection
        self.frames = []
        self.texts = []
        # When each frame was read, on the monotonic clock.
        self.times = []
        self.close_code = self.close_reason = None
        self.broken = None
        self.left = False
        self._changed = asyncio.Event()
        self._reader = asyncio.ensure_future(self._read())

    @classmethod
    async def open(cls, hub, app="main", query="protocol=7", path=None, subprotocols=None, origin=None, handshake=True):
        app = hub.apps[app] if isinstance(app, str) else app
        path = path if path is not None else f"/app/{app.key}" + (f"?{query}" if query else "")
        connection = await connect(
            f"{'wss' if hub.tls else 'ws'}://127.0.0.1:{hub.port}{path}", ssl=hub.tls, subprotocols=subprotocols, origin=origin, compression=None, proxy=None,
            ping_interval=None, max_queue=None, max_size=None, open_timeout=PATIENCE, close_timeout=1)
        client = cls(hub, app, connection)
        if handshake:
            await client.until(lambda: client.frames, "the first frame")
            equal(client.frames[0]["event"], "pusher:connection_established", client.texts[0])
            client.handshake = json.loads(client.frames[0]["data"])
            client.socket_id = client.handshake["socket_id"]
        return client

    async def _read(self):
        try:
            async for message in self.connection:
                expect(isinstance(message, str), "a binary frame", message)
                self.texts.append(message)
                self.times.append(time.monotonic())
                self.frames.append(judge(message))
                self._changed.set()
        except ConnectionClosed:
            pass
        except Exception as error:
            self.broken = error
        if self.broken is None:
            self.close_code, self.close_reason = self.connection.close_code, self.connection.close_reason
        self._changed.set()

    # --- Waiting ---

    async def until(self, condition, what, timeout=PATIENCE):
        """The first true value of `condition()`."""
        try:
            async with asyncio.timeout(timeout):
                while True:
                    if self.broken:
                        raise self.broken
                    value = condition()
                    if value:
                        return value
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise Failed(f"waited {timeout} s for {what}; closed: {self.close_code}; last frames: {[text[:200] for text in self.texts[-4:]]}") from None

    def all(self, event, channel=None):
        return [frame for frame in self.frames if frame["event"] == event and channel in (None, frame.get("channel"))]

    async def event(self, event, channel=None, count=1):
        """The frame of that name that is the `count`-th."""
        frames = await self.until(
            lambda: found if len(found := self.all(event, channel)) >= count else None, f"{count} × {event} on {channel}")
        return frames[count - 1]

    def data(self, event, channel=None):
        """The data of all frames of that name."""
        return [frame["data"] for frame in self.all(event, channel)]

    def errors(self):
        return [frame["data"]["code"] for frame in self.all("pusher:error")]

    async def closed(self):
        """The code of the close frame."""
        await self.until(lambda: self.close_code is not None, "the end of the connection")
        return self.close_code

    async def sync(self):
        """Returns when the hub has answered everything that was sent before, on any node."""
        await self.hub.read()
        known = len(self.all("pusher:pong"))
        await self.send({"event": "pusher:ping", "data": {}})
        await self.event("pusher:pong", count=known + 1)
        return self

    # --- Speaking ---

    async def send(self, frame):
        """A frame: an object, or text or bytes as they are."""
        await self.connection.send(frame if isinstance(frame, (str, bytes)) else json.dumps(frame, ensure_ascii=False))

    def subscription(self, channel, user=None, info=None, signer=None, channel_data=None):
        """What a client library sends, signed as the channel's name asks for."""
        data = {"channel": channel}
        signer = signer or self.app
        if channel.startswith("presence-"):
            if channel_data is None and user is not None:
                member = {"user_id": user} if info is None else {"user_id": user, "user_info": info}
                channel_data = json.dumps(member, ensure_ascii=False)
            data["auth"] = signer.auth(self.socket_id, channel, channel_data)
            if channel_data is not None:
                data["channel_data"] = channel_data
        elif channel.startswith("private-"):
            data["auth"] = signer.auth(self.socket_id, channel)
        return {"event": "pusher:subscribe", "data": data}

    async def subscribe(self, channel, user=None, info=None, **options):
        """Subscribes and returns the content of the acknowledgement."""
        known = len(self.all(SUCCEEDED, channel))
        await self.send(self.subscription(channel, user, info, **options))
        frame = await self.event(SUCCEEDED, channel, count=known + 1)
        return json.loads(frame["data"])

    async def unsubscribe(self, channel):
        await self.send({"event": "pusher:unsubscribe", "data": {"channel": channel}})

    async def refused(self, frame, channel):
        """Sends a subscription that must be refused: with an error and an event, without an acknowledgement, and not for good."""
        errors, refusals = len(self.errors()), len(self.all(REFUSED, channel))
        acknowledged = len(self.all(SUCCEEDED, channel))
        await self.send(frame)
        await self.event("pusher:error", count=errors + 1)
        refusal = json.loads((await self.event(REFUSED, channel, count=refusals + 1))["data"])
        expect(isinstance(refusal["type"], str) and isinstance(refusal["error"], str) and isinstance(refusal["status"], int), refusal)
        await self.sync()
        equal(self.errors()[errors:], [None], "codes")
        equal(len(self.all(SUCCEEDED, channel)), acknowledged, f"acknowledgements of {channel}")
        expect(self.close_code is None, "closed", self.close_code)
        return refusal

    async def complained(self, frame, code=None):
        """Sends a frame that must be answered with one `pusher:error` on a connection that stays."""
        known = len(self.errors())
        await self.send(frame)
        error = (await self.event("pusher:error", count=known + 1))["data"]
        await self.sync()
        equal(self.errors()[known:], [code], f"codes after {str(frame)[:80]}")
        return error

    async def client_event(self, name, channel, data):
        await self.send({"event": name, "channel": channel, "data": data})

    def user_data(self, id, **members):
        return json.dumps({"id": id, **members}, ensure_ascii=False)

    async def sign_in(self, id=None, user_data=None, signer=None, **members):
        """Signs in and returns the string that the hub echoed."""
        user_data = user_data if user_data is not None else self.user_data(id, **members)
        known = len(self.all("pusher:signin_success"))
        await self.send(self.signin(user_data, signer))
        frame = await self.event("pusher:signin_success", count=known + 1)
        return json.loads(frame["data"])["user_data"]

    def signin(self, user_data, signer=None):
        return {"event": "pusher:signin", "data": {"auth": (signer or self.app).user_auth(self.socket_id, user_data), "user_data": user_data}}

    def watched(self):
        """The changes that the watchlist told of: (name, ids)."""
        return [(event["name"], event["user_ids"]) for data in self.data(WATCHLIST) for event in json.loads(data)["events"]]

    # --- Leaving ---

    async def leave(self):
        self.left = True
        with contextlib.suppress(Exception):
            await self.connection.close()
        await self._reader

    def drop(self):
        """Ends the TCP connection without a close frame, as a phone that loses its network."""
        self.left = True
        self.connection.transport.abort()

    async def finish(self):
        """Leaves, and checks what must be true of every connection at its end (docs/protocol.md, 1.7)."""
        fatal = [code for code in self.errors() if code is not None and not 4301 <= code <= 4302]
        if fatal and not self.left:
            # The close frame may still be on its way.
            await self.closed()
        code = self.close_code
        await self.leave()
        if self.broken:
            raise self.broken
        if fatal:
            equal(fatal, [code], "an error from 4000 to 4299 and the close code")
        expect(code is None or code < 4300 or code >= 5000, "closed with a code that keeps pusher-js away for good", code)


class Session:
    """Makes the clients of one check and ends them."""

    def __init__(self, hub, suite):
        self.hub, self.suite = hub, suite
        self._clients = []
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self):
        return self

    async def __aexit__(self, kind, error, trace):
        try:
            finishing = await asyncio.gather(*(client.finish() for client in self._clients), return_exceptions=True)
        finally:
            await self._stack.aclose()
        if error is None:
            for outcome in finishing:
                if isinstance(outcome, Exception):
                    raise outcome

    async def client(self, app="main", hub=None, **options):
        client = await Client.open(hub or self.hub, app, **options)
        self._clients.append(client)
        return client

    async def clients(self, count, app="main", **options):
        """So many connections; from two on they are on different loops."""
        return await asyncio.gather(*(self.client(app, **options) for _ in range(count)))

    async def wire(self, app="main", hub=None):
        wire = await Wire.open(hub or self.hub, app)
        self._stack.push_async_callback(wire.close)
        return wire

    async def own_hub(self, apps, folder=None, **options):
        """A hub for this check alone; in the same folder again, it goes on with what an earlier one stored."""
        hub = await Hub.start(folder or self.suite.folder(), apps, is_secure=self.hub.tls is not None, **options)
        self._stack.push_async_callback(hub.end)
        return hub


class Wire:
    """A WebSocket by hand: it answers nothing by itself, and sends what no library would."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(cls, hub, app="main", receive_buffer=None):
        app = hub.apps[app] if isinstance(app, str) else app
        plain = sockets.socket()
        if receive_buffer:
            plain.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, receive_buffer)
        plain.setblocking(False)
        await asyncio.get_running_loop().sock_connect(plain, ("127.0.0.1", hub.port))
        # A small limit, so that this side stops reading when nobody asks for more.
        reader, writer = await hub.connect(sock=plain, limit=1 << 12 if receive_buffer else 1 << 20)
        wire = cls(reader, writer)
        wire.app = app
        writer.write((f"GET /app/{app.key}?protocol=7 HTTP/1.1\r\nHost: hub\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                      "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        async with asyncio.timeout(PATIENCE):
            head = await reader.readuntil(b"\r\n\r\n")
        expect(head.startswith(b"HTTP/1.1 101"), head)
        opcode, payload = await wire.frame()
        equal(opcode, 1, "opcode")
        first = judge(payload.decode())
        wire.socket_id = re.search(r"\d+\.\d+", first["data"])[0]
        return wire

    async def frame(self, timeout=PATIENCE):
        """The next frame of the hub: opcode and payload; None when the connection has ended."""
        try:
            async with asyncio.timeout(timeout):
                first, second = await self.reader.readexactly(2)
                expect(first & 0x80 and not second & 0x80, "a fragment, or a mask", first, second)
                length = second & 0x7F
                if length > 125:
                    length = int.from_bytes(await self.reader.readexactly(2 if length == 126 else 8), "big")
                return first & 0x0F, await self.reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        except TimeoutError:
            raise Failed(f"waited {timeout} s for a frame") from None

    def write(self, payload, opcode=1, final=True, mask=b"\x01\x02\x03\x04", first=None):
        first = first if first is not None else (0x80 if final else 0) | opcode
        size = len(payload)
        length = bytes([size]) if size < 126 else b"\x7e" + size.to_bytes(2, "big") if size < 65536 else b"\x7f" + size.to_bytes(8, "big")
        if mask is None:
            self.writer.write(bytes([first]) + length + payload)
        else:
            masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
            self.writer.write(bytes([first, length[0] | 0x80]) + length[1:] + mask + masked)

    def say(self, event, data=None, **members):
        self.write(json.dumps({"event": event, "data": {} if data is None else data, **members}).encode())

    async def close(self):
        self.writer.transport.abort()


class Ending:
    """How the hub ended a connection that a `Wire` holds: the codes of its errors, then that of its close frame."""

    def __init__(self):
        self.errors, self.close_code, self.pings = [], None, 0

    @classmethod
    async def of(cls, wire, timeout=PATIENCE, answer=False):
        ending = cls()
        async with asyncio.timeout(timeout):
            while (frame := await wire.frame(timeout)) is not None:
                opcode, payload = frame
                if opcode == 1 and b'"pusher:error"' in payload:
                    ending.errors.append(judge(payload.decode())["data"]["code"])
                elif opcode == 9:
                    ending.pings += 1
                    if answer:
                        wire.write(payload, opcode=10)
                elif opcode == 8:
                    ending.close_code = int.from_bytes(payload[:2], "big") if len(payload) >= 2 else 1005
                    break
        fatal = [code for code in ending.errors if code is not None and code < 4300]
        expect(not fatal or fatal == [ending.close_code], "an error from 4000 to 4299 without its close frame", vars(ending))
        return ending
