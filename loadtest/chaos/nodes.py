"""Three nodes that faults happen to: those of the fault tests, in a thread of their own, for a run of one-surface."""

import asyncio
import pathlib
import random
import signal
import threading
import time

import surface
import wire
from common import figures
from common.output import say
from hub import App
from link import DOWN, UP
from world import NODES, World

# Without those that have clients of their own.
FAULTS = {name: fault for name, (fault, _) in surface.FAULTS.items() if name not in ("calm", "rolling", "stop-and-come")}
# Longer than any of them takes.
FAULT_SECONDS_MAX = 60


class Quiet:
    """Takes what the world judges by itself."""

    def fact(self, is_right, text, *details):
        if not is_right:
            say(f"  {text}: {' '.join(details)}")


def cut(way):
    async def fault(world, judge):
        world.redis_links[0].cut(way)
        await asyncio.sleep(9)
        world.redis_links[0].mend()

    return fault


async def restart(world, judge):
    """One step of a rolling restart."""
    await world.nodes[0].end(signal.SIGTERM)
    await world.again(0)


FAULTS |= {"cut-up": cut(UP), "cut-down": cut(DOWN), "restart": restart}


class Turned:
    """The world with another node as its first: faults happen to the first."""

    def __init__(self, world, place):
        self._world, self._order = world, [(place + step) % NODES for step in range(NODES)]

    def __getattr__(self, name):
        value = getattr(self._world, name)
        return [value[place] for place in self._order] if name in ("nodes", "redis_links", "store_links") else value

    def __setattr__(self, name, value):
        if name.startswith("_"):
            return super().__setattr__(name, value)
        setattr(self._world, name, value)

    async def kill(self, place):
        return await self._world.kill(self._order[place])

    async def again(self, place):
        await self._world.again(self._order[place])

    def signal(self, place, sent):
        self._world.signal(self._order[place], sent)


class Nodes:
    """Looks like one hub to a run."""

    def __init__(self, folder, gateways, seed, names):
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._world = World(pathlib.Path(folder), Quiet())
        self._settings, self._draw, self._names = gateways.settings, random.Random(seed), names
        # (begin, end, name, port of the node that it happened to), and user seconds of processes that have ended.
        self.faults, self._ended_cpu = [], 0.0
        # What is wrong with the faults themselves.
        self.mistakes = []

    def _wait(self, work, seconds):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)

    def start(self):
        apps = {"main": {"id": wire.APP, "key": wire.KEY, "secret": wire.SECRET, "settings": {"presence_members_max": 5000}}}
        self._wait(self._world.start(
            apps={name: App(**app) for name, app in apps.items()}, settings={**self._settings, "NO_PROXY": "*"}, channels=surface.DEFINITIONS,
            limits={"joins_per_minute": 0}), 120)

    def end(self):
        self._wait(self._world.end(), 120)

    @property
    def ports(self):
        return [node.port for node in self._world.nodes]

    @property
    def port(self):
        return self.ports[0]

    def cpu(self):
        """User seconds of the processes that run."""
        return sum(figures.cpu_seconds(node.process.pid)[0] for node in self._world.nodes if node.process.returncode is None)

    def webhooks(self):
        """(time, name, channel, user, when the request was made) of each event that webhooks told; a request that came twice counts
        once."""
        told, known, shift = [], set(), time.time() - time.monotonic()
        for request in list(self._world.receiver.requests):
            if request.body not in known:
                known.add(request.body)
                made = request.json["time_ms"] / 1000
                for event in request.json["events"]:
                    told.append((request.at + shift, event["name"], event.get("channel"), event.get("user_id"), made))
        return told

    def fault(self, start):
        """A random one, to a random node."""
        name, place = self._draw.choice(self._names), self._draw.randrange(NODES)
        began, port = time.time(), self._world.nodes[place].port
        try:
            self._wait(FAULTS[name](Turned(self._world, place), self._world.judge), FAULT_SECONDS_MAX)
            outcome = ""
        except Exception as error:
            outcome = f", and went wrong itself: {error!r}"
            self.mistakes.append(f"{name} of node {place}: {error!r}")
        self.faults.append((began, time.time(), name, port))
        say(f"  {began - start:5.0f} s: {name} of node {place}, for {time.time() - began:.1f} s{outcome}")
