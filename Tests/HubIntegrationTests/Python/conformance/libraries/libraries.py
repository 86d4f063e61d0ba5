"""Real client libraries, PyPI's `pusher` and `pysher`, and the emulations of the mobile ones."""

import asyncio
import base64
import json
import signal

import pusher
import pusher.errors
import pysher

from client import SUCCEEDED
from libraries.emulations import Library, PusherJava, PusherSwift
from hub import PATIENCE, App, Failed, equal, expect

MASTER_KEY = base64.b64encode(Library.master_key).decode()


def backend(hub, app="main", **changes):
    """The official library of a backend, in a form to be awaited."""
    entry = hub.apps[app]
    options = dict(app_id=entry.id, key=entry.key, secret=entry.secret, ssl=False, host="127.0.0.1", port=hub.port, timeout=10)
    library = pusher.Pusher(**{**options, **changes})

    class Awaited:
        def __getattr__(self, name):
            method = getattr(library, name)
            return lambda *arguments, **options: asyncio.to_thread(method, *arguments, **options)

    return Awaited()


async def raises(kind, coroutine, *words):
    try:
        await coroutine
    except kind as error:
        for word in words:
            expect(word in str(error), f"'{word}' is missing", str(error))
        return
    raise Failed(f"no {kind.__name__}")


# --- The backend library ---


async def lib_pusher_publishing(s):
    library = backend(s.hub)
    one, two = await s.clients(2)
    for client in (one, two):
        for channel in ("lib-a", "lib-b", "lib-cache"):
            await client.subscribe(channel)
    equal(await library.trigger("lib-a", "single", {"text": "h\u00e4llo \U0001f3af"}), {})
    equal(await library.trigger(["lib-a", "lib-b"], "multi", "plain text", socket_id=one.socket_id), {})
    equal(await library.trigger_batch([{"channel": "lib-a", "name": "first", "data": {"n": 1}}, {"channel": "lib-b", "name": "second", "data": "2"}]), {})
    for client in (one, two):
        await client.event("second")
    equal(json.loads((await one.event("single"))["data"]), {"text": "h\u00e4llo \U0001f3af"})
    equal((one.data("multi"), two.data("multi")), ([], ["plain text"] * 2))
    equal((one.data("first"), one.data("second")), (['{"n": 1}'], ["2"]))


async def lib_pusher_queries(s):
    library = backend(s.hub)
    for client, user in zip(await s.clients(3), ("a", "a", "b")):
        await client.subscribe("presence-lib-query", user=user)
        await client.subscribe("lib-query")
    await s.hub.travel()
    equal(await library.channels_info("presence-lib-q", ["user_count"]), {"channels": {"presence-lib-query": {"user_count": 2}}})
    equal(await library.channels_info("lib-q"), {"channels": {"lib-query": {}}})
    equal(await library.channel_info("presence-lib-query", ["user_count", "subscription_count"]),
          {"occupied": True, "user_count": 2, "subscription_count": 3})
    equal(await library.channel_info("lib-nobody"), {"occupied": False})
    users = await library.users_info("presence-lib-query")
    equal(sorted(user["id"] for user in users["users"]), ["a", "b"])
    equal(await library.users_info("presence-lib-nobody"), {"users": []})
    await library.trigger("cache-lib", "kept", "x")
    info = await library.channel_info("cache-lib", ["cache"])
    equal((info["occupied"], info["cache"]["data"]), (False, "x"))


async def lib_pusher_errors(s):
    await raises(pusher.errors.PusherBadRequest, backend(s.hub).channel_info("lib-a", ["user_count"]), "user count")
    await raises(pusher.errors.PusherBadRequest, backend(s.hub).users_info("lib-a"))
    await raises(pusher.errors.PusherBadAuth, backend(s.hub, secret="wrong").trigger("lib-a", "e", {}), "Invalid signature")
    await raises(pusher.errors.PusherBadAuth, backend(s.hub, key="nobody").channels_info(), "auth_key")
    await raises(pusher.errors.PusherForbidden, backend(s.hub, "off").trigger("lib-a", "e", {}))
    await raises(pusher.errors.PusherBadStatus, backend(s.hub).trigger("lib-a", "e", "x" * 11000), "413")
    await raises(pusher.errors.PusherBadStatus, backend(s.hub, app_id="99").channels_info(), "404")


