"""Pusher's protocol as stock clients and backends speak it, and what a hub must answer to those who speak it wrongly."""

import sys
import time

import pusher
import pusher.errors

from protocol_bytes import UPGRADE, client_frame, close_code_or_error, raw_upgrade, tcp
from tandem_client import *

CHANNELS = ["news", "private-room", "presence-hall"]


def refused(call, *arguments, **options):
    """Which error of the official library a call raises: its class and the text."""
    try:
        call(*arguments, **options)
        return None
    except pusher.errors.PusherError as error:
        return [type(error).__name__, str(error)]


def error_of(response):
    """Status and message of a refusal; every refusal is a JSON object with a sentence."""
    return [response.status_code, response.json()["error"]]


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


def presence():
    """A person is a member once, over however many sockets."""
    watcher = Socket()
    watcher.subscribe("presence-room", user="watcher")
    others = [Socket() for _ in range(4)]
    acknowledgements = []
    for socket, user in zip(others, ("p", "p", "p", 42)):
        acknowledgements.append(json.loads(socket.subscribe("presence-room", user=user)["data"])["presence"])
    watcher.count("pusher_internal:member_added", 2)
    # Told on another loop, and perhaps a little later; who has left by then is not told any more.
    for socket in others[:3]:
        socket.count("pusher_internal:member_added", 1)
    others[0].send("pusher:unsubscribe", {"channel": "presence-room"})
    others[1].close()
    others[3].drop()
    watcher.count("pusher_internal:member_removed", 1)
    removed_first = [json.loads(frame["data"]) for frame in watcher.all("pusher_internal:member_removed")]
    others[2].close()
    watcher.count("pusher_internal:member_removed", 2)
    watcher.pong()
    finish(
        added=[json.loads(frame["data"]) for frame in watcher.all("pusher_internal:member_added")], removed_first=removed_first,
        removed=[json.loads(frame["data"]) for frame in watcher.all("pusher_internal:member_removed")],
        acknowledgements=acknowledgements, own_added=[len(socket.all("pusher_internal:member_added")) for socket in others[:3]],
        left=expect(signed("GET", "/channels/presence-room/users"))["users"])


def client_events():
    """Events between clients: to the others only, as strings, with the sender's member id, within the rate."""
    sender, same_user, other = Socket(), Socket(), Socket()
    sender.subscribe("presence-room", user="s")
    same_user.subscribe("presence-room", user="s")
    other.subscribe("presence-room", user="o")
    for socket in (sender, other):
        socket.subscribe("private-room")
        socket.subscribe("news")
    sender.send_raw(json.dumps({"event": "client-move", "channel": "presence-room", "data": {"x": 1}, "user_id": "forged"}))
    sender.send("client-move", "text", "private-room")
    presence_frame = other.event("client-move", "presence-room")
    private_frame = other.event("client-move", "private-room")
    same_user.event("client-move", "presence-room")

    for event, channel in (("client-move", "news"), ("move", "private-room"), ("client-move", "private-unsubscribed")):
        sender.send(event, {}, channel)
    sender.send_raw(json.dumps({"event": "client-move", "channel": "private-room"}))
    sender.count("pusher:error", 4)
    refusals = [frame["data"] for frame in sender.all("pusher:error")]

    busy = Socket()
    busy.subscribe("private-burst")
    listener = Socket()
    listener.subscribe("private-burst")
    began = time.monotonic()
    for number in range(60):
        busy.send("client-burst", {"n": number}, "private-burst")
    busy.pong()
    seconds = time.monotonic() - began
    errors = [frame["data"]["code"] for frame in busy.all("pusher:error")]
    listener.count("client-burst", 60 - len(errors))
    listener.pong()
    sender.pong()
    finish(
        presence=presence_frame, private=private_frame, echoes=len(sender.all("client-move")), refusals=refusals,
        on_news=len(other.all("client-move", "news")), burst=[len(listener.all("client-burst")), len(errors), sorted(set(errors))], seconds=seconds,
        open=busy.close_code is None)


