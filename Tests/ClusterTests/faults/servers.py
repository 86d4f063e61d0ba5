"""Redis and PostgreSQL that are away, come back empty, slow, or too old: what clients and publishers see meanwhile."""

import asyncio
import json
import os
import time

from client import Client
from cluster import Redis
from hub import Failed, expect, signed_target
from link import DOWN, Link
from people import News, Person
from world import NODES

CHANNEL, NEWS = "presence-room", "news"


class Quiet:
    """Members on all nodes who stay, and a publisher at each node."""

    def __init__(self, world):
        self.world, self.judge = world, world.judge

    async def fill(self, members=4):
        self.people = [Person(self.world, f"member-{place}-{index}", CHANNEL, NEWS) for place in range(NODES) for index in range(members)]
        await asyncio.gather(*(person.come(self.world.nodes[index // members]) for index, person in enumerate(self.people)))
        self.users = [person.user for person in self.people]
        await self.world.lists(CHANNEL, self.users)
        await self.world.until(lambda: len(self.world.hooks(CHANNEL)) >= len(self.users) + 1)
        self.hooked = len(self.world.hooks(CHANNEL))
        for person in self.people:
            person.stay(returns=False)
        self.news = [News(self.world, place, NEWS, name=f"from-{place}").start() for place in range(NODES)]
        await asyncio.sleep(1)
        self.full_at = time.monotonic()
        return self

    def hooks(self):
        return self.world.hooks(CHANNEL)[self.hooked:]

    def judge_sockets(self):
        lost = [(person.user, person.ended) for person in self.people if person.ended]
        self.judge.fact(not lost, f"all {len(self.people)} sockets stay open", f"{lost[:6]}")

    async def judge_told(self, wanted=None):
        """Judges that everybody who stayed was told exactly of the comings and goings that happened."""
        wanted = wanted or {}
        await self.world.until(lambda: all(sum(map(len, person.told_of(self.full_at).values())) >= sum(map(len, wanted.values())) for person in self.people), 20)
        await asyncio.sleep(2)
        wrong = {person.user: told for person in self.people if (told := person.told_of(self.full_at)) != wanted}
        self.judge.fact(
            not wrong, f"everybody is told of these comings and goings alone: {wanted or 'none'}", f"{len(wrong)} are not: {dict(list(wrong.items())[:2])}")

    async def judge_hooks(self, wanted=()):
        await self.world.until(lambda: len(self.hooks()) >= len(wanted), 10)
        await asyncio.sleep(1)
        self.judge.equal(sorted(self.hooks(), key=repr), sorted(wanted, key=repr), "webhooks tell of what happened, and of it once")

    async def judge_news(self):
        for news in self.news:
            await news.stop()
        for news in self.news:
            await news.arrived(*(person.now for person in self.people))
            wrong = []
            for person in self.people:
                read = news.read(person.now)
                missing = set(news.accepted()) - set(read)
                if missing or read != sorted(set(read)):
                    wrong.append(f"{person.user}: missing {sorted(missing)[:10]}, doubles {len(read) - len(set(read))}, {'in' if read == sorted(read) else 'out of'} order")
            self.judge.fact(
                not wrong, f"all {len(self.people)} read the {len(news.accepted())} accepted events of node {news.place}, once and in order", *wrong[:4])

    def judge_refused(self, since, until):
        """Judges the publishes of a time in which they cannot be passed on."""
        for news in self.news:
            # The first one may have been on its way already.
            statuses, slowest = news.statuses(since, until), news.slowest(since - 2, until)
            refused = news.statuses(since - 2, until).count(503)
            self.judge.fact(
                refused and set(statuses) <= {503} and set(news.retry_after) <= {"1"} and slowest <= self.world.patience(2.0),
                f"node {news.place} answers {refused} publishes with 503 and Retry-After within 2 s: {slowest:.2f} s at the most",
                f"statuses { {status: statuses.count(status) for status in set(statuses)} }, Retry-After {set(news.retry_after)}, at most {self.world.patience(2.0):.2f} s")

    async def end(self):
        for person in self.people:
            await person.leave()


def redis_empty(seconds):
    async def case(world, judge):
        quiet = await Quiet(world).fill()
        leaver, newcomer = quiet.people.pop(), Person(world, "newcomer", CHANNEL, NEWS)
        world.redis.end()
        at = time.monotonic()
        await asyncio.sleep(1)
        # Who goes and who comes meanwhile is told once Redis is there.
        await leaver.leave()
        # Whoever waits does so for a minute at the most.
        await asyncio.sleep(max(0, seconds - 20))
        coming = asyncio.ensure_future(newcomer.come(world.nodes[0]))
        await asyncio.sleep(at + seconds - time.monotonic())
        await world.redis.again()
        back = time.monotonic()
        try:
            async with asyncio.timeout(world.patience(15)):
                await coming
            judge.fact(True, f"who subscribes meanwhile is let in {time.monotonic() - back:.2f} s after Redis is back")
        except (TimeoutError, Failed) as error:
            judge.fact(False, "who subscribes meanwhile is let in after Redis is back", repr(error))
        users = [user for user in quiet.users if user != leaver.user] + ["newcomer"]
        took = await world.lists(CHANNEL, users)
        judge.fact(took <= world.patience(15), f"all nodes name the right members {time.monotonic() - back:.2f} s after Redis is back")
        await quiet.judge_told({leaver.user: ["removed"], "newcomer": ["added"]})
        quiet.judge_refused(at, back - 2)
        quiet.judge_sockets()
        published = [news.statuses(time.monotonic() - 1.5) for news in quiet.news]
        judge.fact(all(200 in statuses for statuses in published), "publishes are answered 200 again", f"{published}")
        await quiet.judge_news()
        await quiet.judge_hooks([("member_removed", leaver.user), ("member_added", "newcomer")])
        await newcomer.leave()
        await quiet.end()

    case.__doc__ = f"Redis is killed, and started empty {seconds} s later."
    return case


async def postgres(world, judge):
    """PostgreSQL is away for 6 s, and crashes meanwhile: what needs no store goes on."""
    quiet = await Quiet(world).fill()
    expect((await world.nodes[0].call("PUT", "/sessions/faults", {"definition": "quiz", "join_code": "FAULTS"}, world.app)).status in (200, 201), "no session")
    stored = [News(world, place, "presence-quiz-faults", pause=0.3, name="session-started").start() for place in range(NODES)]
    await asyncio.sleep(2)
    before = [news.statuses() for news in stored]
    judge.fact(all(200 in statuses for statuses in before), "events with a policy are answered 200 before", f"{before} {[news.refusals for news in stored]}")
    refused = sum(statuses.count(503) for statuses in before)
    if refused:
        judge.note(f"{refused} of {sum(map(len, before))} events with a policy got 503 before: several nodes wrote into one channel")
    for link in world.store_links:
        link.close()
    at = time.monotonic()
    crash = await asyncio.create_subprocess_exec(os.environ["TANDEM_TEST_POSTGRES_CRASH"])
    await crash.wait()
    await asyncio.sleep(max(0, at + 6 - time.monotonic()))
    back = time.monotonic()
    for link in world.store_links:
        link.open()
    for news in quiet.news:
        statuses = news.statuses(at, back)
        judge.fact(
            set(statuses) == {200}, f"node {news.place} answers all {len(statuses)} publishes without a policy with 200 meanwhile",
            f"{ {status: statuses.count(status) for status in set(statuses)} }")
    for news in stored:
        statuses = news.statuses(at + 0.5, back - 2.5)
        judge.fact(
            statuses and set(statuses) == {503} and set(news.retry_after) == {"1"},
            f"node {news.place} answers {statuses.count(503)} events with a policy with 503 and Retry-After meanwhile: {news.slowest(at, back):.2f} s at the most",
            f"{statuses}, Retry-After {set(news.retry_after)}")

    def works():
        return all(200 in news.statuses(back) for news in stored)

    is_back = await world.until(works, world.patience(20))
    judge.fact(is_back, f"events with a policy are answered 200 again, {time.monotonic() - back:.2f} s after PostgreSQL is back")
    quiet.judge_sockets()
    await quiet.judge_told()
    await world.lists(CHANNEL, quiet.users)
    for news in stored:
        await news.stop()
    await quiet.judge_news()
    await quiet.judge_hooks()
    await quiet.end()


NO_ANSWERS = """
CREATE FUNCTION tandem.no_answers() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no answers today'; END $$;
CREATE TRIGGER no_answers BEFORE INSERT ON tandem.answer FOR EACH ROW WHEN (NEW.key LIKE 'once-%') EXECUTE FUNCTION tandem.no_answers();
"""
ANSWERS = "DROP FUNCTION tandem.no_answers CASCADE;"


async def keys(world, judge):
    """Publishes under keys go out, their answers are never stored, and a node dies: the repeated requests go out no second time."""
    async def run(text):
        psql = await asyncio.create_subprocess_exec("psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "-c", text, os.environ["TANDEM_TEST_POSTGRES"])
        expect(await psql.wait() == 0, "psql fails")

    async def publish(node, number):
        app = world.apps[world.app]
        body = json.dumps({"name": "once", "channels": [f"once-{number}", f"once-too-{number}"], "data": f"{number}"}).encode()
        return await node.request("POST", signed_target(app, "POST", f"/apps/{app.id}/events", body), body, {"Idempotency-Key": f"once-{number}"})

    reader = await Client.open(world.nodes[1], world.app)
    wanted = {(f"{name}-{number}", f"{number}") for number in range(24) for name in ("once", "once-too")}
    for channel, _ in sorted(wanted):
        await reader.subscribe(channel)
    await run(NO_ANSWERS)
    refused = [(await publish(world.nodes[0], number)).status for number in range(24)]
    judge.fact(set(refused) == {503}, "publishes whose answers are not stored get 503", f"{refused}")

    def told():
        return [(frame["channel"], frame["data"]) for frame in reader.all("once")]

    judge.fact(await world.until(lambda: set(told()) == wanted, 5), "they went out", f"{len(told())} of {len(wanted)}")
    await world.kill(0)
    await run(ANSWERS)
    for number in range(24):
        async with asyncio.timeout(world.patience(15)):
            while (answer := await publish(world.nodes[1 + number % 2], number)).status == 503:
                await asyncio.sleep(1)
        expect(answer.status == 200, "a repeated publish is refused", answer.status, answer.text)
    await asyncio.sleep(1)
    judge.equal(sorted(told()), sorted(wanted), "every event was read once")
    await reader.leave()


async def slow(world, judge):
    """The link of a node to Redis takes 200 ms there and back: nothing is lost, and the order is kept."""
    quiet = await Quiet(world).fill()
    world.redis_links[0].delay = 0.1
    at = time.monotonic()
    await asyncio.sleep(3)
    newcomer = await Person(world, "newcomer", CHANNEL, NEWS).come(world.nodes[0])
    judge.note(f"who comes to the slow node is let in after {time.monotonic() - at - 3:.2f} s")
    statuses = [status for news in quiet.news for status in news.statuses(at, time.monotonic() - 2)]
    judge.fact(set(statuses) == {200}, f"all {len(statuses)} publishes are answered 200", f"{ {status: statuses.count(status) for status in set(statuses)} }")
    judge.note(f"the slowest publish at the slow node takes {quiet.news[0].slowest(at):.2f} s")
    # Its connections break, and have to be made anew over the slow link.
    world.redis_links[0].drop()
    dropped = time.monotonic()
    is_back = await world.until(lambda: 200 in quiet.news[0].statuses(dropped), 5)
    judge.fact(is_back, f"the slow node makes broken connections anew: it answers 200 after {time.monotonic() - dropped:.2f} s", f"{quiet.news[0].statuses(dropped)}")
    await asyncio.sleep(4)
    await newcomer.leave()
    await quiet.judge_told({"newcomer": ["added", "removed"]})
    await world.lists(CHANNEL, quiet.users)
    quiet.judge_sockets()
    world.redis_links[0].delay = 0.0
    await quiet.judge_news()
    await quiet.judge_hooks([("member_added", "newcomer"), ("member_removed", "newcomer")])
    await quiet.end()


async def failover(world, judge):
    """A replica takes over that lacks the last entries: they are appended again, and nobody reads one twice."""
    way = await Link(world.redis.port).start()
    replica = await Redis.start(world.folder / "replica", master=way.port)
    world.started.append(replica)
    quiet = await Quiet(world).fill()

    async def is_joined():
        return "master_link_status:up" in await replica.ask("INFO", "replication")

    deadline = time.monotonic() + 30
    while not await is_joined() and time.monotonic() < deadline:
        await asyncio.sleep(0.1)
    judge.fact(await is_joined(), "the replica follows")
    way.cut()
    # One node has not read them either.
    world.redis_links[2].cut(DOWN)
    lag_at = time.monotonic()
    await asyncio.sleep(1.2)
    missing = [news.statuses(lag_at).count(200) for news in quiet.news[:2]]
    judge.fact(all(missing), f"the replica lacks the last {sum(missing)} accepted publishes, and so does node 2", f"{missing}")
    world.redis.end()
    await replica.ask("REPLICAOF", "NO", "ONE")
    for link in world.redis_links:
        link.lead(replica.port)
    world.redis_links[2].mend()
    at = time.monotonic()
    former, world.redis = world.redis, replica
    is_back = await world.until(lambda: all(200 in news.statuses(at + 0.3) for news in quiet.news), world.patience(10))
    judge.fact(is_back, f"publishes are answered 200 again {time.monotonic() - at:.2f} s after the failover")
    await asyncio.sleep(7)
    await quiet.judge_told()
    took = await world.lists(CHANNEL, quiet.users)
    judge.note(f"all nodes name the right members ({took:.2f} s)")
    quiet.judge_sockets()
    await quiet.judge_news()
    await quiet.judge_hooks()
    await quiet.end()
    await way.end()


CASES = {"redis-empty-3": redis_empty(3), "redis-empty-60": redis_empty(60), "postgres": postgres, "keys": keys, "slow": slow, "failover": failover}
