"""The same faults with events that have a policy: each participant is told of each event, by socket or by push.

A pair of an event and a participant with neither is lost, and wrong. A pair with both is told twice; these are counted.
"""

import asyncio
import json
import os
import pathlib
import signal
import subprocess
import time
import urllib.parse
import urllib.request

from cluster import Redis
from client import Client
from hub import PATIENCE, _die_with_parent, expect, signed_target
from link import Link
from people import GONE, Person
from websockets.exceptions import ConnectionClosed
from world import NODES

DEFINITIONS = pathlib.Path(__file__).parents[3] / "loadtest" / "one-surface" / "channels"
EVENTS = ("alarm", "news")
# Participants of each node that stay connected, and others who never come.
THERE, ABSENT, LATE = 8, 12, 60
# What a push may wait: a provisional receipt of `notify`, and the time in which people come back after a crash.
DRAIN_SECONDS_MAX = 75


class Gateways:
    """The simulated FCM and APNs, in a process of their own."""

    @classmethod
    async def start(cls, folder):
        gateways = cls()
        folder.mkdir(parents=True, exist_ok=True)
        binary = os.path.join(os.path.dirname(os.environ["TANDEM"]), "tandem-gateways")
        with open(folder / "gateways.log", "wb") as log:
            gateways.process = subprocess.Popen([binary, "--data", folder / "data"], stdout=log, stderr=log, preexec_fn=_die_with_parent)
        async with asyncio.timeout(PATIENCE):
            while b"ready" not in (folder / "gateways.log").read_bytes():
                await asyncio.sleep(0.05)
        words = [line.removeprefix("export ").split("=", 1) for line in (folder / "data" / "gateways.env").read_text().splitlines() if line.startswith("export ")]
        gateways.settings = {name: value.strip("'\"") for name, value in words}
        gateways.control = gateways.settings.pop("TANDEM_GATEWAYS_CONTROL")
        gateways.requests, gateways._last = [], 0
        return gateways

    async def poll(self):
        def get():
            with urllib.request.urlopen(f"{self.control}/requests?after={self._last}", timeout=PATIENCE) as answer:
                return json.load(answer)

        records = await asyncio.to_thread(get)
        if records:
            self._last = records[-1]["sequence"]
        self.requests += [record for record in records if record["provider"] != "oauth" and record["status"] == 200]

    def told(self):
        """(token, event id) of each push that was accepted, with the number of times."""
        told = {}
        for record in self.requests:
            event = record["body"]["message"]["data"].get("event_id")
            told[record["token"], event] = told.get((record["token"], event), 0) + 1
        return told

    def end(self):
        self.process.kill()
        self.process.wait()


class Participant(Person):
    """Somebody with a phone, who joined over HTTP."""

    def __init__(self, world, name):
        super().__init__(world, name, world.channel)
        self.device = f"{name}-{world.judge.case}:APA91b" + "x" * 120

    async def join(self, node):
        body = json.dumps({"name": self.user, "email": f"{self.user}@example.com", "device_token": self.device, "device_platform": "android"})
        answer = await node.request("POST", f"/api/scenarios/sessions/{self.world.session}/join", body.encode())
        expect(answer.status == 200, "a join is refused", answer.text)
        self.bearer = answer.json["token"]
        return self

    async def come(self, node):
        connection = await Client.open(node, self.world.app)
        self.clients.append(connection)
        # Any node may sign.
        user = await self.signed("/pusher/user-auth", socket_id=connection.socket_id)
        channel = await self.signed("/pusher/auth", socket_id=connection.socket_id, channel_name=self.channel)
        await connection.send({"event": "pusher:signin", "data": user})
        await connection.send({"event": "pusher:subscribe", "data": {"channel": self.channel, **channel}})
        await connection.event("pusher_internal:subscription_succeeded", self.channel)
        await connection.send({"event": "client-app-state", "channel": self.channel, "data": {"state": "foreground"}})
        return self

    async def signed(self, path, **form):
        answer = await self.world.balanced.request(
            "POST", path, urllib.parse.urlencode(form).encode(),
            {"Authorization": f"Bearer {self.bearer}", "Content-Type": "application/x-www-form-urlencoded"})
        expect(answer.status == 200, "a signature is refused", answer.status, answer.text)
        return answer.json

    def read(self):
        """Event ids, as often as they were read."""
        return [frame["event_id"] for one in self.clients for frame in one.frames if frame["event"] in EVENTS and "event_id" in frame]


