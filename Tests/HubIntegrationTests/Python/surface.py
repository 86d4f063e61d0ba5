"""One surface for everybody: sockets that are dead without anybody knowing, and people who come back."""

import sys

from protocol_bytes import client_frame, raw_session
from tandem_client import *

SESSION, CODE = "monday", "ABC123"
FCM_A, FCM_B = fcm_token("participant-a"), fcm_token("participant-b")


def publish(channel, name):
    return expect(signed("POST", "/events", {"name": name, "channel": channel, "data": '{"n": 1}'}))["event_id"]


def trail(event, user, until):
    def found():
        rows = expect(signed("GET", f"/events/{event}/deliveries", params={"user": user}))["deliveries"]
        return rows[0] if rows and until(rows[0]) else None
    return wait_for(found, f"the trail of {user}")


def half_open():
    """Ada's process stands still: her socket is open and nothing reads it. Ben's app is on the screen and answers."""
    gateways, channel = Gateways(), f"presence-quiz-{SESSION}"
    create_session(SESSION, CODE)
    ada = join(CODE, "Ada", device_token=FCM_A, device_platform="android")
    ben = join(CODE, "Ben", device_token=FCM_B, device_platform="android")
    stopped, socket_id = raw_session()
    stopped.sendall(client_frame(json.dumps(
        {"event": "pusher:subscribe", "data": {"channel": channel, **authorize(ada, socket_id, channel)}}).encode()))
    reading = Socket()
    reading.subscribe(channel, participant=ben)
    reading.send("client-app-state", {"state": "foreground"}, channel)
    reading.pong()
    wait_for(lambda: roster(SESSION)["Ada"]["present"], "Ada to be present")
    event = publish(channel, "session-started")
    frame = reading.event("session-started")
    gateways.pushes(FCM_A, 1)
    present = roster(SESSION)["Ada"]["present"]
    confirmed = trail(event, ben["user_id"], lambda row: row["confirmed_at"])
    gateways.settled()
    finish(
        pushes=[len(gateways.requests(token)) for token in (FCM_A, FCM_B)], still_connected=present, same=frame["event_id"] == event,
        state=trail(event, ada["user_id"], lambda row: True)["known"], confirmed=bool(confirmed["confirmed_at"]))


def returned():
    """Ada's network changes while an event is published: she gets it on the new socket, once, and no notification."""
    gateways, channel = Gateways(), f"presence-board-{SESSION}"
    create_session(SESSION, CODE, definition="board")
    ada = join(CODE, "Ada", device_token=FCM_A, device_platform="android")

    def come():
        socket = Socket()
        socket.subscribe(channel, participant=ada)
        return socket

    first = come()
    first.drop()
    wait_for(lambda: not roster(SESSION)["Ada"]["present"], "Ada to be gone")
    missed = [publish(channel, "news") for _ in range(3)]
    second = come()
    second.count("news", 3)
    for event in missed:
        expect(http.post(f"{HUB_URL}/me/receipts", json={"event_id": event, "status": "received"}, headers=bearer(ada), timeout=PATIENCE))
        trail(event, ada["user_id"], lambda row: row["confirmed_at"])
    replayed = second.all("news")
    second.close()
    third = come()
    third.pong()
    now = publish(channel, "news")
    third.event("news")
    third.pong()
    gateways.settled()
    finish(
        replayed=[frame["event_id"] for frame in replayed] == missed, data=replayed[0]["data"],
        again=[frame["event_id"] for frame in third.all("news")] == [now], pushes=len(gateways.requests(FCM_A)))


{f.__name__: f for f in (half_open, returned)}[sys.argv[1]]()