def exclusion():
    """`socket_id` leaves one connection out, for an event and for each item of a batch."""
    first, second = Socket(), Socket()
    for socket in (first, second):
        socket.subscribe("news")
        socket.subscribe("presence-room", user="same")
    library = backend()
    library.trigger(["news", "presence-room"], "single", {}, first.socket_id)
    library.trigger_batch([
        {"channel": "news", "name": "batch", "data": "1", "socket_id": first.socket_id},
        {"channel": "news", "name": "batch", "data": "2", "socket_id": second.socket_id},
        {"channel": "news", "name": "batch", "data": "3"},
    ])
    library.trigger("news", "gone", {}, "1.1")
    for socket in (first, second):
        socket.event("gone")
        socket.pong()
    bad = error_of(signed("POST", "/events", {"name": "e", "channel": "news", "data": "{}", "socket_id": "nonsense"}))
    finish(
        single=[len(socket.all("single")) for socket in (first, second)],
        batch=[[frame["data"] for frame in socket.all("batch")] for socket in (first, second)], bad=bad)


def ordering():
    """Five hundred publishes arrive complete and in order on every loop."""
    receivers = [Socket() for _ in range(4)]
    for socket in receivers:
        socket.subscribe("news")
    library = backend()
    for start in range(0, 500, 10):
        if start % 100 == 0:
            library.trigger_batch([{"channel": "news", "name": "tick", "data": str(n)} for n in range(start, start + 10)])
        else:
            for number in range(start, start + 10):
                library.trigger("news", "tick", str(number))
    for socket in receivers:
        socket.count("tick", 500)
        socket.pong()
    finish(
        counts=[len(socket.all("tick")) for socket in receivers],
        ordered=[[frame["data"] for frame in socket.all("tick")] == [str(n) for n in range(500)] for socket in receivers])


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


def limits():
    """Sizes and numbers at the edge and one beyond; what is refused is published to nobody."""
    socket = Socket()
    for channel in ("news", "c0"):
        socket.subscribe(channel)

    def event(data="x", channels=("news",), name="sized"):
        return signed("POST", "/events", {"name": name, "channels": list(channels), "data": data})

    results = {
        "10240": event("x" * 10240).status_code,
        # Two bytes each, and each escaped in the request: the decoded text counts.
        "10240_umlauts": event("\u00e4" * 5120).status_code,
        "10241": error_of(event("x" * 10241)),
        "100_channels": event(channels=[f"c{n}" for n in range(100)]).status_code,
        "101_channels": error_of(event(channels=[f"c{n}" for n in range(101)])),
        "name_200": event(name="n" * 200).status_code,
        "name_201": error_of(event(name="n" * 201)),
        "reserved_name": error_of(event(name="pusher:sized")),
        "channel_name": error_of(event(channels=["bad name!"])),
        "no_channel": error_of(signed("POST", "/events", {"name": "e", "data": "{}"})),
        "no_data": error_of(signed("POST", "/events", {"name": "e", "channel": "news"})),
        "object_data": signed("POST", "/events", {"name": "object", "channel": "news", "data": {"a": [1]}}).status_code,
        "batch_10": signed("POST", "/batch_events", {"batch": [{"channel": "news", "name": "b", "data": "1"}] * 10}).status_code,
        "batch_11": error_of(signed("POST", "/batch_events", {"batch": [{"channel": "news", "name": "b", "data": "1"}] * 11})),
        "batch_one_bad": error_of(signed("POST", "/batch_events", {"batch": [
            {"channel": "news", "name": "never", "data": "1"}, {"channel": "bad name!", "name": "never", "data": "1"}]})),
    }
    socket.count("b", 10)
    socket.pong()
    results["received"] = {name: len(socket.all(name)) for name in ("sized", "b", "never", "object")}
    results["object"] = socket.event("object")["data"]
    results["sizes"] = [len(frame["data"].encode()) for frame in socket.all("sized") if len(frame["data"]) > 1]
    finish(**results, serves=still_serves())