class Publisher:
    """A backend that sends each event under a key until it is accepted."""

    def __init__(self, world):
        self.world = world
        self.accepted, self.tries, self.slowest = {}, 0, 0.0
        # When each event was first asked for, by number.
        self.asked_at = {}

    async def publish(self, number):
        app, began = self.world.apps[self.world.app], time.monotonic()
        self.asked_at[number] = began
        body = json.dumps({"name": EVENTS[number % 2], "channel": self.world.channel, "data": json.dumps({"n": number})}).encode()
        while True:
            self.tries += 1
            node = self.world.nodes[(number + self.tries) % NODES]
            try:
                async with asyncio.timeout(15):
                    answer = await node.request(
                        "POST", signed_target(app, "POST", f"/apps/{app.id}/events", body), body, {"Idempotency-Key": f"{self.world.judge.case}-{number}"})
                if answer.status == 200:
                    self.accepted[answer.json["event_id"]] = number
                    self.slowest = max(self.slowest, time.monotonic() - began)
                    return
                expect(answer.status in (409, 503), "a publish is refused", answer.status, answer.text)
            except (*GONE, asyncio.IncompleteReadError):
                pass
            await asyncio.sleep(0.2)

    async def run(self, pause):
        tasks, number = set(), 0
        try:
            while True:
                number += 1
                tasks.add(asyncio.ensure_future(self.publish(number)))
                await asyncio.sleep(pause)
        finally:
            self.pending = [task for task in tasks if not task.done()]


async def judged(world, judge, fault):
    """Returns when the events were asked for that somebody was told of twice."""
    gateways = world.gateways
    # All cases share a store.
    session = world.session = judge.case + ("b" if fault is stop_and_empty else "")
    world.channel = f"private-arena-{session}"
    created = await world.nodes[0].call("PUT", f"/sessions/{session}", {"definition": "arena", "join_code": session}, world.app)
    expect(created.status in (200, 201), "no session", created.text)
    there = [Participant(world, f"there{index}") for index in range(THERE * NODES)]
    absent = [Participant(world, f"absent{index}") for index in range(ABSENT)]
    world.late = [Participant(world, f"late{index}") for index in range(LATE if fault is stop_and_come else 0)]
    for index, person in enumerate(there + absent + world.late):
        await person.join(world.nodes[index % NODES])
    for index, person in enumerate(there):
        await person.come(world.nodes[index % NODES])
        person.stay()
    publisher = Publisher(world)
    publishing = asyncio.ensure_future(publisher.run(0.7))
    await asyncio.sleep(4)
    await fault(world, judge)
    await asyncio.sleep(6)
    publishing.cancel()
    await asyncio.gather(publishing, return_exceptions=True)
    await asyncio.wait_for(asyncio.gather(*publisher.pending), 60)
    everybody = there + absent + world.late

    def count():
        pushed = gateways.told()
        counts = {"socket": 0, "push": 0, "twice": [], "lost": []}
        for person in everybody:
            read = set(person.read())
            for event, number in publisher.accepted.items():
                was_read, was_pushed = event in read, (person.device, event) in pushed
                if was_read and was_pushed:
                    counts["twice"].append(number)
                elif was_read or was_pushed:
                    counts["socket" if was_read else "push"] += 1
                else:
                    counts["lost"].append((number, person.user))
        return counts

    began = time.monotonic()
    while True:
        await gateways.poll()
        counts = count()
        if not counts["lost"] or time.monotonic() - began > DRAIN_SECONDS_MAX:
            break
        await asyncio.sleep(0.5)
    # What would be told twice comes a moment later.
    await asyncio.sleep(3)
    await gateways.poll()
    counts = count()
    pairs = len(everybody) * len(publisher.accepted)
    judge.fact(
        not counts["lost"], f"nobody is lost of {pairs} pairs of {len(publisher.accepted)} events and {len(everybody)} people",
        f"{len(counts['lost'])} are: (event, person) {counts['lost'][:8]}")
    world.unread = [
        publisher.asked_at[number] for person in there for event, number in publisher.accepted.items() if event not in person.read()]
    twice = len(counts["twice"])
    judge.note(f"told by the socket {counts['socket']}, by push {counts['push']}, told twice {twice} = {twice / pairs:.2%}")
    doubles = sum(len(connection_read) - len(set(connection_read)) for person in there for connection_read in [person.read()])
    again = sum(times - 1 for times in gateways.told().values())
    judge.note(f"read again on a socket {doubles}, sent to a gateway again {again}, publishes asked {publisher.tries} times, the slowest took {publisher.slowest:.1f} s")
    for person in there + (world.came if world.late else []):
        await person.leave()
    gateways.end()
    return [publisher.asked_at[number] for number in counts["twice"]]


async def nothing(world, judge):
    await asyncio.sleep(4)


async def kill(world, judge):
    await world.kill(0)
    await asyncio.sleep(6)
    await world.again(0)


async def stop(world, judge):
    world.signal(0, signal.SIGSTOP)
    await asyncio.sleep(10)
    world.signal(0, signal.SIGCONT)


