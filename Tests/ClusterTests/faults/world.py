"""Three hubs on one PostgreSQL and one Redis, each with ways of its own to both, and what is judged of them."""

import asyncio
import os
import re
import signal
import time
import urllib.parse

from cluster import Balancer, Redis
from hub import PATIENCE, App, Failed, Hub
from link import Link
from webhooks import Receiver

NODES = 3
PARTITIONS = 64
KINDS = ["channel_occupied", "channel_vacated", "member_added", "member_removed", "subscription_count"]
# Time between two beats of a node, by its design.
BEAT_SECONDS = 0.5


class Judge:
    """Says each fact that was looked at, and whether it is as it must be."""

    def __init__(self, case):
        self.case, self.mistakes = case, 0

    def fact(self, is_right, text, *details):
        self.mistakes += not is_right
        found = "" if is_right else "".join(f"\n           {detail}" for detail in details)
        print(f"  {'right' if is_right else 'WRONG'}  {self.case}: {text}{found}", flush=True)

    def equal(self, found, wanted, text):
        self.fact(found == wanted, text, f"found  {found!r}", f"wanted {wanted!r}")

    def note(self, text):
        print(f"  note   {self.case}: {text}", flush=True)


class World:
    """The hubs, and everything around them. `app` has webhooks, which `receiver` takes."""

    def __init__(self, folder, judge):
        self.folder, self.judge = folder, judge
        self.nodes, self.redis_links, self.store_links = [], [], []
        self.balancer = self._watch = self._beats = None
        self.app = "main"
        # Further options of each hub's start, and the environment by which hubs that start from now on are another build.
        self.options, self.build = {}, {}
        self.pace = 0.0

    async def start(self, apps=None, build=None, **options):
        """`apps` in place of the one of its own; the first one gets the webhooks."""
        self.options, self.build = options, build or {}
        self.receiver = await Receiver().start()
        hooks = [{"url": f"http://127.0.0.1:{self.receiver.port}/all", "events": KINDS}]
        # Nobody is let go for being silent while this machine is busy.
        limits = {"ping_interval": "20s", "pong_timeout": "60s", "presence_members_max": 2000}
        self.apps = apps or {"main": App("1", "main-key", "main-secret")}
        self.apps["main"].settings = {"webhooks": hooks, **limits, **self.apps["main"].settings}
        self.redis = await Redis.start(self.folder / "redis")
        self.started = [self.redis]
        self._store = urllib.parse.urlsplit(os.environ["TANDEM_TEST_POSTGRES"])
        self.redis_links = [await Link(self.redis.port).start() for _ in range(NODES)]
        self.store_links = [await Link(self._store.port).start() for _ in range(NODES)]
        started = await asyncio.gather(*(self._start_node(place) for place in range(NODES)), return_exceptions=True)
        self.nodes = [node for node in started if isinstance(node, Hub)]
        for failure in started:
            if isinstance(failure, BaseException):
                raise failure
        await self.shared_out()
        self.balancer = await Balancer([node.port for node in self.nodes]).start()
        # Looks like a hub.
        self.balanced = Hub(None, self.balancer.port, None, self.apps, None, None)
        self._watch = asyncio.ensure_future(self._watch_pace())
        self._beats = asyncio.ensure_future(self._watch_beats())
        return self

    async def _start_node(self, place, port=0):
        store = self._store._replace(netloc=f"{self._store.username}:{self._store.password}@127.0.0.1:{self.store_links[place].port}")
        options = {**self.options, "settings": {**self.options.get("settings", {}), **self.build}}
        return await Hub.start(
            self.folder / f"node-{place}", self.apps, port=port, backplane=f"redis://127.0.0.1:{self.redis_links[place].port}",
            store=store.geturl(), **options)

    async def shared_out(self, places=range(NODES)):
        """Waits until these nodes own all partitions, in equal shares."""
        async def owned(place):
            text = (await self.nodes[place].request("GET", "/metrics")).text
            return int(re.search(r"^tandem_postgres_partitions_owned (\d+)", text, re.MULTILINE)[1])

        async with asyncio.timeout(PATIENCE):
            while True:
                counts = [await owned(place) for place in places]
                if sum(counts) == PARTITIONS and max(counts) - min(counts) <= 1:
                    return
                await asyncio.sleep(0.1)

    async def again(self, place):
        """Starts a node that has ended, on its port."""
        self.nodes[place] = await self._start_node(place, self.nodes[place].port)

    async def end(self):
        for task in filter(None, (self._watch, self._beats)):
            task.cancel()
        if self.balancer:
            self.balancer.close()
        for link in (*self.redis_links, *self.store_links):
            link.mend()
        for node in self.nodes:
            if node.process.returncode is None:
                # A stopped one would never hear of its end.
                node.process.send_signal(signal.SIGCONT)
        # They give their leases back, so the next case need not wait until they count as dead.
        codes = await asyncio.gather(*(node.end(signal.SIGTERM) for node in self.nodes))
        for link in (*self.redis_links, *self.store_links):
            await link.end()
        for redis in self.started:
            redis.end()
        self.judge.fact(not any(code for code in codes if code != -signal.SIGKILL), "every hub ends as it is asked to", f"exit codes {codes}")

    # --- The machine's pace ---

    async def _watch_pace(self):
        """Remembers by how much this process woke too late at the most."""
        while True:
            began = time.monotonic()
            await asyncio.sleep(0.02)
            self.pace = max(self.pace, time.monotonic() - began - 0.02)

    def patience(self, seconds):
        """A bound, and what the machine takes away of it."""
        return seconds + 0.5 + 4 * self.pace

    # --- The hub's own time ---

    async def _watch_beats(self):
        """Counts the beats of every node as Redis has them, with the time of each change."""
        self.beats = {}
        while True:
            try:
                epoch = await self.redis.ask("GET", "tandem:epoch")
                words = await self.redis.ask("HGETALL", f"tandem:{epoch.split()[0]}:beats") if epoch else []
                for name, beat in zip(words[::2], words[1::2]):
                    seen = self.beats.setdefault(name, [])
                    if not seen or seen[-1][1] != int(beat):
                        seen.append((time.monotonic(), int(beat)))
            except (OSError, asyncio.IncompleteReadError, AttributeError):
                pass
            await asyncio.sleep(0.05)

    def beats_between(self, start, end):
        """Beats of the quickest node between two times."""
        def at(seen, moment):
            return max((beat for when, beat in seen if when <= moment), default=seen[0][1])
        return max((at(seen, end) - at(seen, start) for seen in self.beats.values() if seen), default=0)

    # --- Faults ---

    def signal(self, place, sent):
        self.nodes[place].process.send_signal(sent)

    async def kill(self, place):
        await self.nodes[place].end(signal.SIGKILL)
        return time.monotonic()

    # --- Waiting ---

    async def until(self, condition, seconds=PATIENCE):
        """Whether the condition came true in time."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if condition():
                return True
            await asyncio.sleep(0.02)
        return bool(condition())

    async def users(self, place, channel):
        """Members of a channel as a node answers, or the status of its refusal."""
        answer = await self.nodes[place].get(f"/channels/{channel}/users")
        return sorted(user["id"] for user in answer.json["users"]) if answer.status == 200 else answer.status

    async def lists(self, channel, wanted, places=range(NODES), seconds=PATIENCE):
        """Seconds until every node names the wanted members; None: they never do."""
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            try:
                found = [await self.users(place, channel) for place in places]
            except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
                found = [repr(error)]
            if all(users == sorted(wanted) for users in found):
                return time.monotonic() - began
            await asyncio.sleep(0.1)
        raise Failed(f"the members of {channel} are {found}, wanted {sorted(wanted)}")

    def hooks(self, channel):
        """What webhooks told of a channel, in order; a request that came twice, byte for byte, counts once."""
        told, known = [], set()
        for request in self.receiver.requests:
            if request.body in known:
                continue
            known.add(request.body)
            told += [(event["name"], event.get("user_id")) for event in request.json["events"] if event.get("channel") == channel]
        return told
