"""PusherSwift 10.1 and pusher-websocket-java 2.4 as far as a server can tell them apart, and stricter: where the real library
would crash, stay unconnected or lose something without a word, these raise `Crash` (docs/protocol.md, 1.4 to 1.7 and 7.1).

They are emulations, written from what is known of the libraries, not the libraries.
"""

import asyncio
import base64
import contextlib
import hashlib
import json

import nacl.secret
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from hub import PATIENCE, Failed


class Crash(Failed):
    """What the real library would not have survived."""


def need(condition, *details):
    if not condition:
        raise Crash(" | ".join(map(str, details)))


class Library:
    """What both have in common: reconnecting by the close code, one authorization per channel, waiting for what was told to the app."""

    query = ""
    subprotocols = None

    def __init__(self, hub, app):
        self.port, self.app = hub.port, hub.apps[app]
        self.socket_id = None
        # Channels that the app wants, with the member it is there; those that the hub acknowledged on this connection.
        self.wanted, self.subscribed = {}, set()
        # What the app's own callbacks got: (channel, event, data).
        self.told = []
        self.closes, self.connections = [], 0
        self.failure = None
        self._changed = asyncio.Event()
        self._task = asyncio.ensure_future(self._run())

    async def _run(self):
        try:
            attempt = 0
            while True:
                try:
                    async with connect(
                            f"ws://127.0.0.1:{self.port}/app/{self.app.key}?{self.query}", subprotocols=self.subprotocols, compression=None,
                            proxy=None, ping_interval=None, max_queue=None, open_timeout=PATIENCE, close_timeout=1) as self.socket:
                        self.opened()
                        self.connections += 1
                        attempt = 0
                        with contextlib.suppress(ConnectionClosed):
                            async for message in self.socket:
                                await self.received(message)
                                self._changed.set()
                    code = self.socket.close_code
                    self.closes.append(code)
                except OSError:
                    code = None
                self.socket_id = None
                self.subscribed.clear()
                self._changed.set()
                pause = self.pause(code, attempt)
                need(pause is not None, f"{type(self).__name__} stays away after {code}")
                attempt += 1
                await asyncio.sleep(pause)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self.failure = error
        self._changed.set()

    async def until(self, condition, what):
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    if self.failure:
                        raise self.failure
                    if value := condition():
                        return value
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise Failed(f"{type(self).__name__} waited for {what}; told: {self.told[-5:]}") from None

    async def end(self):
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if self.failure:
            raise self.failure

    async def say(self, event, data=None, channel=None, **members):
        frame = {"event": event, **({"channel": channel} if channel else {}), **({"data": data} if data is not None else {}), **members}
        await self.socket.send(json.dumps(frame))

    async def subscribe(self, channel, user=None):
        """Subscribes now, and again after every reconnection."""
        self.wanted[channel] = user
        await self.until(lambda: self.socket_id, "a connection")
        await self._subscribe(channel)
        await self.until(lambda: channel in self.subscribed, f"{channel} to be acknowledged")

    async def connected(self, socket_id):
        need(isinstance(socket_id, str), "socket_id", socket_id)
        self.socket_id = socket_id
        for channel in self.wanted:
            await self._subscribe(channel)

    async def _subscribe(self, channel):
        data = {"channel": channel}
        if channel.startswith(("private-", "presence-")):
            if channel.startswith("presence-"):
                data["channel_data"] = json.dumps({"user_id": self.wanted[channel], "user_info": {"library": type(self).__name__}})
            data["auth"] = self.app.auth(self.socket_id, channel, data.get("channel_data"))
        await self.say("pusher:subscribe", data)

    def tell(self, channel, event, data):
        self.told.append((channel, event, data))

    async def told_of(self, channel, event, count=1):
        found = lambda: [data for at, name, data in self.told if (at, name) == (channel, event)]
        await self.until(lambda: len(found()) >= count, f"{event} on {channel}")
        return found()[count - 1]

    @staticmethod
    def decrypt(channel, data, master_key):
        secret = hashlib.sha256(channel.encode() + master_key).digest()
        parts = json.loads(data)
        return nacl.secret.SecretBox(secret).decrypt(base64.b64decode(parts["ciphertext"]), base64.b64decode(parts["nonce"])).decode()

    master_key = bytes(range(32))