def http_errors():
    """Requests that are not what they should be: refused with the status of docs/protocol.md, 5.1, and published to nobody."""
    socket = Socket()
    socket.subscribe("news")
    good = {"name": "never", "channel": "news", "data": "{}"}
    now = int(time.time())
    results = {
        "signature": error_of(signed("POST", "/events", good, secret="wrong")),
        "stale": error_of(signed("POST", "/events", good, auth_timestamp=str(now - 601))),
        "future": error_of(signed("POST", "/events", good, auth_timestamp=str(now + 605))),
        "body_md5": error_of(signed("POST", "/events", good, body_md5="0" * 32)),
        "no_body_md5": error_of(signed("POST", "/events", good, body_md5=None)),
        "no_key": error_of(signed("POST", "/events", good, auth_key=None)),
        "unknown_key": error_of(signed("POST", "/events", good, key="nobody")),
        "version": error_of(signed("POST", "/events", good, auth_version="2.0")),
        "unsigned": error_of(http.post(f"{HUB_URL}/apps/1/events", json=good, timeout=PATIENCE)),
        "unknown_app": error_of(http.post(f"{HUB_URL}/apps/99/events", json=good, timeout=PATIENCE)),
        "method": error_of(signed("GET", "/events")),
        "put": error_of(signed("PUT", "/events", good)),
        "route": error_of(signed("GET", "/nothing/here")),
        "json": error_of(signed("POST", "/events", raw=b'{"name":"never","channel":"news","data":')),
        "array": error_of(signed("POST", "/events", raw=b"[]")),
        "empty": error_of(signed("POST", "/events", raw=b"")),
        "utf8": error_of(signed("POST", "/events", raw=b'{"name":"never","channel":"news","data":"\xff\xfe"}')),
        "depth": error_of(signed("POST", "/events", raw=b'{"name":"never","channel":"news","data":' + b"[" * 5000 + b"]" * 5000 + b"}")),
        "large": error_of(signed("POST", "/events", raw=b'{"name":"never","channel":"news","data":"' + b"x" * 1_200_000 + b'"}')),
        "accepted_599": signed("POST", "/events", {**good, "name": "told"}, auth_timestamp=str(now - 590)).status_code,
    }
    socket.event("told")
    socket.pong()
    finish(**results, never=len(socket.all("never")), serves=still_serves())


def refused_connections():
    """Connections that cannot be: upgraded, told why, and closed with the same code."""
    results = {}
    for name, path in {
        "unknown_key": "/app/nobody?protocol=7&client=js&version=8.6.0", "protocol_3": f"/app/{KEY}?protocol=3",
        "protocol_99": f"/app/{KEY}?protocol=99", "protocol_abc": f"/app/{KEY}?protocol=abc",
    }.items():
        for subprotocol in (None, "pusher-channels-protocol-7"):
            socket = Socket(path, subprotocol, handshake=False)
            code = socket.closed()
            errors = socket.all("pusher:error")
            check(len(socket.frames) == 1 and len(errors) == 1, name, socket.frames)
            check(errors[0]["data"]["code"] == code and socket.close_reason == errors[0]["data"]["message"], name, errors, socket.close_reason)
            results.setdefault(name, []).append(code)
    accepted = []
    for path in (f"/app/{KEY}", *(f"/app/{KEY}?protocol={n}&unknown=1" for n in (4, 5, 6, 7)), f"/prefix/app/{KEY}?protocol=7"):
        socket = Socket(path, None)
        check(socket.subprotocol is None, socket.subprotocol)
        accepted.append(socket.handshake["activity_timeout"])
    echoed = [Socket(subprotocol=f"pusher-channels-protocol-{n}").subprotocol for n in (5, 6, 7)]
    finish(**results, accepted=accepted, echoed=echoed, serves=still_serves())


