"""A quiz session begins: who is told over the socket, who by push, and who not at all."""

import sys
import time

from pusher.errors import PusherBadStatus

from protocol_bytes import client_frame, raw_session
from tandem_client import *

SESSION, CODE = "monday", "ABC123"
CHANNEL = f"presence-quiz-{SESSION}"
EVENT = "session-started"
APNS_C = apns_token("c")
FCM_A, FCM_B = fcm_token("participant-a"), fcm_token("participant-b")


def start(data=None, session=SESSION, **options):
    """What the quiz backend does, with the stock library."""
    return backend().trigger(f"presence-quiz-{session}", EVENT, {} if data is None else data, **options)


def app_state(name, state):
    """Waits until the hub knows the state that an app has told."""
    wait_for(lambda: roster(SESSION)[name]["app_state"] == state, f"{name} to be {state}")


def join_ios(name="Cleo", token=APNS_C):
    return join(CODE, name, device_token=token, device_platform="ios")


def open_ios(participant):
    socket = Socket()
    check(socket.subprotocol == "pusher-channels-protocol-7", socket.subprotocol)
    socket.subscribe(CHANNEL, participant=participant)
    return socket


def main():
    """A is there, B is absent, C is connected and in the background."""
    gateways = Gateways()
    session = create_session(SESSION, CODE)
    a = join(CODE, "Ada", device_token=FCM_A, device_platform="android")
    b = join(CODE, "Ben", device_token=FCM_B, device_platform="android")
    c = join_ios()

    pysher_a = PysherClient()
    received_a = PysherClient.record(pysher_a.subscribe_authorized(CHANNEL, a), EVENT)
    socket_c = open_ios(c)
    socket_c.send("client-app-state", {"state": "background"}, CHANNEL)
    app_state("Cleo", "background")
    people = roster(SESSION)

    before = time.time()
    answer = start()
    after = time.time()
    wait_for(lambda: received_a, "A's event")
    gateways.pushes(FCM_B, 1)
    gateways.pushes(APNS_C, 1)
    gateways.settled()

    finish(
        session=session, people={"a": a, "b": b, "c": c}, answer=answer, before=before, after=after,
        present={name: entry["present"] for name, entry in people.items()},
        events_a=received_a, events_c=len(socket_c.all(EVENT)), state_frames=len(socket_c.all("client-app-state")),
        pushes={"a": gateways.requests(FCM_A), "b": gateways.requests(FCM_B), "c": gateways.requests(APNS_C)},
        all_pushes=len(gateways.requests()))


def foreground():
    """C goes away and comes back before the quiz begins; by client event, then by HTTP."""
    gateways = Gateways()
    create_session(SESSION, CODE)
    c = join_ios()
    socket = open_ios(c)
    results = {}

    def publish_and_count(step):
        known = len(socket.all(EVENT))
        start()
        socket.count(EVENT, known + 1)
        if step.endswith("background"):
            gateways.pushes(APNS_C, results.get("pushed", 0) + 1)
        gateways.settled()
        results["pushed"] = len(gateways.requests())
        results[step] = [len(socket.all(EVENT)) - known, results["pushed"]]

    socket.send("client-app-state", {"state": "background"}, CHANNEL)
    app_state("Cleo", "background")
    publish_and_count("event_background")
    socket.send("client-app-state", {"state": "foreground"}, CHANNEL)
    app_state("Cleo", "foreground")
    publish_and_count("event_foreground")
    for state in ("background", "foreground"):
        expect(http.put(f"{HUB_URL}/me/state", json={"state": state}, headers=bearer(c), timeout=PATIENCE))
        app_state("Cleo", state)
        publish_and_count(f"http_{state}")
    finish(**results)


def without_token():
    """Nobody can be pushed to who left no token; that fails nothing."""
    gateways = Gateways()
    create_session(SESSION, CODE)
    here = join(CODE, "Hanna")
    join(CODE, "Abel")
    join(CODE, "Nora", device_token=None, device_platform="android")
    socket = open_ios(here)
    answer = start()
    socket.event(EVENT, CHANNEL)
    gateways.settled()
    finish(answer=answer, events=len(socket.all(EVENT)), pushes=len(gateways.requests()))


def several_sockets():
    """A has two sockets, of two devices: both get the event, and one in the foreground keeps the push away; a lost one does not count."""
    gateways = Gateways()
    create_session(SESSION, CODE)
    a = join(CODE, "Ada", device_token=FCM_A, device_platform="android")
    laptop = join(CODE, "Ada", headers={"X-Client-Id": "laptop"})
    first = PysherClient()
    received = PysherClient.record(first.subscribe_authorized(CHANNEL, laptop), EVENT)
    second = open_ios(a)
    wait_for(lambda: roster(SESSION)["Ada"]["connections"] == 2, "two connections")

    start()
    second.event(EVENT)
    wait_for(lambda: received, "the first socket's event")
    second.send("client-app-state", {"state": "background"}, CHANNEL)
    # The other socket tells nothing and counts as a foreground one: the person's state does not show this one's.
    second.pong()
    start()
    second.count(EVENT, 2)
    wait_for(lambda: len(received) == 2, "the first socket's second event")
    gateways.settled()
    together = [len(received), len(second.all(EVENT)), len(gateways.requests())]

    first.leave()
    wait_for(lambda: roster(SESSION)["Ada"]["connections"] == 1, "one connection")
    start()
    second.count(EVENT, 3)
    gateways.pushes(FCM_A, 1)
    second.drop()
    wait_for(lambda: not roster(SESSION)["Ada"]["present"], "Ada to be gone")
    start()
    gateways.pushes(FCM_A, 2)
    gateways.settled()
    finish(together=together, later=len(gateways.requests(FCM_A)), second=len(second.all(EVENT)))