async def stop_and_come(world, judge):
    """Clients come to the node as it goes on, before and while it hears that it is dead."""
    world.signal(0, signal.SIGSTOP)
    await asyncio.sleep(9.8)

    async def come(person, after):
        await asyncio.sleep(after)
        try:
            async with asyncio.timeout(5):
                await person.come(world.nodes[0])
        except (*GONE, ConnectionClosed):
            return
        world.came.append(person.stay(1))

    world.came = []
    coming = [asyncio.ensure_future(come(person, 2.0 * index / LATE)) for index, person in enumerate(world.late)]
    await asyncio.sleep(0.2)
    world.signal(0, signal.SIGCONT)
    await asyncio.gather(*coming)
    world.settled_at = time.monotonic() + 3
    judge.note(f"{len(world.came)} of {LATE} came to the node")


async def stop_and_empty(world, judge):
    """The others declare the node dead in a memory of Redis that is lost before it goes on. One of them owns the session's channel then."""
    world.signal(0, signal.SIGSTOP)
    await asyncio.sleep(6)
    world.redis.end()
    await world.redis.again()
    await asyncio.sleep(3)
    world.signal(0, signal.SIGCONT)
    world.settled_at = time.monotonic() + 3
    await asyncio.sleep(8)


async def redis_empty(world, judge):
    world.redis.end()
    await asyncio.sleep(3)
    await world.redis.again()


async def postgres(world, judge):
    for link in world.store_links:
        link.close()
    crash = await asyncio.create_subprocess_exec(os.environ["TANDEM_TEST_POSTGRES_CRASH"])
    await crash.wait()
    await asyncio.sleep(4)
    for link in world.store_links:
        link.open()


async def cut(world, judge):
    world.redis_links[0].cut()
    await asyncio.sleep(9)
    world.redis_links[0].mend()


async def store_cut(world, judge):
    world.store_links[0].cut()
    await asyncio.sleep(9)
    world.store_links[0].mend()


async def slow(world, judge):
    world.redis_links[0].delay = 0.1
    await asyncio.sleep(8)
    world.redis_links[0].delay = 0.0


async def failover(world, judge):
    way = await Link(world.redis.port).start()
    replica = await Redis.start(world.folder / "replica", master=way.port)
    world.started.append(replica)
    while "master_link_status:up" not in await replica.ask("INFO", "replication"):
        await asyncio.sleep(0.1)
    way.cut()
    await asyncio.sleep(1.5)
    world.redis.end()
    await replica.ask("REPLICAOF", "NO", "ONE")
    for link in world.redis_links:
        link.lead(replica.port)
    world.redis = replica


async def rolling(world, judge):
    for place in range(NODES):
        await world.nodes[place].end(signal.SIGTERM)
        await world.again(place)
        await asyncio.sleep(3)


FAULTS = {
    "calm": (nothing, "nothing goes wrong"),
    "kill": (kill, "kill -9 of a node, which comes back after 6 s"),
    "stop": (stop, "SIGSTOP of a node for 10 s"),
    "stop-and-come": (stop_and_come, "SIGSTOP of a node for 10 s, to which clients come as it goes on"),
    "stop-and-empty": (stop_and_empty, "SIGSTOP of a node for 9 s, in which Redis loses its memory"),
    "redis-empty": (redis_empty, "Redis is killed, and started empty 3 s later"),
    "postgres": (postgres, "PostgreSQL crashes, and is away for some seconds"),
    "cut": (cut, "the link of a node to Redis is cut for 9 s"),
    "store-cut": (store_cut, "the link of a node to PostgreSQL is cut for 9 s"),
    "slow": (slow, "the link of a node to Redis takes 200 ms"),
    "failover": (failover, "a replica takes over that lacks the last entries"),
    "rolling": (rolling, "each node is restarted in turn"),
}


async def start_gateways(case, folder):
    """Options of hubs that push to gateways of the case's own."""
    case.gateways = await Gateways.start(folder / "gateways")
    return {"settings": {**case.gateways.settings, "NO_PROXY": "*"}, "channels": DEFINITIONS, "limits": {"joins_per_minute": 0}}


def surface(fault, words):
    async def case(world, judge):
        world.gateways = case.gateways
        twice = await judged(world, judge, fault)
        if fault is stop_and_come:
            late = [at for at in twice if at >= world.settled_at]
            judge.fact(not late, "3 s after the last one came nobody is told twice", f"{len(late)} pairs")
        if fault is stop_and_empty:
            late = [at for at in twice + world.unread if at >= world.settled_at]
            judge.fact(not late, "3 s after the node went on everybody is told on the socket alone", f"{len(late)} pairs are not")

    case.__doc__ = f"Events with a policy, while {words}: nobody is lost."
    case.prepare = lambda folder: start_gateways(case, folder)
    return case


CASES = {f"one-surface-{name}": surface(fault, words) for name, (fault, words) in FAULTS.items()}
