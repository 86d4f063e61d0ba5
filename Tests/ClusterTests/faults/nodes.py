"""Nodes that die, stand still, or lose their way to Redis: what members of presence channels are told of it."""

import asyncio
import json
import signal
import time

from link import DOWN, UP
from people import News, Person

CHANNEL, LONELY, NEWS = "presence-room", "presence-lonely", "news"
# Beats from a node's last one until its members are told removed, and some for what happens between: the promise is 5 s.
REMOVED_BEATS = 10
SLACK_BEATS = 3


class Room:
    """A presence channel over three nodes, one of which will be gone."""

    def __init__(self, world, lost):
        self.world, self.judge, self.lost = world, world.judge, lost
        self.others = [place for place in range(3) if place != lost]

    def person(self, user, channel=CHANNEL):
        return Person(self.world, user, channel, NEWS)

    async def fill(self):
        """Watchers on the other nodes; people of the lost one who never come back, who do, and who are on another node as well."""
        node = self.world.nodes
        self.watchers = [await self.person(f"watcher-{place}").come(node[place]) for place in self.others]
        self.gone = [self.person(f"gone-{index}") for index in range(8)]
        self.back = [self.person(f"back-{index}") for index in range(6)]
        self.late = [self.person(f"late-{index}") for index in range(4)]
        self.also = [self.person(f"also-{index}") for index in range(4)]
        self.elsewhere = [self.person(person.user) for person in self.also]
        self.lonely = [self.person(f"lonely-{index}", LONELY) for index in range(2)]
        self.here = self.gone + self.back + self.late + self.also + self.lonely
        await asyncio.gather(*(person.come(node[self.lost]) for person in self.here), *(
            person.come(node[self.others[index % 2]]) for index, person in enumerate(self.elsewhere)))
        self.everybody = sorted({person.user for person in self.watchers + self.gone + self.back + self.late + self.also})
        await self.world.lists(CHANNEL, self.everybody)
        # The webhooks of coming are through.
        await self.world.until(lambda: len(self.world.hooks(CHANNEL)) >= len(self.everybody) + 1 and len(self.world.hooks(LONELY)) >= 3)
        self.news = [News(self.world, place, NEWS, name=f"from-{place}").start() for place in self.others]
        self.hooked = {channel: len(self.world.hooks(channel)) for channel in (CHANNEL, LONELY)}

    def hooks(self, channel):
        """What webhooks told of a channel since it was full."""
        return self.world.hooks(channel)[self.hooked[channel]:]

    async def told(self, wanted, since, seconds=60):
        """Waits until every watcher was told what is wanted, and for a while in which nothing else should come."""
        def is_told():
            return all(sum(map(len, watcher.told_of(since).values())) >= sum(map(len, wanted.values())) for watcher in self.watchers)

        await self.world.until(is_told, seconds)
        await asyncio.sleep(1.5)
        for watcher in self.watchers:
            self.judge.equal(watcher.told_of(since), wanted, f"{watcher.user} is told of comings and goings exactly what happened")

    async def judge_news(self):
        for news in self.news:
            await news.stop()
            await news.arrived(*(watcher.now for watcher in self.watchers))
            self.judge.fact(
                set(news.answers.values()) == {200}, f"the {len(news.answers)} publishes at node {news.place} are answered 200",
                f"{[(number, status) for number, status in news.answers.items() if status != 200][:10]}")
            for watcher in self.watchers:
                news.judge(self.judge, watcher.user, watcher.now)

    def judge_removal(self, at, last_beat_at, what):
        """Judges when the watchers were told removed, in beats of the hub."""
        for watcher in self.watchers:
            times = [when for when, change, user in watcher.changes(at) if change == "removed" and user.startswith("gone-")]
            if not times:
                continue
            beats = self.world.beats_between(at, max(times))
            self.judge.fact(
                beats <= REMOVED_BEATS + SLACK_BEATS and min(times) >= last_beat_at + 4.4,
                f"{watcher.user} is told removed {min(times) - at:.2f} to {max(times) - at:.2f} s and {beats} beats after {what}",
                f"at most {REMOVED_BEATS + SLACK_BEATS} beats, and not before {last_beat_at + 4.5 - at:.2f} s")

    def judge_hooks(self):
        """Judges the webhooks of a room whose gone people are told removed, and of a channel that is empty now."""
        told = [("member_removed", person.user) for person in self.gone]
        told += [("member_added", person.user) for person in self.late if person in self.gone]
        self.judge.equal(sorted(self.hooks(CHANNEL)), sorted(told), f"webhooks tell member_removed of {CHANNEL} once")

    async def end(self):
        for person in self.watchers + self.here + self.elsewhere:
            await person.leave()