def actor():
    """Whoever caused the event, named by socket_id, hears of it on no surface."""
    gateways = Gateways()
    create_session(SESSION, CODE)
    a = join(CODE, "Ada", device_token=FCM_A, device_platform="android")
    c = join_ios()
    socket_a, socket_c = open_ios(a), open_ios(c)
    socket_a.send("client-app-state", {"state": "background"}, CHANNEL)
    app_state("Ada", "background")
    backend().trigger(CHANNEL, EVENT, {}, socket_a.socket_id)
    socket_c.event(EVENT)
    socket_a.pong()
    gateways.settled()
    finish(actor=len(socket_a.all(EVENT)), other=len(socket_c.all(EVENT)), pushes=len(gateways.requests()))


def dead_tokens():
    """What the gateways call dead is not asked for again; what was registered after its death is."""
    gateways = Gateways()
    create_session(SESSION, CODE)
    join(CODE, "Ben", device_token=FCM_B, device_platform="android")
    c = join_ios()
    kept_token = apns_token("d")
    join_ios("Dora", kept_token)
    gateways.fault(APNS_C, {"status": 410, "reason": "Unregistered", "times": 1})
    gateways.fault(FCM_B, {"reason": "UNREGISTERED", "times": 1})
    # An hour before the registration: about an earlier life of the token.
    gateways.fault(kept_token, {"status": 410, "reason": "Unregistered", "timestamp": int((time.time() - 3600) * 1000), "times": 1})

    start()
    for token in (APNS_C, FCM_B, kept_token):
        gateways.pushes(token, 1)
    for name in ("Ben", "Cleo"):
        wait_for(lambda: reachable(name) is False, f"{name}'s token to be removed")
    answer = start()
    gateways.pushes(kept_token, 2)
    gateways.settled()
    start()
    gateways.pushes(kept_token, 3)
    gateways.settled()
    # The phone registers again: it is reached again.
    expect(http.put(f"{HUB_URL}/me/device", json={"token": apns_token("e")}, headers=bearer(c), timeout=PATIENCE))
    start()
    gateways.pushes(apns_token("e"), 1)
    gateways.pushes(kept_token, 4)
    gateways.settled()
    finish(
        answer=answer, apns=[r["status"] for r in gateways.requests(APNS_C)], fcm=[r["status"] for r in gateways.requests(FCM_B)],
        kept=[r["status"] for r in gateways.requests(kept_token)],
        renewed=[r["status"] for r in gateways.requests(apns_token("e"))])


def reachable(name):
    user = roster(SESSION)[name]["user"]
    devices = expect(signed("GET", f"/users/{user}/devices"))["devices"]
    return any(device["has_token"] for device in devices)


def unconfigured():
    """No gateway has credentials: the publish is accepted, the sockets get it, the pushes are logged."""
    create_session(SESSION, CODE)
    a = join(CODE, "Ada", device_token=FCM_A, device_platform="android")
    join(CODE, "Ben", device_token=FCM_B, device_platform="android")
    join_ios()
    socket = open_ios(a)
    answer = start()
    socket.event(EVENT)
    finish(answer=answer, events=len(socket.all(EVENT)), tokens=[FCM_A, FCM_B, APNS_C])


def unknown_session():
    """Publishing to the channel of a session that does not exist sends nothing to anybody."""
    gateways = Gateways()
    create_session(SESSION, CODE)
    join(CODE, "Ben", device_token=FCM_B, device_platform="android")
    channel = "presence-quiz-nowhere"
    socket = Socket()
    socket.subscribe(channel, user="ghost")
    try:
        start(session="nowhere")
        error = None
    except PusherBadStatus as refusal:
        error = str(refusal)
    socket.pong()
    gateways.settled()
    finish(error=error, events=len(socket.all(EVENT)), pushes=len(gateways.requests()))


def data_variants():
    """The published data decides the texts where it says something; it never reaches a gateway as numbers."""
    gateways = Gateways()
    create_session(SESSION, CODE)
    join(CODE, "Ben", device_token=FCM_B, device_platform="android")
    start({"started_at": "2026-03-01T18:00:00Z", "current_question_index": 3, "extra": {"nested": [1, "\U0001f3af"]}})
    gateways.pushes(FCM_B, 1)
    backend().trigger(CHANNEL, EVENT, "no JSON at all")
    gateways.pushes(FCM_B, 2)
    # Socket only.
    backend().trigger(CHANNEL, "participant-joined", {"name": "Zoe"})
    backend().trigger(CHANNEL, "something-else", {"name": "Zoe"})
    gateways.settled()
    finish(bodies=[r["body"]["message"]["data"] for r in gateways.requests(FCM_B)], pushes=len(gateways.requests()))