class PusherSwift(Library):
    """Version 7, fails without its sub-protocol, pings in control frames, never answers `pusher:ping`, knows only text as data."""

    query = "client=pusher-websocket-swift&version=10.1.10&protocol=7"
    subprotocols = ["pusher-channels-protocol-7"]
    # The codes at which it stops.
    final = {4000, 4001, 4003, 4004, 4005, 4006, 4007, 4009}

    def __init__(self, hub, app):
        # Appended to at every acknowledgement: a known fault of the library, which makes repeated acknowledgements visible.
        self.members = {}
        super().__init__(hub, app)

    def opened(self):
        need(self.socket.subprotocol == self.subprotocols[0], "Apple's stack fails the handshake", self.socket.subprotocol)
        self.members.clear()

    def pause(self, code, attempt):
        if code in self.final:
            return None
        return 0 if code in (4200, 4201, 4202) else min(attempt * attempt, 120)

    async def received(self, message):
        if isinstance(message, bytes):
            raise Crash("a binary frame is lost")
        frame = json.loads(message)
        need(isinstance(frame, dict) and isinstance(frame.get("event"), str), "dropped", message)
        event, channel, data = frame["event"], frame.get("channel"), frame.get("data")
        if event == "pusher:error":
            # Read as an object only.
            need(isinstance(data, dict), "the error is ignored", message)
            need(data.get("code") is None or isinstance(data["code"], int), "the code is lost", message)
            return self.tell(None, event, data)
        need(isinstance(data, str), "data that is no text is dropped", message)
        need("user_id" not in frame or isinstance(frame["user_id"], str), "the user_id is dropped", message)
        if event == "pusher:connection_established":
            # The time-out may be missing here; it is the socket id that decides.
            return await self.connected(json.loads(data)["socket_id"])
        if event == "pusher:ping":
            return
        if event == "pusher_internal:subscription_succeeded":
            if channel.startswith("presence-"):
                # Only the hash is read.
                for id, info in json.loads(data)["presence"]["hash"].items():
                    self.members.setdefault(channel, []).append(id)
            self.subscribed.add(channel)
        elif event in ("pusher_internal:member_added", "pusher_internal:member_removed"):
            id = json.loads(data)["user_id"]
            need(isinstance(id, str), "user_id", message)
            members = self.members.setdefault(channel, [])
            if event.endswith("added"):
                members.append(id)
            else:
                need(id in members, "nobody to remove", message, members)
                members.remove(id)
        elif event == "pusher_internal:subscription_count":
            need(type(json.loads(data)["subscription_count"]) is int, "no integer", message)
        elif not event.startswith(("pusher:", "pusher_internal:")) and channel and channel.startswith("private-encrypted-"):
            data = self.decrypt(channel, data, self.master_key)
        for ids in self.members.values():
            need(len(set(ids)) == len(ids), "somebody is listed twice", ids)
        self.tell(channel, event, data)

    async def trigger(self, event, channel, data):
        """Waits for the acknowledgement, then sends the data as it is."""
        await self.until(lambda: channel in self.subscribed, f"the subscription of {channel}")
        await self.say(event, data, channel)

    async def ping(self):
        async with asyncio.timeout(PATIENCE):
            await (await self.socket.ping())


class PusherJava(Library):
    """Version 5 without a sub-protocol; asks every frame for its data, casts codes, and looks every present id up."""

    query = "client=java-client&protocol=5&version=2.4.4"

    def __init__(self, hub, app):
        self.members, self.user, self.pongs = {}, None, 0
        super().__init__(hub, app)

    def opened(self):
        need(self.socket.subprotocol is None, "a sub-protocol that was not offered")

    def pause(self, code, attempt):
        if code is not None and 4000 <= code < 4100:
            return None
        # Six attempts, then it gives up.
        return None if attempt > 5 else min((attempt + 1) ** 2, 30)

    async def received(self, message):
        need(isinstance(message, str), "a binary frame")
        frame = json.loads(message)
        need(isinstance(frame.get("event"), str), "no event", message)
        # What is there and null is asked for its text, which throws.
        for member in ("channel", "user_id"):
            need(frame.get(member, "") is not None, f"null {member}", message)
        need(frame.get("data") is not None, "getData() of nothing", message)
        event, channel, data = frame["event"], frame.get("channel"), frame["data"]
        if event == "pusher:error":
            data = json.loads(data) if isinstance(data, str) else data
            code = data.get("code")
            need(code is None or (isinstance(code, (int, float)) and not isinstance(code, bool)), "the cast of the code fails", message)
            need(isinstance(data["message"], str), "no message", message)
            return self.tell(None, event, data)
        need(isinstance(data, str), "data is no text", message)
        if channel and channel.startswith("private-encrypted-") and data != "{}":
            # Whatever the event is called.
            data = self.decrypt(channel, data, self.master_key)
        if event == "pusher:connection_established":
            return await self.connected(json.loads(data)["socket_id"])
        if event == "pusher:pong":
            self.pongs += 1
        elif event == "pusher:signin_success":
            self.user = json.loads(json.loads(data)["user_data"])["id"]
            self.wanted[f"#server-to-user-{self.user}"] = None
            await self._subscribe(f"#server-to-user-{self.user}")
        elif event == "pusher_internal:subscription_succeeded":
            if channel.startswith("presence-"):
                presence = json.loads(data)["presence"]
                need(isinstance(presence["ids"], list) and isinstance(presence["hash"], dict), "presence", message)
                self.members[channel] = set()
                for id in presence["ids"]:
                    need(isinstance(id, str) and id in presence["hash"], "a member without an entry in hash", message)
                    self.members[channel].add(id)
            self.subscribed.add(channel)
        elif event == "pusher_internal:member_added":
            self.members[channel].add(json.loads(data)["user_id"])
        elif event == "pusher_internal:member_removed":
            id = json.loads(data)["user_id"]
            need(id in self.members[channel], "null members", message)
            self.members[channel].remove(id)
        elif event == "pusher_internal:subscription_count":
            need(json.loads(data)["subscription_count"] >= 0, message)
        self.tell(channel, event, data)

    async def trigger(self, event, channel, data):
        """Needs the acknowledgement, and sends text."""
        need(channel in self.subscribed, "the subscription is not acknowledged")
        await self.say(event, data if isinstance(data, str) else json.dumps(data), channel)

    async def ping(self):
        known = self.pongs
        # Without data.
        await self.say("pusher:ping")
        await self.until(lambda: self.pongs > known, "the pong")

    async def sign_in(self, id):
        user_data = json.dumps({"id": id})
        await self.say("pusher:signin", {"auth": self.app.user_auth(self.socket_id, user_data), "user_data": user_data})
        await self.until(lambda: f"#server-to-user-{id}" in self.subscribed, "the sign-in")

    async def connected(self, socket_id):
        # Signing in again is up to the app; what it was subscribed to comes back by itself.
        self.wanted = {channel: user for channel, user in self.wanted.items() if not channel.startswith("#")}
        self.user = None
        await super().connected(socket_id)