async def lib_pusher_users(s):
    """Sign-in as the library signs it, events to the user, and the end of its connections by the library's own path."""
    library = backend(s.hub)
    clients = await s.clients(3)
    for client in clients:
        answer = await library.authenticate_user(client.socket_id, {"id": "lib-user", "user_info": {"name": "L"}})
        await client.send({"event": "pusher:signin", "data": answer})
        await client.event("pusher:signin_success")
        await client.subscribe("#server-to-user-lib-user")
    equal(await library.send_to_user("lib-user", "note", {"n": 1}), {})
    for client in clients:
        equal((await client.event("note"))["data"], '{"n": 1}')
    equal(await library.terminate_user_connections("lib-user"), {})
    for client in clients:
        equal(await client.closed(), 4009)
    equal(await library.terminate_user_connections("lib-user"), {})


async def lib_pusher_authenticate(s):
    library = backend(s.hub)
    client = await s.client()
    member = {"user_id": 12, "user_info": {"name": "Zw\u00f6lf"}}
    for channel, data in (("private-lib-auth", None), ("presence-lib-auth", member), ("private-encrypted-lib", None)):
        signer = backend(s.hub, encryption_master_key_base64=MASTER_KEY) if "encrypted" in channel else library
        answer = await signer.authenticate(channel, client.socket_id, data)
        answer.pop("shared_secret", None)
        await client.send({"event": "pusher:subscribe", "data": {"channel": channel, **answer}})
        await client.event(SUCCEEDED, channel)
    presence = json.loads(client.data(SUCCEEDED, "presence-lib-auth")[0])["presence"]
    equal(presence, {"count": 1, "ids": ["12"], "hash": {"12": {"name": "Zw\u00f6lf"}}})
    foreign = await backend(s.hub, secret="wrong").authenticate("private-lib-wrong", client.socket_id)
    await client.refused({"event": "pusher:subscribe", "data": {"channel": "private-lib-wrong", **foreign}}, "private-lib-wrong")


async def lib_pusher_encrypted(s):
    """What the library encrypts arrives so that a client can decrypt it, also from the cache."""
    library = backend(s.hub, encryption_master_key_base64=MASTER_KEY)
    for channel in ("private-encrypted-lib-x", "private-encrypted-cache-lib-x"):
        client, late = await s.clients(2)
        await client.subscribe(channel)
        await library.trigger(channel, "secret", {"text": "\u00e4"})
        await late.subscribe(channel) if "cache" in channel else None
        for reader in (client, late) if "cache" in channel else (client,):
            frame = await reader.event("secret", channel)
            equal(json.loads(Library.decrypt(channel, frame["data"], Library.master_key)), {"text": "\u00e4"})


async def lib_pusher_webhook(s):
    """A webhook that was really delivered is valid for the library, a changed one is not."""
    client = await s.client("hooks")
    await client.subscribe("lib-hook")
    request = (await s.suite.receiver.until("/all", "lib-hook", "channel_occupied"))[0][1]
    library = backend(s.hub, "hooks")
    key, signature, body = request.headers["x-pusher-key"], request.headers["x-pusher-signature"], request.body.decode()
    valid = await library.validate_webhook(key, signature, body)
    expect(valid and valid["events"], "the library refuses the webhook", body)
    equal(await library.validate_webhook(key, signature, body + " "), None)


# --- Pysher ---