def retried():
    """A gateway that is unavailable for a moment gets the push again, under the same ids, until it takes it: once."""
    gateways = Gateways()
    create_session(SESSION, CODE)
    join_ios()
    gateways.fault(APNS_C, {"status": 503, "reason": "ServiceUnavailable", "times": 1})
    start()
    gateways.pushes(APNS_C, 2)
    gateways.settled()
    requests = gateways.requests(APNS_C)
    finish(
        statuses=[r["status"] for r in requests],
        ids=len({(r["headers"]["apns-id"], r["body"]["nid"], r["body"]["ts"]) for r in requests}))


def devices():
    """A phone belongs to whoever joined with it last; a person's phones are told together, and kept quiet together."""
    gateways = Gateways()
    create_session(SESSION, CODE)
    # The same phone twice, in both spellings of its token.
    join_ios("Ada", "AB" * 32)
    join_ios("Ben", "ab" * 32)
    first = join(CODE, "Cora", headers={"X-Client-Id": "phone"}, device_token=FCM_A, device_platform="android")
    join(CODE, "Cora", headers={"X-Client-Id": "pad"}, device_token=APNS_C, device_platform="ios")
    # A refreshed token is no second device.
    dora = join(CODE, "Dora", device_token=FCM_B + "-old", device_platform="android")
    http.put(f"{HUB_URL}/me/device", json={"token": FCM_B}, headers=bearer(dora), timeout=PATIENCE).raise_for_status()
    start()
    tokens = {"shared": "ab" * 32, "phone": FCM_A, "pad": APNS_C, "refreshed": FCM_B, "old": FCM_B + "-old"}
    for name in ("shared", "phone", "pad", "refreshed"):
        gateways.pushes(tokens[name], 1)
    gateways.settled()
    absent = {name: len(gateways.requests(token)) for name, token in tokens.items()}
    # Cora looks at her phone: neither device gets a push.
    socket = open_ios(first)
    start()
    socket.event(EVENT)
    gateways.pushes(tokens["refreshed"], 2)
    gateways.settled()
    finish(absent=absent, present={name: len(gateways.requests(token)) for name, token in tokens.items()})


def batch():
    """Events with and without a definition in one request, or on several channels: all or nothing."""
    gateways = Gateways()
    create_session(SESSION, CODE)
    create_session("tuesday", "DEF456")
    join(CODE, "Ben", device_token=FCM_B, device_platform="android")
    join("DEF456", "Cleo", device_token=APNS_C, device_platform="ios")
    socket = Socket()
    socket.subscribe("news")
    library = backend()
    answer = library.trigger_batch([
        {"channel": "news", "name": "plain", "data": "{}"},
        {"channel": CHANNEL, "name": EVENT, "data": "{}"},
        {"channel": CHANNEL, "name": "participant-joined", "data": "{}"}])
    both = library.trigger([CHANNEL, "presence-quiz-tuesday", "news"], EVENT, {})
    gateways.pushes(FCM_B, 2)
    gateways.pushes(APNS_C, 1)
    refused = []
    for call, argument in (
            (library.trigger, ([CHANNEL, "presence-quiz-nowhere", "news"], "session-started", {})),
            (library.trigger_batch, ([{"channel": name, "name": EVENT, "data": "{}"} for name in ("news", CHANNEL, "presence-quiz-nowhere")],))):
        try:
            call(*argument)
        except PusherBadStatus as refusal:
            refused.append(str(refusal)[:3])
    socket.pong()
    gateways.settled()
    finish(
        answer=answer, both=both, refused=refused, plain=len(socket.all("plain")), told=len(socket.all(EVENT)),
        pushes=[len(gateways.requests(token)) for token in (FCM_B, APNS_C)])


def gone_silent():
    """A phone that lost its network without a word: from the moment the hub notices, its person is absent."""
    gateways = Gateways()
    create_session(SESSION, CODE)
    a = join(CODE, "Ada", device_token=FCM_A, device_platform="android")
    phone, socket_id = raw_session()
    subscription = {"event": "pusher:subscribe", "data": {"channel": CHANNEL, **authorize(a, socket_id, CHANNEL)}}
    phone.sendall(client_frame(json.dumps(subscription).encode()))
    wait_for(lambda: roster(SESSION)["Ada"]["present"], "Ada to be present")
    # It answers no PING, and then no close frame either (4201).
    received = b""
    while b"\x10\x69" not in received:
        part = phone.recv(4096)
        check(part, received)
        received += part
    start()
    gateways.pushes(FCM_A, 1)
    gateways.settled()
    finish(pushes=len(gateways.requests(FCM_A)), silent=EVENT.encode() not in received)


{f.__name__: f for f in (
    main, foreground, without_token, several_sockets, actor, dead_tokens, unconfigured, unknown_session, data_variants, retried, devices, batch, gone_silent)}[sys.argv[1]]()
