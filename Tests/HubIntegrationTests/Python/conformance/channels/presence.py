"""Presence channels (C12 to C15; docs/protocol.md, 2.5)."""

import asyncio
import json

from client import ADDED, REFUSED, REMOVED, SUCCEEDED
from hub import equal, expect


class Roster:
    """The members as a client library counts them: the acknowledgement, then every change. Fails where one would go wrong."""

    def __init__(self, client, channel):
        self.client, self.channel = client, channel

    @property
    def members(self):
        members = None
        for frame in self.client.frames:
            if frame.get("channel") != self.channel:
                continue
            data = frame["data"]
            if frame["event"] == SUCCEEDED:
                expect(members is None, "acknowledged twice")
                presence = json.loads(data)["presence"]
                ids, info = presence["ids"], presence["hash"]
                expect(all(isinstance(id, str) for id in ids) and len(set(ids)) == len(ids), "ids", presence)
                expect(isinstance(info, dict) and set(info) == set(ids) and presence["count"] == len(ids), "hash", presence)
                members = dict(info)
            elif frame["event"] in (ADDED, REMOVED):
                change = json.loads(data)
                expect(members is not None, "a change before the acknowledgement", data)
                if frame["event"] == ADDED:
                    expect(change["user_id"] not in members, "added twice", change)
                    members[change["user_id"]] = change.get("user_info")
                else:
                    equal(set(change), {"user_id"}, "member_removed")
                    expect(change["user_id"] in members, "removed without being there", change)
                    del members[change["user_id"]]
        return members

    async def becomes(self, ids):
        wanted = sorted(ids)
        await self.client.until(lambda: self.members is not None and sorted(self.members) == wanted, f"{len(wanted)} members")
        return self.members


async def c12_presence(s):
    channel = "presence-c12"
    clients = await s.clients(4)
    first = await clients[0].subscribe(channel, user="10", info={"name": "A"})
    equal(first, {"presence": {"ids": ["10"], "hash": {"10": {"name": "A"}}, "count": 1}}, "the joiner in its own list")
    second = (await clients[1].subscribe(channel, user="11"))["presence"]
    equal(sorted(second["ids"]), ["10", "11"])
    expect(second["hash"]["10"] == {"name": "A"} and second["hash"]["11"] in (None, {}), second)
    added = json.loads((await clients[0].event(ADDED, channel))["data"])
    equal(added["user_id"], "11")
    await clients[2].subscribe(channel, user="12", info={"name": "C", "n": [1, None, {"\u00e9": True}]})
    added = json.loads((await clients[1].event(ADDED, channel))["data"])
    equal(added, {"user_id": "12", "user_info": {"name": "C", "n": [1, None, {"\u00e9": True}]}})
    # A node that hears of a coming and a going in one turn tells of neither.
    await clients[0].event(ADDED, channel, count=2)
    await clients[2].unsubscribe(channel)
    equal(json.loads((await clients[0].event(REMOVED, channel))["data"]), {"user_id": "12"})
    await clients[1].leave()
    equal(json.loads((await clients[0].event(REMOVED, channel, count=2))["data"]), {"user_id": "11"})
    await clients[2].sync()
    # Nobody is told of itself, and who has left is told nothing.
    equal([len(client.all(ADDED, channel)) for client in clients[:3]], [2, 1, 0])
    equal(clients[2].all(REMOVED, channel), [])


async def c12_one_person_on_many_sockets(s):
    """On two loops at least: added with the first socket, removed with the last."""
    channel = "presence-c12-many"
    watchers = await s.clients(4)
    for number, watcher in enumerate(watchers):
        await watcher.subscribe(channel, user=f"w{number}")
    rosters = [Roster(watcher, channel) for watcher in watchers]
    everyone = {f"w{number}" for number in range(4)}
    sockets = await s.clients(6)
    acknowledgements = [(await socket.subscribe(channel, user="p", info={"n": 1}))["presence"] for socket in sockets]
    expect(all(presence["count"] == 5 and sorted(presence["ids"]) == sorted(everyone | {"p"}) for presence in acknowledgements))
    for roster in rosters:
        await roster.becomes(everyone | {"p"})
    users = (await s.hub.get(f"/channels/{channel}/users")).json["users"]
    equal(sorted(user["id"] for user in users), sorted(everyone | {"p"}))
    await sockets[0].leave()
    await sockets[1].unsubscribe(channel)
    sockets[2].drop()
    await sockets[3].leave()
    await sockets[4].leave()
    info = {}
    while info.get("subscription_count") != 5:
        info = (await s.hub.get(f"/channels/{channel}", info="user_count,subscription_count")).json
        equal(info["user_count"], 5)
        await asyncio.sleep(0.02)
    for watcher in watchers:
        await watcher.sync()
    equal([watcher.data(REMOVED, channel) for watcher in watchers], [[]] * 4)
    await sockets[5].leave()
    for roster, watcher in zip(rosters, watchers):
        await roster.becomes(everyone)
        equal(len(watcher.all(REMOVED, channel)), 1)
        equal(len([data for data in watcher.data(ADDED, channel) if json.loads(data)["user_id"] == "p"]), 1)
    for socket in sockets[:5]:
        equal(socket.all(ADDED, channel), [], "a person's own sockets are told")


async def c12_newest_info(s):
    """A person's `user_info` is that of the newest join, for those who come later."""
    channel = "presence-c12-info"
    old, new, late = await s.clients(3)
    await old.subscribe(channel, user="p", info={"n": 1})
    await new.subscribe(channel, user="p", info={"n": 2})
    equal((await late.subscribe(channel, user="late"))["presence"]["hash"]["p"], {"n": 2})