class Pysher(pysher.Pusher):
    """Pysher as it is, with a list of what arrives: what comes before anything is bound, it drops."""

    def __init__(self, hub, app="main", **options):
        self.seen = []
        entry = hub.apps[app]
        super().__init__(entry.key, secret=entry.secret, secure=False, custom_host="127.0.0.1", port=hub.port, **options)

    def _connection_handler(self, event_name, data, channel_name):
        self.seen.append((channel_name, event_name, data))
        super()._connection_handler(event_name, data, channel_name)

    async def until(self, condition, what):
        try:
            async with asyncio.timeout(PATIENCE):
                while not condition():
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise Failed(f"Pysher waited for {what}: {self.connection.state}, {self.seen[-3:]}") from None

    async def start(self):
        self.connect()
        await self.until(lambda: self.connection.state == "connected", "the connection")

    async def joined(self, channel):
        self.subscribe(channel)
        await self.until(lambda: any(entry[:2] == (channel, SUCCEEDED) for entry in self.seen), channel)

    async def told(self, channel, event, count=1):
        found = lambda: [data for at, name, data in self.seen if (at, name) == (channel, event)]
        await self.until(lambda: len(found()) >= count, f"{event} on {channel}")
        return found()

    def stop(self):
        # Without its wait for its own thread, which sleeps on the closed socket.
        self.disconnect(timeout=0.1)


async def lib_pysher(s):
    """Connects, pings, subscribes to every kind, is told, sends a client event, leaves."""
    library = Pysher(s.hub, user_data={"user_id": "7", "user_info": {"name": "Pia"}})
    try:
        await library.start()
        await library.until(lambda: library.connection.pong_received, "the pong")
        for channel in ("lib-pysher", "private-lib-pysher", "presence-lib-pysher", "cache-lib-pysher"):
            await library.joined(channel)
        other = await s.client()
        presence = (await other.subscribe("presence-lib-pysher", user=8))["presence"]
        equal(presence["hash"]["7"], {"name": "Pia"})
        await library.told("presence-lib-pysher", "pusher_internal:member_added")
        await library.told("cache-lib-pysher", "pusher:cache_miss")
        await backend(s.hub).trigger(["lib-pysher", "private-lib-pysher", "presence-lib-pysher"], "greeting", {"text": "h\u00e4llo"})
        for channel in ("lib-pysher", "private-lib-pysher", "presence-lib-pysher"):
            equal([json.loads(data) for data in await library.told(channel, "greeting")], [{"text": "h\u00e4llo"}])
        await other.subscribe("private-lib-pysher")
        library.channels["private-lib-pysher"].trigger("client-typing", {"x": 1})
        equal((await other.event("client-typing"))["data"], '{"x":1}')
        expect(not library.connection.needs_reconnect)
    finally:
        library.stop()
    await other.event("pusher_internal:member_removed")


async def lib_pysher_survives_a_refusal(s):
    library = Pysher(s.hub, user_data={"no": "id"})
    try:
        await library.start()
        library.subscribe("presence-lib-refused")
        await library.told("presence-lib-refused", "pusher:subscription_error")
        await library.joined("lib-after")
        equal(library.connection.state, "connected")
    finally:
        library.stop()


async def lib_pysher_unknown_key(s):
    """Told by the error event alone that it should stay away."""
    library = Pysher(s.hub)
    library.connection.url = library.connection.url.replace("main-key", "nobody")
    library.connect()
    await library.until(lambda: library.connection.disconnect_called, "the refusal")


async def lib_pysher_restart(s):
    """After 4200 it is back by itself, with its public channels."""
    hub = await s.own_hub({"main": s.hub.apps["main"]})
    library = Pysher(hub, auto_sub=True)
    try:
        await library.start()
        await library.joined("lib-restart")
        before = library.connection.socket_id
        equal(await hub.end(signal.SIGTERM), 0)
        again = await s.own_hub({"main": s.hub.apps["main"]}, port=hub.port)
        await library.until(lambda: library.connection.state == "connected" and library.connection.socket_id != before, "the reconnection")
        await library.until(lambda: [entry[:2] for entry in library.seen].count(("lib-restart", SUCCEEDED)) == 2, "the subscription")
        await again.publish("lib-restart", "back")
        await library.told("lib-restart", "back")
    finally:
        library.stop()


