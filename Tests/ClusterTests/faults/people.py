"""Who talks to the hubs: members that stay or come back, and a publisher whose events are counted."""

import asyncio
import json
import time

from client import ADDED, REMOVED, Client
from hub import Failed, signed_target
from websockets.exceptions import InvalidHandshake, InvalidMessage

GONE = (OSError, Failed, TimeoutError, InvalidHandshake, InvalidMessage, EOFError)
# Seconds after which a client library tries again, but for 4200 to 4299, where it does at once.
RETRY_SECONDS = 1.0


class Person:
    """A user's app, which may come back when its connection ends, as client libraries do."""

    def __init__(self, world, user, channel, news=None):
        self.world, self.user, self.channel, self.news = world, user, channel, news
        self.clients, self.back_at = [], []
        # (time, code) of each end of a connection that the app did not want.
        self.ended = []
        self._living = None

    @property
    def now(self):
        return self.clients[-1]

    async def come(self, node):
        """Connects to a node and subscribes."""
        connection = await Client.open(node, self.world.app)
        self.clients.append(connection)
        tasks = [asyncio.ensure_future(one) for one in (self._subscribe(connection), self._ended(connection))]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        tasks[1].cancel()
        if not tasks[0].done():
            tasks[0].cancel()
            raise Failed(f"the connection of {self.user} ended before it was subscribed")
        await tasks[0]
        return self

    async def _subscribe(self, connection):
        await connection.subscribe(self.channel, user=self.user)
        if self.news:
            await connection.subscribe(self.news)

    @staticmethod
    async def _ended(connection):
        await connection.until(lambda: connection.close_code is not None, "the end", timeout=3600)

    def stay(self, *places, returns=True):
        """From now on the end of the connection is noted, and the app comes back to these nodes in turn."""
        self._living = asyncio.ensure_future(self._live(places, returns))
        return self

    async def _live(self, places, returns):
        turn = 0
        while True:
            connection = self.now
            try:
                await self._ended(connection)
            except Failed:
                return
            self.ended.append((time.monotonic(), connection.close_code))
            if not returns:
                return
            wait = 0 if 4200 <= connection.close_code < 4300 else RETRY_SECONDS
            while True:
                await asyncio.sleep(wait)
                port = places[turn % len(places)] if places else None
                turn += 1
                try:
                    await self.come(self.world.nodes[port] if port is not None else self.world.balanced)
                    self.back_at.append(time.monotonic())
                    break
                except GONE:
                    wait = RETRY_SECONDS

    async def leave(self):
        if self._living:
            self._living.cancel()
        if self.clients:
            await self.now.leave()

    def changes(self, since=0.0):
        """Comings and goings that the app was told of: (time, "added" or "removed", user)."""
        return [
            (at, "added" if frame["event"] == ADDED else "removed", str(json.loads(frame["data"])["user_id"]))
            for one in self.clients for at, frame in zip(one.times, one.frames)
            if frame["event"] in (ADDED, REMOVED) and frame.get("channel") == self.channel and at >= since]

    def told_of(self, since=0.0):
        """For each user what the app was told, in order."""
        told = {}
        for _, change, user in self.changes(since):
            told.setdefault(user, []).append(change)
        return told


class News:
    """A publisher at a node, or at the balancer, that numbers its events. Its readers must get every accepted one, once and in order."""

    def __init__(self, world, place, channel, pause=0.05, name="news"):
        self.world, self.place, self.channel, self.pause, self.name = world, place, channel, pause, name
        # Number: status, or None where no answer came; and seconds that each answer took.
        self.answers, self.took, self.retry_after, self.refusals = {}, {}, [], set()
        self.number = 0
        self._task = None

    def start(self):
        self._task = asyncio.ensure_future(self._publish())
        return self

    async def _publish(self):
        while True:
            await self.one()
            await asyncio.sleep(self.pause)

    async def one(self):
        self.number += 1
        number, began = self.number, time.monotonic()
        body = json.dumps({"name": self.name, "channel": self.channel, "data": json.dumps({"n": number})}).encode()
        node = self.world.balanced if self.place is None else self.world.nodes[self.place]
        app = node.apps[self.world.app]
        self.answers[number] = None
        try:
            answer = await node.request("POST", signed_target(app, "POST", f"/apps/{app.id}/events", body), body)
            self.answers[number] = answer.status
            if answer.status != 200:
                self.refusals.add(answer.text)
            if answer.status == 503:
                self.retry_after.append(answer.headers.get("retry-after"))
        except (*GONE, asyncio.IncompleteReadError):
            pass
        self.took[number] = (began, time.monotonic() - began)
        return self.answers[number]

    async def stop(self):
        """Lets the request that is under way end."""
        if self._task:
            number = self.number
            await self.world.until(lambda: number in self.took)
            self._task.cancel()
            self._task = None

    def accepted(self):
        return [number for number, status in self.answers.items() if status == 200]

    def statuses(self, since=0.0, until=float("inf")):
        return [self.answers[number] for number, (began, _) in self.took.items() if since <= began <= until]

    def slowest(self, since=0.0, until=float("inf")):
        return max((took for began, took in self.took.values() if since <= began <= until), default=0.0)

    def read(self, *clients):
        """Numbers that these connections of one app read, in order."""
        return [
            json.loads(frame["data"])["n"] for one in clients for frame in one.frames
            if frame["event"] == self.name and frame.get("channel") == self.channel]

    def judge(self, judge, who, *clients):
        """Judges what an app without an interruption has read."""
        read = self.read(*clients)
        known = set(read)
        missing = [number for number in self.accepted() if number not in known]
        judge.fact(
            not missing and read == sorted(known), f"{who} reads all {len(self.accepted())} accepted events of {self.channel} once and in order",
            f"missing {missing[:20]}", f"{len(read) - len(known)} doubles; order {'kept' if read == sorted(read) else 'broken'}")

    async def arrived(self, *clients):
        """Waits until the last accepted event has come to these connections, and for a moment for what else may come."""
        last = max(self.accepted(), default=0)
        await self.world.until(lambda: all(last in self.read(one)[-20:] for one in clients), self.world.patience(10))
        await asyncio.sleep(0.2)
