"""Nodes that are restarted one after the other, as for an upgrade, under publishers and members."""

import asyncio
import signal
import time

from people import News, Person
from world import NODES

LARGE, SMALL, NEWS = "presence-large", "presence-small", "news"
PEOPLE, FEW = 180, 9
RECONNECTS_PER_SECOND_MAX = 500
# An absence that nobody is told of.
SHORT_SECONDS = 3.0


def absences(person, until):
    """Times at which the person's connection ended, and was there again."""
    backs = [*person.back_at, *[until] * (len(person.ended) - len(person.back_at))]
    return [(ended, back) for (ended, _), back in zip(person.ended, backs)]


def most_within_a_second(times):
    times, most, first = sorted(times), 0, 0
    for index, at in enumerate(times):
        while at - times[first] > 1.0:
            first += 1
        most = max(most, index - first + 1)
    return most


def told_wrongly(people, until):
    """Members that somebody was told removed although they were back in time, and how many were told removed at all."""
    by_name, wrong, count = {person.user: person for person in people}, [], 0
    for person in people:
        for at, change, user in person.changes():
            if change != "removed":
                continue
            count += 1
            if not any(ended <= at and min(at, back) - ended >= SHORT_SECONDS - 0.5 for ended, back in absences(by_name[user], until)):
                wrong.append(f"{person.user} is told that {user} is removed")
    return wrong, count


def missed(person, news):
    """Accepted events that were published while a connection of the person was there, and that it has not read; and doubles."""
    missing, doubles = [], 0
    ends = [at for at, _ in person.ended]
    for index, connection in enumerate(person.clients):
        read = news.read(connection)
        doubles += len(read) - len(set(read)) + (read != sorted(read))
        succeeded = [at for at, frame in zip(connection.times, connection.frames) if frame["event"].endswith("subscription_succeeded")]
        if len(succeeded) < 2:
            continue
        # An event that was answered just before the end may still have been on its way.
        end = ends[index] - 1 if index < len(ends) else float("inf")
        known = set(read)
        missing += [
            number for number in news.accepted()
            if succeeded[-1] <= news.took[number][0] and sum(news.took[number]) <= end and number not in known]
    return missing, doubles


class Restarts:
    """Members and publishers, while nodes end with SIGTERM and start again on their ports. `started(place)` follows each start."""

    def __init__(self, world, started=None):
        self.world, self.judge, self.started = world, world.judge, started
        # When a node was asked to end.
        self.times = []

    async def fill(self):
        world = self.world
        self.people = [Person(world, f"large-{index}", LARGE, NEWS) for index in range(PEOPLE)]
        self.few = [Person(world, f"small-{index}", SMALL, NEWS) for index in range(FEW)]
        self.everybody = self.people + self.few
        for start in range(0, len(self.everybody), 60):
            await asyncio.gather(*(person.come(world.balanced) for person in self.everybody[start:start + 60]))
        await world.lists(LARGE, [person.user for person in self.people])
        for person in self.everybody:
            person.stay()
        self.news = [News(world, None, NEWS, name=f"from-{index}").start() for index in range(2)]
        await asyncio.sleep(2)
        return self

    async def again(self, place):
        """Restarts a node, and waits until everybody is back and would have been told removed."""
        self.times.append(time.monotonic())
        code = await self.world.nodes[place].end(signal.SIGTERM)
        self.judge.fact(code == 0, f"node {place} stops within {time.monotonic() - self.times[-1]:.1f} s", f"exit code {code}")
        await self.world.again(place)
        if self.started:
            await self.started(place)
        is_whole = await self.world.until(lambda: all(len(person.back_at) == len(person.ended) for person in self.everybody))
        self.judge.fact(is_whole, f"everybody is back after the restart of node {place}")
        await asyncio.sleep(SHORT_SECONDS + 1)

    async def end(self):
        judge, end = self.judge, time.monotonic()
        for one in self.news:
            await one.stop()
            await one.arrived(*(person.now for person in self.everybody))
        codes = {code for person in self.everybody for _, code in person.ended}
        backs = [at for person in self.everybody for at in person.back_at]
        judge.equal(codes, {4200}, f"all {len(backs)} ends of connections are 4200")
        most = most_within_a_second(backs)
        judge.fact(most <= RECONNECTS_PER_SECOND_MAX, f"at most {most} reconnects within a second")
        away = sorted(back - ended for person in self.everybody for ended, back in absences(person, end))
        judge.note(f"away for {away[len(away) // 2]:.2f} s in the median, {away[-1]:.2f} s at the most")
        for name, group in ((LARGE, self.people), (SMALL, self.few)):
            wrong, count = told_wrongly(group, end)
            judge.fact(not wrong, f"nobody in {name} is told removed who is back within 3 s ({count} were told removed)", f"{len(wrong)}: {wrong[:3]}")
            took = await self.world.lists(name, [person.user for person in group])
            judge.note(f"all nodes name the {len(group)} members of {name} ({took:.2f} s)")
        for one in self.news:
            self._judge_news(one)
        for person in self.everybody:
            await person.leave()

    def _judge_news(self, one):
        bad = {status: list(one.answers.values()).count(status) for status in set(one.answers.values())}
        # A connection that a node has not taken when it stops to listen is reset: a backend tries again.
        self.judge.fact(
            set(bad) <= {200, None} and bad.get(None, 0) <= len(self.times),
            f"publishes through the balancer are answered 200 ({bad[200]}), or their connection is reset as a node stops ({bad.get(None, 0)})", f"{bad}")
        found = {person.user: missed(person, one) for person in self.everybody}
        found = {user: what for user, what in found.items() if what != ([], 0)}
        self.judge.fact(not found, f"everybody reads once and in order what is published while they are there, by {one.name}", f"{len(found)}: {list(found.items())[:3]}")


