"""Pusher's protocol as stock clients and backends speak it. Wrong and rare requests are checked in conformance/."""

import sys

import pusher
import pusher.errors

from protocol_bytes import tcp
from tandem_client import *

CHANNELS = ["news", "private-room", "presence-hall"]


def refused(call, *arguments, **options):
    """Which error of the official library a call raises: its class and the text."""
    try:
        call(*arguments, **options)
        return None
    except pusher.errors.PusherError as error:
        return [type(error).__name__, str(error)]


def still_serves():
    """A new client can connect, subscribe and be told."""
    socket = Socket()
    socket.subscribe("public-check")
    backend().trigger("public-check", "check", {"ok": True})
    socket.event("check", "public-check")
    socket.close()
    return True


def pysher_client():
    """Pysher on all kinds of channels, told by the official library, one publish for three channels."""
    client = PysherClient(secret=SECRET, user_data={"user_id": "7", "user_info": {"name": "Pia"}})
    lists = {}
    for name in CHANNELS:
        lists[name] = PysherClient.record(client.subscribe(name), "greeting")
        client.subscribed(name)
    backend().trigger(CHANNELS, "greeting", {"text": "h\u00e4llo \U0001f3af"})
    wait_for(lambda: all(lists.values()), "Pysher's events")
    # Pysher's own client event reaches others only.
    other = Socket()
    other.subscribe("private-room")
    client.channels["private-room"].trigger("client-typing", {"x": 1})
    typing = other.event("client-typing", "private-room")
    client.unsubscribe("news")
    wait_for(lambda: not expect(signed("GET", "/channels/news"))["occupied"], "the channel to be left")
    backend().trigger(CHANNELS, "greeting", {"text": "again"})
    wait_for(lambda: len(lists["presence-hall"]) == 2, "the second event")
    finish(
        socket_id=client.connection.socket_id, joined={name: client.subscribed(name) for name in CHANNELS}, typing=typing["data"],
        events={name: [json.loads(data) for data in lists[name]] for name in CHANNELS},
        needs_reconnect=client.connection.needs_reconnect)


def backend_library():
    """Every call of the official library."""
    library = backend()
    sockets_of = {name: Socket() for name in ("one", "two")}
    for number, socket in enumerate(sockets_of.values()):
        socket.subscribe("news")
        socket.subscribe("presence-hall", user=f"u{number}")
    extra = Socket()
    extra.subscribe("presence-hall", user="u0")
    results = {}
    results["trigger"] = library.trigger("news", "plain", "just text")
    results["batch"] = library.trigger_batch([
        {"channel": "news", "name": "first", "data": {"n": 1}},
        {"channel": "presence-hall", "name": "second", "data": "2"},
        {"channel": "nobody-here", "name": "third", "data": "3"},
    ])
    for socket in sockets_of.values():
        socket.event("plain", "news")
        socket.event("first", "news")
        socket.event("second", "presence-hall")
    results["data"] = [sockets_of["one"].event(name)["data"] for name in ("plain", "first", "second")]
    results["channels"] = library.channels_info()
    results["presence_channels"] = library.channels_info("presence-", ["user_count"])
    results["channel"] = library.channel_info("presence-hall", ["user_count"])
    results["unoccupied"] = library.channel_info("nobody-here")
    results["users"] = library.users_info("presence-hall")
    results["no_users"] = library.users_info("presence-empty")
    results["info_refused"] = refused(library.channel_info, "news", ["user_count"])
    results["users_refused"] = refused(library.users_info, "news")

    # What the library signs for clients is accepted from them.
    fresh = Socket()
    for channel, data in (("private-a", None), ("presence-a", {"user_id": 12, "user_info": {"name": "Zw\u00f6lf"}})):
        fresh.send("pusher:subscribe", {"channel": channel, **library.authenticate(channel, fresh.socket_id, data)})
        results[channel] = json.loads(fresh.event("pusher_internal:subscription_succeeded", channel)["data"])
    wrong = backend(secret="wrong")
    results["wrong_secret"] = [refused(call, *arguments) for call, arguments in (
        (wrong.trigger, ("news", "e", {})), (wrong.trigger_batch, ([{"channel": "news", "name": "e", "data": "{}"}],)),
        (wrong.channels_info, ()), (wrong.users_info, ("presence-hall",)))]
    results["unknown_key"] = refused(backend(key="nobody").trigger, "news", "e", {})
    results["unknown_app"] = refused(backend(app_id="77").trigger, "news", "e", {})
    sockets_of["one"].pong()
    results["foreign_events"] = len(sockets_of["one"].all("e"))
    finish(**results)


def ordering_across():
    """A backend that publishes over connections of different loops in turn, each after the answer to the one before."""
    receivers = [Socket() for _ in range(8)]
    for socket in receivers:
        socket.subscribe("news")
    rounds = 1000
    requests_signed = []
    for number in range(rounds):
        body = json.dumps({"name": "tick", "channel": "news", "data": str(number)}).encode()
        path = f"/apps/{APP_ID}/events"
        requests_signed.append((f"{path}?{urllib.parse.urlencode(signed_query('POST', path, body))}", body))
    connections = [tcp() for _ in range(4)]
    for number, (target, body) in enumerate(requests_signed):
        connection = connections[number % 4]
        connection.sendall(f"POST {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = b""
        while not answer.endswith(b"{}"):
            piece = connection.recv(4096)
            check(piece, "the connection ended", answer)
            answer += piece
    for socket in receivers:
        socket.count("tick", rounds)
    finish(ordered=[[frame["data"] for frame in socket.all("tick")] == [str(n) for n in range(rounds)] for socket in receivers])


def prepared_publish():
    """The target and the body of a signed publish, for requests by hand."""
    body = json.dumps({"name": "by-hand", "channel": "news", "data": "\u00e4" * 3000}).encode()
    path = f"/apps/{APP_ID}/events"
    query = "&".join(f"{name}={value}" for name, value in signed_query("POST", path, body).items())
    return f"{path}?{query}", body


def chunked():
    """A body in chunks, as HTTP/1.1 allows it."""
    socket = Socket()
    socket.subscribe("news")
    target, body = prepared_publish()
    pieces = (body[start:start + 700] for start in range(0, len(body), 700))
    status = http.post(f"{HUB_URL}{target}", data=pieces, timeout=PATIENCE).status_code
    socket.event("by-hand")
    finish(status=status, events=len(socket.all("by-hand")), serves=still_serves())


def pipelined():
    """Requests that do not wait for an answer are served and answered in their order."""
    socket = Socket()
    socket.subscribe("news")
    target, body = prepared_publish()
    request = f"POST {target} HTTP/1.1\r\nHost: hub\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    get = b"GET /health HTTP/1.1\r\nHost: hub\r\n\r\n"
    for burst in ((request, get, request), (get, request), (request, request), (get, get)):
        connection = tcp()
        connection.sendall(b"".join(burst))
        received = b""
        while received.count(b"HTTP/1.1 ") < len(burst):
            part = connection.recv(4096)
            check(part, received)
            received += part
        connection.close()
        order = [request if piece.endswith(b"{}") else get for piece in received.split(b"HTTP/1.1 200 OK")[1:]]
        check(order == list(burst), received)
    socket.count("by-hand", 5)
    serves = still_serves()
    finish(told_as_answered=len(socket.all("by-hand")) == 5, serves=serves)


{f.__name__: f for f in (
    pysher_client, backend_library, ordering_across, chunked, pipelined)}[sys.argv[1]]()
