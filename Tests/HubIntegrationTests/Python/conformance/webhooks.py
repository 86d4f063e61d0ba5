"""Webhooks (C27; docs/protocol.md, 6): a receiver on this machine, and what must arrive there."""

import asyncio
import json
import signal
import time

from hub import PATIENCE, App, Clock, Failed, equal, expect

KINDS = {"channel_occupied", "channel_vacated", "member_added", "member_removed", "client_event", "cache_miss", "subscription_count"}


class Request:
    def __init__(self, path, headers, body, at):
        self.path, self.headers, self.body, self.at = path, headers, body, at
        self.status = 200
        self.json = json.loads(body)


class Receiver:
    """Takes webhooks and keeps them. `/slow` answers late, the first time; `/failing` refuses what names `fail-2` twice, and `/late`
    what names `refuse-always` always."""

    async def start(self):
        self.requests = []
        self._changed = asyncio.Condition()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def _serve(self, reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
                body = await reader.readexactly(int(headers["content-length"]))
                request = Request(head[0].split()[1], headers, body, time.monotonic())
                equal(head[0].split()[0], "POST")
                known = sum(other.path == request.path and other.body == body for other in self.requests)
                if request.path == "/failing" and b"fail-2" in body and known < 2 or request.path == "/late" and b"refuse-always" in body:
                    request.status = 500
                async with self._changed:
                    self.requests.append(request)
                    self._changed.notify_all()
                if request.path == "/slow" and not known:
                    # Longer than a webhook's time-out, four seconds.
                    await asyncio.sleep(8)
                writer.write(b"HTTP/1.1 %d Whatever\r\nContent-Length: 0\r\n\r\n" % request.status)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def events(self, path, channel, name=None):
        """Events about a channel in the order of arrival, each with its request."""
        return [(event, request) for request in self.requests if request.path == path
                for event in request.json["events"] if event.get("channel") == channel and name in (None, event["name"])]

    async def until(self, path, channel, name=None, count=1, timeout=None):
        """The events, once there are so many."""
        try:
            async with asyncio.timeout(timeout or PATIENCE), self._changed:
                await self._changed.wait_for(lambda: len(self.events(path, channel, name)) >= count)
        except TimeoutError:
            raise Failed(f"waited for {count} × {name} of {channel} at {path}; there are {[event for event, _ in self.events(path, channel)]}") from None
        return self.events(path, channel, name)

    def names(self, channel, path="/all"):
        return [event["name"] for event, _ in self.events(path, channel)]


async def c27_signed_bytes(s):
    """The signature is that of the bytes that arrive; the headers are exact; vector V11 is what this signer makes."""
    vector = '{"time_ms":1327078148132,"events":[{"name":"channel_occupied","channel":"my-channel"}]}'
    equal(s.hub.apps["vectors"].hmac(vector), "c19001ae3963ccb13bf618e5b16ba9848e7e74df0993aa0689168e341c6833cf", "V11")
    client = await s.client("hooks")
    await client.subscribe("c27-signed")
    event, request = (await s.suite.receiver.until("/all", "c27-signed", "channel_occupied"))[0]
    equal(request.headers["content-type"], "application/json")
    equal(request.headers["x-pusher-key"], client.app.key)
    equal(request.headers["x-pusher-signature"], client.app.hmac(request.body))
    equal(set(request.json), {"time_ms", "events"})
    expect(type(request.json["time_ms"]) is int and abs(request.json["time_ms"] / 1000 - time.time()) < 60, request.json)
    equal(event, {"name": "channel_occupied", "channel": "c27-signed"})
    expect(1 <= len(request.json["events"]) <= 20, request.json)


async def c27_every_kind(s):
    """With exactly the members that it has, all of them text but the count."""
    receiver = s.suite.receiver
    one, two = await s.clients(2, "hooks")
    await one.subscribe("cache-c27")
    equal((await receiver.until("/all", "cache-c27", "cache_miss"))[0][0], {"name": "cache_miss", "channel": "cache-c27"})
    await one.subscribe("presence-c27", user=5)
    await two.subscribe("presence-c27", user="5")
    await two.client_event("client-x", "presence-c27", {"a": 1})
    equal((await receiver.until("/all", "presence-c27", "client_event"))[0][0], {
        "name": "client_event", "channel": "presence-c27", "event": "client-x", "data": '{"a":1}', "socket_id": two.socket_id, "user_id": "5"})
    await one.subscribe("private-c27")
    await one.client_event("client-y", "private-c27", "text")
    equal((await receiver.until("/all", "private-c27", "client_event"))[0][0], {
        "name": "client_event", "channel": "private-c27", "event": "client-y", "data": "text", "socket_id": one.socket_id})
    await two.subscribe("private-c27")
    counts = await receiver.until("/all", "private-c27", "subscription_count", count=2)
    equal([event for event, _ in counts][:2], [{"name": "subscription_count", "channel": "private-c27", "subscription_count": n} for n in (1, 2)])
    for client in (one, two):
        await client.leave()
    equal([event for event, _ in await receiver.until("/all", "presence-c27", "member_removed")],
          [{"name": "member_removed", "channel": "presence-c27", "user_id": "5"}])
    await receiver.until("/all", "presence-c27", "channel_vacated")
    await receiver.until("/all", "cache-c27", "channel_vacated")
    equal([event for event, _ in receiver.events("/all", "presence-c27", "member_added")],
          [{"name": "member_added", "channel": "presence-c27", "user_id": "5"}])
    equal([receiver.names("presence-c27").count(name) for name in ("channel_occupied", "channel_vacated")], [1, 1])
    equal({event["name"] for request in receiver.requests for event in request.json["events"]} - KINDS, set())


async def c27_order(s):
    """Events of one channel in the order in which they happened."""
    channel = "presence-c27-order"
    first, second = await s.clients(2, "hooks")
    await first.subscribe(channel, user="a")
    await second.subscribe(channel, user="b")
    await first.client_event("client-x", channel, 1)
    await second.event("client-x")
    await first.leave()
    await second.event("pusher_internal:member_removed")
    await second.leave()
    await s.suite.receiver.until("/all", channel, "channel_vacated")
    told = [(event["name"], event.get("user_id")) for event, _ in s.suite.receiver.events("/all", channel)]
    equal(told, [("channel_occupied", None), ("member_added", "a"), ("member_added", "b"), ("client_event", "a"), ("member_removed", "a"),
                 ("member_removed", "b"), ("channel_vacated", None)])


async def c27_reload(s):
    """Who is back within three seconds was never away; who is not, is told of after them."""
    for attempt in range(50):
        channel = f"presence-c27-reload-{attempt}"
        client = await s.client("hooks")
        await client.subscribe(channel, user="a")
        await s.suite.receiver.until("/all", channel, "member_added")
        longest = 0
        for _ in range(3):
            began = time.monotonic()
            await client.leave()
            await asyncio.sleep(0.5)
            client = await s.client("hooks")
            await client.subscribe(channel, user="a")
            longest = max(longest, time.monotonic() - began)
        # The hub saw less than that of each absence. A machine that stood still in between proves nothing.
        if longest < 2.5:
            break
    expect(longest < 2.5, f"nobody comes back in time here: {longest} s")
    await asyncio.sleep(4)
    equal(s.suite.receiver.names(channel), ["channel_occupied", "member_added"])
    left = time.monotonic()
    await client.leave()
    vacated = (await s.suite.receiver.until("/all", channel, "channel_vacated"))[0][1]
    equal(s.suite.receiver.names(channel), ["channel_occupied", "member_added", "member_removed", "channel_vacated"])
    expect(1 < vacated.at - left < PATIENCE, f"told after {vacated.at - left} s")


async def c27_filters(s):
    """An endpoint gets the kinds that it asked for."""
    channel = "presence-c27-filter"
    client = await s.client("hooks")
    await client.subscribe(channel, user="a")
    await client.client_event("client-x", channel, 1)
    await s.suite.receiver.until("/all", channel, "client_event")
    await s.suite.receiver.until("/members", channel, "member_added")
    names = {event["name"] for request in s.suite.receiver.requests if request.path == "/members" for event in request.json["events"]}
    expect(names <= {"member_added", "member_removed"}, names)


async def c27_retry(s):
    """Refused twice, accepted the third time: the same bytes each time, each later than the last, and then no more."""
    client = await s.client("hooks")
    await client.subscribe("private-c27-retry")
    await client.client_event("client-x", "private-c27-retry", "fail-2")
    found = await s.suite.receiver.until("/failing", "private-c27-retry", count=3)
    requests = [request for _, request in found]
    equal([request.status for request in requests], [500, 500, 200])
    equal(len({request.body for request in requests}), 1)
    equal(len({request.headers["x-pusher-signature"] for request in requests}), 1)
    waits = [later.at - earlier.at for earlier, later in zip(requests, requests[1:])]
    # One second and two, of which half is drawn.
    expect(waits[0] > 0.49 and waits[1] > 0.99, "no backoff", waits)
    await asyncio.sleep(2)
    equal(len(s.suite.receiver.events("/failing", "private-c27-retry")), 3)
    # The other endpoint had it once.
    equal(len(s.suite.receiver.events("/all", "private-c27-retry", "client_event")), 1)


async def c27_dead_endpoint(s):
    """An endpoint that nobody answers at delays nobody."""
    async def rounds(app):
        client = await s.client(app)
        began = time.monotonic()
        for number in range(50):
            await client.subscribe(f"presence-c27-{number}", user="a")
            await s.hub.publish(f"presence-c27-{number}", "e", app=app)
            await client.event("e", f"presence-c27-{number}")
            await client.unsubscribe(f"presence-c27-{number}")
        await client.sync()
        return time.monotonic() - began

    # How fast this machine is at this moment, in an app without webhooks.
    pace = await rounds("main")
    took = await rounds("dead")
    expect(took < 5 * pace + 5, f"{took} s, and {pace} s without webhooks")


async def c27_slow_endpoint(s):
    """An endpoint that takes too long is tried again after its time-out; the others get theirs at once."""
    client = await s.client("hooks")
    await client.subscribe("cache-c27-slow")
    await s.suite.receiver.until("/slow", "cache-c27-slow")
    await client.subscribe("c27-slow-other")
    others = await s.suite.receiver.until("/all", "c27-slow-other", "channel_occupied")
    others += await s.suite.receiver.until("/all", "cache-c27-slow", "cache_miss")
    first, second = [request for _, request in await s.suite.receiver.until("/slow", "cache-c27-slow", count=2)]
    equal(first.body, second.body)
    expect(all(request.at < second.at for _, request in others), "the slow endpoint delays the other")
    expect(0.49 < second.at - first.at < PATIENCE, f"tried again after {second.at - first.at} s")


async def c27_five_minutes(s):
    """What nobody took is tried for five minutes, also by the next process, with its first `time_ms`; then it is given up."""
    folder = s.suite.folder()
    folder.mkdir(parents=True)
    clock = Clock(folder)
    hook = {"url": f"http://127.0.0.1:{s.suite.receiver.port}/late", "events": ["client_event"]}
    apps = {"main": App("1", "late-key", "late-secret", {"webhooks": [hook]})}
    hub = await s.own_hub(apps, clock=clock, folder=folder)
    client = await s.client(hub=hub)
    client.left = True
    await client.subscribe("private-c27-late")
    await client.client_event("client-x", "private-c27-late", "refuse-always")
    first = (await s.suite.receiver.until("/late", "private-c27-late"))[0][1]

    async def restarted(seconds):
        """A hub on the same data, started so much later."""
        nonlocal hub
        known = len(s.suite.receiver.events("/late", "private-c27-late"))
        await hub.end(signal.SIGKILL)
        clock.shift(seconds)
        hub = await s.own_hub(apps, clock=clock, folder=folder)
        return known

    known = await restarted(200)
    again = (await s.suite.receiver.until("/late", "private-c27-late", count=known + 1))[known][1]
    equal((again.body, again.json["time_ms"]), (first.body, first.json["time_ms"]))
    known = await restarted(302)
    # A later event gets through, the old one does not come again.
    client = await s.client(hub=hub)
    client.left = True
    await client.subscribe("private-c27-later")
    await client.client_event("client-x", "private-c27-later", "taken")
    await s.suite.receiver.until("/late", "private-c27-later")
    await asyncio.sleep(2)
    equal(len(s.suite.receiver.events("/late", "private-c27-late")), known)