def bad_frames():
    """Frames that are not what they should be are answered on their own connection, which stays usable."""
    socket = Socket()
    for number, message in enumerate((
        "{", "[]", '"text"', "17", "", '{"data":{}}', '{"event":5}', '{"event":"pusher:subscribe"}',
        '{"event":"pusher:subscribe","data":{"channel":5}}', '{"event":"pusher:subscribe","data":"no json"}',
        '{"event":"pusher:unheard-of","data":{}}', '{"event":"x","data":' + "[" * 200 + "]" * 200 + "}", b"binary"), start=1):
        socket.send_raw(message)
        socket.count("pusher:error", number)
    codes = [frame["data"]["code"] for frame in socket.all("pusher:error")]
    # Names and signatures.
    known = len(codes)
    attempts = {
        "bad name": ("bad name!", None), "too long": ("c" * 201, None), "reserved": ("#nothing", None),
        "server-to-user": ("#server-to-user-1", None), "unsigned private": ("private-a", None),
        "wrong signature": ("private-a", f"{KEY}:" + "0" * 64), "foreign key": ("private-a", sign_channel(socket.socket_id, "private-a", key="x")),
        "other socket": ("private-a", sign_channel("1.1", "private-a")), "no member": ("presence-a", sign_channel(socket.socket_id, "presence-a")),
    }
    refusals = {}
    for name, (channel, auth) in attempts.items():
        known += 1
        socket.send("pusher:subscribe", {"channel": channel, **({"auth": auth} if auth else {})})
        socket.count("pusher:error", known)
        refusals[name] = socket.all("pusher:error")[-1]["data"]["code"]
    socket.pong()
    refused_channels = sorted({frame["channel"] for frame in socket.all("pusher:subscription_error")})
    # A repeated subscription is not acknowledged twice; an unknown one is left in peace.
    for _ in range(2):
        socket.send("pusher:subscribe", {"channel": "twice"})
    socket.send("pusher:unsubscribe", {"channel": "never-joined"})
    socket.pong()
    acknowledged = len(socket.all("pusher_internal:subscription_succeeded", "twice"))
    # Pings in every spelling, and WebSocket's own.
    for data in ({}, "", None):
        known_pongs = len(socket.all("pusher:pong"))
        socket.send_raw(json.dumps({"event": "pusher:ping", "data": data}))
        socket.count("pusher:pong", known_pongs + 1)
    known_pongs = len(socket.all("pusher:pong"))
    socket.send_raw('{"event":"pusher:ping"}')
    socket.count("pusher:pong", known_pongs + 1)
    control = socket._socket.ping(b"tandem").wait(PATIENCE)

    # No text: this one may be closed, by the code that the WebSocket protocol has for it.
    broken = raw_upgrade()
    broken.sendall(client_frame(b'{"event":"\xff\xfe"}'))
    broken_code = close_code_or_error(broken)
    huge = Socket()
    try:
        huge.send_raw(json.dumps({"event": "client-x", "channel": "private-a", "data": "x" * 300_000}))
    except Exception:
        # Closed while it was still sending.
        pass
    huge_code = huge.closed()
    finish(
        codes=codes, refusals=refusals, refused_channels=refused_channels, acknowledged=acknowledged, control=control,
        open=socket.close_code is None, invalid_utf8=broken_code, huge=huge_code, serves=still_serves())


def half_handshakes():
    """Connections that stop in the middle, or speak something else, keep nobody else from being served."""
    half = [tcp() for _ in range(20)]
    for index, connection in enumerate(half):
        connection.sendall(UPGRADE[: 10 + index * 7])
    silent = [tcp() for _ in range(5)]
    strangers = []
    for text in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 200, b"SSH-2.0-test\r\n", b"\x00" * 500, b"GET\r\n\r\n"):
        connection = tcp()
        connection.sendall(text)
        strangers.append(connection)
    body = tcp()
    body.sendall(b"POST /apps/1/events HTTP/1.1\r\nHost: hub\r\nContent-Length: 500\r\n\r\n{")
    framed = raw_upgrade()
    framed.sendall(client_frame(b'{"event":"pusher:ping"}')[:5])
    serving = still_serves()
    # A finished half goes on as if nothing had been: all but its beginning arrives now.
    half[3].sendall(UPGRADE[10 + 3 * 7:])
    answer = half[3].recv(4096)
    for connection in (*half, *silent, *strangers, body, framed):
        connection.close()
    finish(serves=serving, afterwards=still_serves(), late=answer.split(b"\r\n")[0].decode())


def slow_reader():
    """A client that stops reading is let go with 4100 before it costs much; the others get everything."""
    import socket as sockets
    slow = tcp()
    slow.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4096)
    slow.sendall(UPGRADE)
    slow.sendall(client_frame(b'{"event":"pusher:subscribe","data":{"channel":"news"}}'))
    wait_for(lambda: expect(signed("GET", "/channels/news"))["occupied"], "the slow reader's subscription")
    healthy = Socket()
    healthy.subscribe("news")
    pid = os.environ["HUB_PID"]

    def resident_kilobytes():
        return next(int(line.split()[1]) for line in open(f"/proc/{pid}/status") if line.startswith("VmRSS"))

    before, published = resident_kilobytes(), 0
    library = backend()
    events = [{"channel": "news", "name": "bulk", "data": "x" * 10_000}] * 10
    # The kernel's own buffers take a few megabytes first.
    while expect(signed("GET", "/channels/news", params={"info": "subscription_count"}))["subscription_count"] > 1:
        check(published < 5000, "the slow reader is still there")
        library.trigger_batch(events)
        published += len(events)
    healthy.count("bulk", published)
    healthy.pong()
    finish(published=published, received=len(healthy.all("bulk")), grown=resident_kilobytes() - before, serves=still_serves())


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
    pysher_client, backend_library, presence, client_events, exclusion, ordering, ordering_across, limits, http_errors, refused_connections, bad_frames,
    half_handshakes, slow_reader, chunked, pipelined)}[sys.argv[1]]()