async def c12_rejoining(s):
    """Leaving and coming back, also on the same socket and in one breath, is seen as it happened."""
    channel = "presence-c12-again"
    watcher, client = await s.clients(2)
    await watcher.subscribe(channel, user="w")
    for number in range(5):
        await client.send(client.subscription(channel, user="p"))
        await client.unsubscribe(channel)
    await client.subscribe(channel, user="p")
    members = await Roster(watcher, channel).becomes({"w", "p"})
    expect(len(watcher.all(ADDED, channel)) == len(watcher.all(REMOVED, channel)) + 1, members)


async def c13_numeric_ids(s):
    channel = "presence-c13"
    watcher, number, text = await s.clients(3)
    await watcher.subscribe(channel, user="w")
    await number.subscribe(channel, user=10)
    presence = (await text.subscribe(channel, user="10"))["presence"]
    equal((sorted(presence["ids"]), presence["count"]), (["10", "w"], 2))
    await number.leave()
    await watcher.sync()
    await text.leave()
    await watcher.event(REMOVED, channel)
    await watcher.sync()
    equal(watcher.data(ADDED, channel), ['{"user_id":"10"}'])
    equal(watcher.data(REMOVED, channel), ['{"user_id":"10"}'])
    # Without exponent or fraction.
    for sent, id in (("0", "0"), ("-5", "-5"), ("9007199254740993", "9007199254740993"), ("9223372036854775807", "9223372036854775807"),
                     ("1e3", "1000"), ("10.0", "10")):
        client = await s.client()
        presence = (await client.subscribe(f"presence-c13{id}", channel_data='{"user_id":%s}' % sent))["presence"]
        equal(presence["ids"], [id], sent)


async def c14_member_limit(s):
    """Three are allowed in this app."""
    channel = "presence-c14"
    clients = await s.clients(6, "small")
    for client, user in zip(clients, "abc"):
        await client.subscribe(channel, user=user)
    await clients[3].refused(clients[3].subscription(channel, user="d"), channel)
    # A further socket of a member is no further member.
    equal((await clients[4].subscribe(channel, user="a"))["presence"]["count"], 3)
    await clients[4].leave()
    await clients[3].refused(clients[3].subscription(channel, user="d"), channel)
    await clients[1].leave()
    await clients[0].event(REMOVED, channel)
    await clients[3].subscribe(channel, user="d")
    await clients[5].refused(clients[5].subscription(channel, user="e"), channel)


async def c14_race_for_the_last_places(s):
    channel = "presence-c14-race"
    clients = await s.clients(12, "small")
    await asyncio.gather(*(client.send(client.subscription(channel, user=str(number))) for number, client in enumerate(clients)))
    outcomes = [await client.until(lambda: client.all(SUCCEEDED) or client.all(REFUSED), "an answer") for client in clients]
    equal(sum(frames[0]["event"] == SUCCEEDED for frames in outcomes), 3)
    users = (await s.hub.get(f"/channels/{channel}/users", app="small")).json["users"]
    equal(len(users), 3)


async def c15_hundred_join_at_once(s):
    """A hundred members, the default limit, who join in the same moment: all lists become the same set; so when half leave."""
    channel = "presence-c15"
    clients = await s.clients(100)
    rosters = [Roster(client, channel) for client in clients]
    await asyncio.gather(*(client.send(client.subscription(channel, user=str(n), info={"n": n})) for n, client in enumerate(clients)))
    everyone = {str(n) for n in range(100)}
    lists = await asyncio.gather(*(roster.becomes(everyone) for roster in rosters))
    expect(all(members == {str(n): {"n": n} for n in range(100)} for members in lists))
    late = await s.client()
    await late.refused(late.subscription(channel, user="100"), channel)
    await asyncio.gather(*(client.leave() for client in clients[:50]))
    await asyncio.gather(*(roster.becomes({str(n) for n in range(50, 100)}) for roster in rosters[50:]))
    await late.subscribe(channel, user="100")
    await asyncio.gather(*(roster.becomes({str(n) for n in range(50, 101)}) for roster in rosters[50:]))


async def c15_comings_and_goings(s):
    """Forty people on sockets of their own come and go at random; who stays sees in the end exactly who is there."""
    channel = "presence-c15-churn"
    watchers = await s.clients(3)
    for number, watcher in enumerate(watchers):
        await watcher.subscribe(channel, user=f"w{number}")

    async def wander(number):
        client = await s.client()
        for turn in range(4):
            await client.send(client.subscription(channel, user=str(number % 20)))
            if turn < 3 or number % 2:
                await asyncio.sleep(0.01 * (number % 3))
                await client.unsubscribe(channel)
        await client.sync()

    await asyncio.gather(*(wander(number) for number in range(40)))
    staying = {str(number % 20) for number in range(0, 40, 2)} | {"w0", "w1", "w2"}
    for watcher in watchers:
        await Roster(watcher, channel).becomes(staying)


async def c15_user_object_limits(s):
    client = await s.client()
    # A kilobyte is allowed, two are not; the text between is the server's choice.
    filler = lambda size: '{"user_id":"1","user_info":"%s"}' % ("x" * (size - 30))
    equal(len(filler(1024)), 1024)
    await client.subscribe("presence-c15-1024", channel_data=filler(1024))
    for size in (2049, 5000):
        channel = f"presence-c15-{size}"
        await client.refused(client.subscription(channel, channel_data=filler(size)), channel)
    await client.subscribe("presence-c15-128", user="u" * 128)
    await client.subscribe("presence-c15-128e", user="\u00e9" * 128)
    await client.refused(client.subscription("presence-c15-201", user="u" * 201), "presence-c15-201")
