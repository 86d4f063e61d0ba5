"""What a client library has to do with the hub: each library by its own calls, the checks the same for all."""

import asyncio
import json
import threading

import asyncpusher
import pysher

from world import CHANNEL, KEY, SECRET, sign, until


class Pysher:
    """Subscribes with the app's secret: it knows no auth endpoint, and drops what one says about a member."""

    name, package, is_member = "Pysher", "Pysher", False

    def __init__(self, world, person):
        self.world, self.person, self.read = world, person, []
        self.pusher = pysher.Pusher(KEY, custom_host="127.0.0.1", port=world.hub.port, secure=False, secret=SECRET, auto_sub=True)
        self.pusher.connect()
        until(lambda: self.pusher.connection.state == "connected", "Pysher to connect")

    def subscribe(self, channel, *events):
        made = self.pusher.subscribe(channel)
        for event in events:
            made.bind(event, lambda data: self.read.append(json.loads(data)))

    def end(self):
        self.pusher.disconnect(timeout=0.1)


class AsyncPusher:
    name, package, is_member = "asyncpusher", "asyncpusher", True

    def __init__(self, world, person):
        self.world, self.person, self.read = world, person, []
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self._run(self._connect())

    def _run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(60)

    async def _connect(self):
        async def authenticate(data):
            socket_id, channel = data["socket_id"], data["channel_name"]
            if channel == CHANNEL:
                return self.world.authorize(self.person, socket_id, channel)
            return {"auth": sign(f"{socket_id}:{channel}")}

        self.pusher = asyncpusher.Pusher(
            KEY, secure=False, custom_host="127.0.0.1", custom_port=self.world.hub.port, channel_authenticator=authenticate, auto_sub=True)
        await self.pusher.connect()

    def subscribe(self, channel, *events):
        async def read(data):
            self.read.append(data)

        async def subscribe():
            made = await self.pusher.subscribe(channel)
            for event in events:
                made.bind(event, read)
            return made

        self.channel = self._run(subscribe())
        until(lambda: self.channel.state == self.channel.State.SUBSCRIBED, f"the subscription of {channel}")

    def trigger(self, event, data):
        self._run(self.channel.trigger({"event": event, "data": data}))

    def end(self):
        self._run(self.pusher.disconnect())


def as_member(client, world, person, reads):
    client.subscribe(CHANNEL, "alarm")
    reads(CHANNEL, "alarm")
    yield "presence channel"
    client.trigger("client-app-state", {"state": "foreground"})
    until(lambda: world.app_state(person) == "foreground", "the app's state")
    yield "client event"
    # An app on the screen: its receipt counts at once.
    state = world.state(reads(CHANNEL, "alarm"), person)
    if state != "confirmed":
        raise AssertionError(f"the event ended as {state}")
    yield "receipt by PONG"


def check(kind, world):
    """The checks that the library passes, each by its name; raises at the first that it does not."""
    person = world.join(kind.name)
    client = kind(world, person)

    def reads(channel, name="hello"):
        data, event = world.publish(channel, name)
        until(lambda: data in client.read, f"{name} on {channel}")
        return event

    client.subscribe("news", "hello")
    # Pysher does not say when it is subscribed.
    until(lambda: world.occupied("news"), "the subscription of news")
    reads("news")
    yield "public channel"
    client.subscribe("private-offers", "hello")
    until(lambda: world.occupied("private-offers"), "the subscription of private-offers")
    reads("private-offers")
    yield "private channel"
    if client.is_member:
        yield from as_member(client, world, person, reads)
    world.restart()
    until(lambda: world.occupied("news"), "the subscription of news after kill -9")
    reads("news")
    yield "back after kill -9"
    client.end()
