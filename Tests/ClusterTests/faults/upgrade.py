"""A rolling upgrade from the build before, under members, publishers, and events with a policy.

The build before is the executable itself, which reads and writes version 1 of the messages between nodes. The next build is the same
executable, told to read version 2 as well and to write it once all nodes read it. These bytes differ in the number alone, and a node that
reads version 1 skips the others: so whoever writes them too early is found out. PREVIOUS names a real executable of the build before.
"""

import asyncio
import os
import re

import rolling
import surface
from world import NODES

PREVIOUS = os.environ.get("PREVIOUS")
OLD = {"TANDEM": PREVIOUS} if PREVIOUS else {}
NEW = {"TANDEM_TEST_MESSAGES": "1-2"}
# Time around a restart in which somebody may be told twice: partitions change their owner.
FAULT_SECONDS = 10
# Ten seconds after the last old node was declared dead, and some for its death.
RISE_SECONDS = 20


async def messages(node):
    """The version in which a node writes, and how many messages it has skipped. Early builds tell no version."""
    text = (await node.request("GET", "/metrics")).text
    version = re.search(r"^tandem_backplane_message_version (\d+)", text, re.MULTILINE)
    skipped = re.findall(r'^(?:tandem_backplane_messages_skipped_total|tandem_backplane_entries_total\{[^}]*what="unknown"\}) (\d+)', text, re.MULTILINE)
    return int(version[1]) if version else None, sum(map(int, skipped))


class Versions:
    """What nodes of two builds say of their messages."""

    def __init__(self, world):
        self.world, self.judge = world, world.judge
        # Messages that a node had skipped when it was ready: it reads from its start on, and has no clients before.
        self.first = [0] * NODES

    async def started(self, place):
        self.first[place] = (await messages(self.world.nodes[place]))[1]

    async def judge_all(self, wanted, text):
        told = [await messages(node) for node in self.world.nodes]
        self.judge.equal([skipped - first for (_, skipped), first in zip(told, self.first)], [0] * NODES, f"{text}: messages that a node could not read")
        self.judge.fact({version for version, _ in told} <= {wanted, None}, f"{text}: nodes write version {wanted}", f"{told}")

    async def judge_risen(self):
        async def versions():
            return [(await messages(node))[0] for node in self.world.nodes]

        found = await versions()
        for _ in range(RISE_SECONDS * 2):
            if found == [2] * NODES:
                break
            await asyncio.sleep(0.5)
            found = await versions()
        self.judge.equal(found, [2] * NODES, "some seconds after the last old node is gone all write version 2")


async def turns(world, judge):
    """Node by node to the next build; then one back to the build before, and to the next one again."""
    versions = Versions(world)
    restarts = await rolling.Restarts(world, versions.started).fill()
    await versions.judge_all(1, "before the upgrade")
    world.build = NEW
    for place in range(NODES):
        await restarts.again(place)
        if place < NODES - 1:
            await versions.judge_all(1, f"{place + 1} of {NODES} nodes are the next build")
    await versions.judge_risen()
    # A build before versions does not wait at its start until the others write what it reads.
    if not PREVIOUS:
        world.build = OLD
        await restarts.again(0)
        await versions.judge_all(1, "one node is back at the build before")
        world.build = NEW
        await restarts.again(0)
        await versions.judge_risen()
    await asyncio.sleep(1)
    await versions.judge_all(2, "after the upgrade")
    await restarts.end()
    return restarts.times


async def upgrade(world, judge):
    """Each node is replaced by the next build in turn: as for a restart, and no event with a policy is missed."""
    world.gateways, times = upgrade.gateways, []

    async def fault(world, judge):
        times.extend(await turns(world, judge))

    twice = await surface.judged(world, judge, fault)
    alone = [at for at in twice if not any(abs(at - time) <= FAULT_SECONDS for time in times)]
    judge.fact(not alone, f"who is told twice is so within {FAULT_SECONDS} s of a restart ({len(twice)})", f"{len(alone)} are not")


async def prepare(folder):
    return {**await surface.start_gateways(upgrade, folder), "build": OLD}


upgrade.prepare = prepare
CASES = {"upgrade": upgrade}