# --- The mobile libraries, emulated ---


async def lib_mobile_session(s):
    """PusherSwift and pusher-websocket-java side by side through all that an app does, then through a restart."""
    app = s.hub.apps["main"]
    quick = App(app.id, app.key, app.secret, {"ping_interval": "1s", "pong_timeout": "6s", "subscription_count": True})
    hub = await s.own_hub({"main": quick})
    swift, java = PusherSwift(hub, "main"), PusherJava(hub, "main")
    both = (swift, java)
    try:
        await mobile_session(s, hub, swift, java)
        equal(await hub.end(signal.SIGTERM), 0)
        again = await s.own_hub({"main": quick}, port=hub.port)
        for library in both:
            await library.until(lambda: library.connections == 2 and set(library.wanted) <= library.subscribed, "everything to be back")
            equal(library.closes, [4200])
            await library.until(lambda: set(library.members["presence-lib-mobile"]) == {"swift", "java"}, "both members")
        await again.publish("lib-mobile", "after the restart")
        for library in both:
            await library.told_of("lib-mobile", "after the restart")
    finally:
        outcomes = await asyncio.gather(*(library.end() for library in both), return_exceptions=True)
    for outcome in outcomes:
        if outcome:
            raise outcome


async def mobile_session(s, hub, swift, java):
    both = (swift, java)
    for library, user in ((swift, "swift"), (java, "java")):
        for channel in ("lib-mobile", "private-lib-mobile", "presence-lib-mobile", "private-encrypted-lib-mobile", "cache-lib-mobile",
                        "private-encrypted-cache-lib-mobile"):
            await library.subscribe(channel, user)
        await library.told_of("lib-mobile", "pusher_internal:subscription_count")
        await library.told_of("cache-lib-mobile", "pusher:cache_miss")
        await library.told_of("private-encrypted-cache-lib-mobile", "pusher:cache_miss")
        await library.ping()
    for library in both:
        await library.until(lambda: set(library.members["presence-lib-mobile"]) == {"swift", "java"}, "both members")
    publisher = backend(hub, encryption_master_key_base64=MASTER_KEY)
    await publisher.trigger(["lib-mobile", "private-lib-mobile", "presence-lib-mobile", "cache-lib-mobile"], "App\\Events\\X", {"a": 1})
    await publisher.trigger("private-encrypted-lib-mobile", "secret", {"b": 2})
    for library in both:
        for channel in ("lib-mobile", "private-lib-mobile", "presence-lib-mobile", "cache-lib-mobile"):
            equal(json.loads(await library.told_of(channel, "App\\Events\\X")), {"a": 1})
        equal(json.loads(await library.told_of("private-encrypted-lib-mobile", "secret")), {"b": 2})
    for sender, receiver in (both, both[::-1]):
        for channel in ("private-lib-mobile", "presence-lib-mobile"):
            await sender.trigger("client-typing", channel, {"x": 1})
            equal(json.loads(await receiver.told_of(channel, "client-typing")), {"x": 1})
    await java.sign_in("java")
    await publisher.send_to_user("java", "note", "n")
    equal(await java.told_of("#server-to-user-java", "note"), "n")
    # A refused subscription, and a client event too many, are news to both and the end of neither.
    for library in both:
        await library.say("pusher:subscribe", {"channel": "private-lib-refused", "auth": f"{library.app.key}:00"})
        await library.told_of("private-lib-refused", "pusher:subscription_error")
        await library.told_of(None, "pusher:error")
        for number in range(40):
            await library.trigger("client-many", "private-lib-mobile", {"n": number})
        await library.until(lambda: 4301 in [data["code"] for _, event, data in library.told if event == "pusher:error"], "4301")
    # Longer than the hub waits for an answer: its own control PINGs keep both, which never answer a `pusher:ping`.
    await asyncio.sleep(3)
    for library in both:
        await library.ping()
        equal((library.connections, library.closes), (1, []))