async def rolling(world, judge):
    """Each node is restarted with SIGTERM in turn: nothing is lost but what is sent while somebody is away, and nobody is told removed."""
    restarts = await Restarts(world).fill()
    for place in range(NODES):
        await restarts.again(place)
    await restarts.end()


# Publishers at the nodes that stay, each to a channel of its own that has a definition: its owner decides about every event.
OWNED, OWNER_WAIT_SECONDS = 12, 1.0
# A takeover that waits for a node that is gone ends 2 s after it began.
LEFT_SECONDS, LATE_SECONDS = 1.3, 0.7


async def leave(world, judge):
    """SIGTERM of a node: the others have its partitions before its clients go, and no publisher waits for an owner twice."""
    news = [News(world, 1 + index % (NODES - 1), f"private-orders-{index}", pause=0.1, name="news").start() for index in range(OWNED)]
    await asyncio.sleep(2)
    began = time.monotonic()
    code = await world.nodes[0].end(signal.SIGTERM)
    judge.fact(code == 0, f"the node stops within {time.monotonic() - began:.1f} s", f"exit code {code}")
    await asyncio.sleep(3)
    for one in news:
        await one.stop()
    statuses = [status for one in news for status in one.statuses()]
    judge.fact(set(statuses) == {200}, f"all {len(statuses)} publishes are answered 200", f"{set(statuses)}")
    waits = [sum(took >= OWNER_WAIT_SECONDS for start, took in one.took.values() if start >= began - OWNER_WAIT_SECONDS) for one in news]
    judge.fact(max(waits) <= 1, f"{sum(map(bool, waits))} of {OWNED} publishers wait a second for an owner, each once", f"{waits}")
    # The next owners have asked the node who is present there, and do not wait for it once it is gone.
    late = [round(took, 2) for one in news for start, took in one.took.values() if start >= began + LEFT_SECONDS and took >= LATE_SECONDS]
    judge.fact(not late, f"no publish {LEFT_SECONDS} s behind the signal or later takes {LATE_SECONDS} s", f"{late}")
    judge.note(f"the slowest publish takes {max(one.slowest(began - OWNER_WAIT_SECONDS) for one in news):.2f} s")


CASES = {"rolling": rolling, "leave": leave}