async def last_beat(world):
    """When the node that stands still longest has beaten last, on the monotonic clock."""
    epoch = (await world.redis.ask("GET", "tandem:epoch")).split()[0]
    oldest = (await world.redis.ask("ZRANGE", f"tandem:{epoch}:last-beats", "0", "0", "WITHSCORES"))[1]
    return time.monotonic() - (time.time() - float(oldest) / 1000)


async def return_late(world, people, place):
    """Brings people back as soon as Redis has them among those who leave; returns when they were let in."""
    epoch = (await world.redis.ask("GET", "tandem:epoch")).split()[0]
    deadline = time.monotonic() + 20
    while not await world.redis.ask("ZCARD", f"tandem:{epoch}:leaving") and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
    await asyncio.gather(*(person.come(world.nodes[place]) for person in people))
    return time.monotonic()


async def kill(world, judge):
    """kill -9 of a node: who is gone is told removed once, and nobody else."""
    room = Room(world, lost=0)
    await room.fill()
    for person in room.back:
        person.stay(*room.others)
    at = await world.kill(0)
    beat_at = await last_beat(world)
    late_at = await return_late(world, room.late, 1)
    if late_at > beat_at + 4.4:
        judge.note("this machine is too busy to bring people back between the sweep and the removal")
        room.gone += room.late
    else:
        judge.note(f"{len(room.late)} of those whom the sweep has found already are back {late_at - at:.2f} s after the kill")
    wanted = {person.user: ["removed"] for person in room.gone if person not in room.late}
    await room.told(wanted | {person.user: ["removed", "added"] for person in room.late if person in room.gone}, at)
    room.judge_removal(at, beat_at, "the kill")
    judge.fact(all(person.back_at for person in room.back), "who comes back is let in before", f"{[person.back_at for person in room.back]}")
    left = [user for user in room.everybody if not user.startswith("gone-")]
    took = await world.lists(CHANNEL, left, room.others)
    judge.note(f"both nodes name the {len(left)} members that are left ({took:.2f} s)")
    await world.until(lambda: len(room.hooks(LONELY)) >= 3 and len(room.hooks(CHANNEL)) >= len(room.gone), world.patience(8))
    await asyncio.sleep(1)
    room.judge_hooks()
    judge.equal(
        sorted(room.hooks(LONELY), key=repr),
        sorted([("member_removed", "lonely-0"), ("member_removed", "lonely-1"), ("channel_vacated", None)], key=repr),
        f"webhooks tell of {LONELY} that its members are gone and that it is vacated, each once")
    judge.fact(
        room.hooks(LONELY)[-1:] == [("channel_vacated", None)], f"{LONELY} is vacated after its last member has left", f"{room.hooks(LONELY)}")
    await world.again(0)
    again = await room.person("gone-0").come(world.nodes[0])
    took = await world.lists(CHANNEL, [*left, "gone-0"])
    judge.note(f"the node is one of the hub's again: all three name the newcomer ({took:.2f} s)")
    await again.leave()
    await room.judge_news()
    await room.end()


async def stop(world, judge):
    """SIGSTOP of a node for 10 s, and SIGCONT: its sockets get 4200, and everybody is told removed and added once."""
    room = Room(world, lost=0)
    await room.fill()
    # To the node itself as well: it is a new one for the others.
    for index, person in enumerate(room.here):
        person.stay(*([0] if index % 2 else room.others))
    world.signal(0, signal.SIGSTOP)
    at = time.monotonic()
    beat_at = await last_beat(world)
    await asyncio.sleep(10)
    world.signal(0, signal.SIGCONT)
    woken = time.monotonic()
    is_back = await world.until(lambda: all(person.back_at for person in room.here), world.patience(20))
    judge.fact(is_back, "everybody of the node comes back", f"not back: {[person.user for person in room.here if not person.back_at]}")
    judge.equal(
        {code for person in room.here for _, code in person.ended}, {4200}, f"the node's {len(room.here)} sockets get 4200")
    if is_back:
        judge.note(f"everybody is back {max(person.back_at[0] for person in room.here) - woken:.2f} s after SIGCONT")
    await room.told({person.user: ["removed", "added"] for person in room.gone + room.back + room.late}, at)
    room.judge_removal(at, beat_at, "SIGSTOP")
    took = await world.lists(CHANNEL, room.everybody)
    judge.note(f"all three nodes name everybody ({took:.2f} s)")
    for person in room.here:
        read = [(frame["event"], json.loads(frame["data"])["n"]) for one in person.clients for frame in one.frames if frame["event"].startswith("from-")]
        if len(read) != len(set(read)):
            judge.fact(False, f"{person.user} reads nothing twice", f"{len(read) - len(set(read))} doubles")
            break
    else:
        judge.fact(True, f"none of the node's {len(room.here)} people reads an event twice")
    away = room.gone + room.back + room.late
    hooks = sorted((change, person.user) for person in away for change in ("member_removed", "member_added"))
    await world.until(lambda: len(room.hooks(CHANNEL)) >= len(hooks))
    await asyncio.sleep(1)
    told = sorted(room.hooks(CHANNEL))
    judge.fact(
        len(told) == len(set(told)) and set(told) <= set(hooks) and {hook for hook in hooks if hook[0] == "member_removed"} <= set(told),
        "webhooks tell removed of each once, and nothing twice", f"{told}")
    # A partition that passes to the node that is back has no owner for a moment, and a fact of that moment is lost.
    judge.note(f"webhooks tell added of {sum(change == 'member_added' for change, _ in told)} of {len(away)}")
    await room.judge_news()
    await room.end()


def cut(*ways, name):
    async def case(world, judge):
        room = Room(world, lost=0)
        await room.fill()
        for index, person in enumerate(room.here):
            person.stay(*([0] if index % 2 else room.others))
        world.redis_links[0].cut(*ways)
        at = time.monotonic()
        await asyncio.sleep(1.2)
        beat_at = await last_beat(world)
        alone = News(world, 0, NEWS, name="alone")
        for _ in range(3):
            await alone.one()
        judge.fact(
            set(alone.statuses()) == {503} and set(alone.retry_after) == {"1"} and alone.slowest() <= world.patience(2.0),
            f"the node answers publishes with 503 and Retry-After within 2 s: {alone.slowest():.2f} s at the most", f"{alone.statuses()}")
        left = await world.until(lambda: all(person.ended for person in room.here), at + world.patience(9) - time.monotonic())
        noticed = [person.ended[0][0] - at for person in room.here if person.ended]
        judge.fact(
            left, f"its {len(room.here)} sockets get 4200 while the link is cut, {max(noticed, default=0):.2f} s after",
            f"{len(noticed)} got it")
        judge.equal((await world.nodes[0].request("GET", "/ready")).status, 503, "/ready of the node while the link is cut")
        await asyncio.sleep(max(0, at + 9 - time.monotonic()))
        world.redis_links[0].mend()
        mended = time.monotonic()
        is_back = await world.until(lambda: all(person.back_at for person in room.here), world.patience(20))
        judge.fact(is_back, "everybody of the node comes back", f"not back: {[person.user for person in room.here if not person.back_at]}")
        judge.equal({code for person in room.here for _, code in person.ended}, {4200}, f"the node's {len(room.here)} sockets get 4200")
        if is_back:
            judge.note(f"the last one is back {max(person.back_at[0] for person in room.here) - mended:.2f} s after the link is mended")
        await room.told({person.user: ["removed", "added"] for person in room.gone + room.back + room.late}, at)
        room.judge_removal(at, beat_at, "the cut")
        took = await world.lists(CHANNEL, room.everybody)
        judge.note(f"all three nodes name everybody ({took:.2f} s)")
        await room.judge_news()
        await room.end()

    case.__doc__ = f"The link of a node to Redis is cut {name} for 9 s: it is swept, gives its partitions away, and its sockets get 4200."
    return case


CASES = {
    "kill": kill, "stop": stop, "cut": cut(name="in both directions"), "cut-up": cut(UP, name="on the way to Redis"),
    "cut-down": cut(DOWN, name="on the way from Redis")}
