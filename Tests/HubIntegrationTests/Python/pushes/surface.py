"""One surface for everybody: sockets that are dead without anybody knowing, and people who come back."""

import datetime
import sqlite3
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


def let_go():
    """Ada's app reads nothing, and is let go as a slow consumer: what waited for her socket is told by push, and what comes next, too."""
    gateways, channel = Gateways(), f"presence-quiz-{SESSION}"
    create_session(SESSION, CODE)
    ada = join(CODE, "Ada", device_token=FCM_A, device_platform="android")
    ben = join(CODE, "Ben", device_token=FCM_B, device_platform="android")
    stopped, socket_id = raw_session(receive_buffer_bytes=4096)
    for data in ({"channel": channel, **authorize(ada, socket_id, channel)}, {"channel": "bulk"}):
        stopped.sendall(client_frame(json.dumps({"event": "pusher:subscribe", "data": data}).encode()))
    reading = Socket()
    reading.subscribe(channel, participant=ben)
    reading.send("client-app-state", {"state": "foreground"}, channel)
    reading.pong()
    wait_for(lambda: roster(SESSION)["Ada"]["present"], "Ada to be present")
    # Her buffers fill; one event waits behind that; then her queue is full.
    bulk = [{"channel": "bulk", "name": "bulk", "data": "x" * 10_000}] * 10

    def is_subscribed():
        return expect(signed("GET", "/channels/bulk"))["occupied"]

    wait_for(is_subscribed, "Ada's other subscription")
    before = publish(channel, "session-started")
    rounds = 0
    while is_subscribed():
        check(rounds < 500, "she is still there")
        expect(signed("POST", "/batch_events", {"batch": bulk}))
        rounds += 1
    absent = not roster(SESSION)["Ada"]["present"]
    after = publish(channel, "session-started")
    events = {request["body"]["message"]["data"]["event_id"] for request in gateways.pushes(FCM_A, 2)}
    known = trail(after, ada["user_id"], lambda row: True)["known"]
    reading.count("session-started", 2)
    gateways.settled()
    finish(
        absent=absent, told=sorted(events) == sorted([before, after]), known=known, pushes=[len(gateways.requests(token)) for token in (FCM_A, FCM_B)])


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


def foreground(participant, channel):
    """An app on the screen, and says so."""
    socket = Socket()
    socket.subscribe(channel, participant=participant)
    socket.send("client-app-state", {"state": "foreground"}, channel)
    socket.pong()
    return socket


def deaf(participant, channel):
    """An app whose process stands still: subscribed, and nothing reads its socket."""
    stopped, socket_id = raw_session()
    stopped.sendall(client_frame(json.dumps(
        {"event": "pusher:subscribe", "data": {"channel": channel, **authorize(participant, socket_id, channel)}}).encode()))
    return stopped


class Page(Socket):
    """Says `client=js`, as pusher-js does, and answers `pusher:ping` so many seconds later. None: it is frozen, PINGs are answered."""

    def __init__(self, participant, channel, answers_after):
        self.answers_after = answers_after
        super().__init__(path=f"/app/{KEY}?protocol=7&client=js&version=8.6.0&flash=false", subprotocol=None)
        self.subscribe(channel, participant=participant)
        self.send("client-app-state", {"state": "foreground"}, channel)
        self.pong()

    def heard(self, frame):
        if frame["event"] == "pusher:ping" and self.answers_after is not None:
            time.sleep(self.answers_after)
            self.send("pusher:pong")


def pages():
    """Ada's page answers, Ben's answers late, Cleo's is frozen, and so is Dora's, which has answered in advance; Eve has an app."""
    gateways, channel = Gateways(), f"presence-board-{SESSION}"
    create_session(SESSION, CODE, definition="board")
    names = ("Ada", "Ben", "Cleo", "Dora", "Eve")
    people = {name: join(CODE, name, device_token=fcm_token(name), device_platform="android") for name in names}
    answers = {"Ada": 0, "Ben": 0.3, "Cleo": None, "Dora": None}
    sockets = {name: Page(people[name], channel, after) for name, after in answers.items()}
    sockets["Eve"] = foreground(people["Eve"], channel)
    for _ in range(50):
        sockets["Dora"].send("pusher:pong")
    sockets["Dora"].pong()
    events = [publish(channel, "news")]
    event = {"name": "news", "channel": channel, "data": '{"n": 1}'}
    events += [answer["event_id"] for answer in expect(signed("POST", "/batch_events", {"batch": [event] * 3}))["batch"]]
    for name in ("Cleo", "Dora"):
        gateways.pushes(fcm_token(name), len(events))
    waited, confirmed = [], []
    for event in events:
        for name in ("Cleo", "Dora"):
            trail(event, people[name]["user_id"], lambda row: row["pushes"])
        answer = expect(signed("GET", f"/events/{event}/deliveries"))
        rows = {row["user"]: row for row in answer["deliveries"]}
        for name in ("Cleo", "Dora"):
            committed, due = (datetime.datetime.fromisoformat(text) for text in (
                answer["event"]["committed_at"], rows[people[name]["user_id"]]["pushes"][0]["due_at"]))
            waited.append((due - committed).total_seconds())
        confirmed += [trail(event, people[name]["user_id"], lambda row: row["confirmed_at"])["state"] for name in ("Ada", "Ben", "Eve")]
    gateways.settled()
    finish(
        pushes=[len(gateways.requests(fcm_token(name))) for name in people], waited=waited, confirmed=sorted(set(confirmed)),
        told=[len(socket.all("news")) for socket in sockets.values()],
        asked=[len(socket.all("pusher:ping")) for socket in sockets.values()])


def killed():
    """Ada's socket is dead, Ben has confirmed, Cleo is away with her push refused for the moment: then the hub is killed."""
    gateways, channel = Gateways(), f"presence-board-{SESSION}"
    create_session(SESSION, CODE, definition="board")
    people = {name: join(CODE, name, device_token=fcm_token(name), device_platform="android") for name in ("Ada", "Ben", "Cleo")}
    ada = deaf(people["Ada"], channel)
    ben = foreground(people["Ben"], channel)
    wait_for(lambda: roster(SESSION)["Ada"]["present"], "Ada to be present")
    gateways.fault(fcm_token("Cleo"), {"reason": "UNAVAILABLE", "status": 503, "times": 1})
    event = publish(channel, "news")
    frame = ben.event("news")
    gateways.pushes(fcm_token("Cleo"), 1)
    trail(event, people["Ben"]["user_id"], lambda row: row["confirmed_at"])
    trail(event, people["Cleo"]["user_id"], lambda row: row["pushes"] and row["pushes"][0]["outcome"])
    # Ada's push is not due before another few seconds.
    early = len(gateways.requests(fcm_token("Ada")))
    os.kill(int(os.environ["HUB_PID"]), signal.SIGKILL)
    ada.close()
    finish(event=event, early=early, told=frame["event_id"] == event)


def after_the_kill():
    gateways = Gateways()
    for name, count in (("Ada", 1), ("Cleo", 2)):
        gateways.pushes(fcm_token(name), count, timeout=3 * PATIENCE)
    gateways.settled()
    requests = {name: gateways.requests(fcm_token(name)) for name in ("Ada", "Ben", "Cleo")}
    finish(
        statuses={name: [request["status"] for request in found] for name, found in requests.items()},
        cleo=len({request["body"]["message"]["data"]["nid"] for request in requests["Cleo"]}),
        events=sorted({request["body"]["message"]["data"]["event_id"] for found in requests.values() for request in found}))


def pong_in_time():
    """Ada stands still for less than her event's deadline and then answers; Ben never does. Notify has five seconds."""
    gateways, channel = Gateways(), f"presence-board-{SESSION}"
    create_session(SESSION, CODE, definition="board")
    ada = join(CODE, "Ada", device_token=FCM_A, device_platform="android")
    ben = join(CODE, "Ben", device_token=FCM_B, device_platform="android")
    slow = foreground(ada, channel)
    dead = deaf(ben, channel)
    wait_for(lambda: roster(SESSION)["Ben"]["present"], "Ben to be present")
    with slow.standing_still():
        event = publish(channel, "news")
        time.sleep(1.5)
    slow.event("news")
    gateways.pushes(FCM_B, 1)
    [row] = expect(signed("GET", f"/events/{event}/deliveries", params={"user": ben["user_id"]}))["deliveries"]
    answer = expect(signed("GET", f"/events/{event}/deliveries", params={"user": ada["user_id"]}))
    committed, due = (datetime.datetime.fromisoformat(text) for text in (answer["event"]["committed_at"], row["pushes"][0]["due_at"]))
    gateways.settled()
    dead.close()
    finish(pushes=[len(gateways.requests(token)) for token in (FCM_A, FCM_B)], waited=(due - committed).total_seconds(),
           confirmed=bool(answer["deliveries"][0]["confirmed_at"]))


def receipt(participant, **body):
    expect(http.post(f"{HUB_URL}/me/receipts", json={"status": "opened", **body}, headers=bearer(participant), timeout=PATIENCE))


def cleared():
    """Ada's phone and watch are pushed to; then she reads on her tablet, which nobody pushes to, and takes it from the other two."""
    gateways, channel, phone, watch = Gateways(), f"presence-pinboard-{SESSION}", apns_token("a"), fcm_token("watch")
    create_session(SESSION, CODE, definition="pinboard")
    ada = join(CODE, "Ada", device_token=phone, device_platform="ios", device_id="phone")
    join(CODE, "Ada", device_token=watch, device_platform="android", device_id="watch")
    on_tablet = join(CODE, "Ada", device_id="tablet")
    event = publish(channel, "news")
    for token in (phone, watch):
        gateways.pushes(token, 1)
    trail(event, ada["user_id"], lambda row: [push["state"] for push in row["pushes"]] == ["accepted", "accepted"])
    tablet = foreground(on_tablet, channel)
    frame = tablet.event("news")
    tablet.pong()
    for token in (phone, watch):
        gateways.pushes(token, 2)
    # Nobody's further word has anything more sent.
    receipt(on_tablet, event_id=event)
    receipt(ada, nid=gateways.requests(phone)[0]["body"]["nid"])
    row = trail(event, ada["user_id"], lambda row: all(push["state"] == "accepted" for push in row["pushes"]))
    gateways.settled()
    requests = {token: gateways.requests(token) for token in (phone, watch)}
    alert, clear = requests[phone]
    data = [request["body"]["message"]["data"] for request in requests[watch]]
    finish(
        counts=[len(found) for found in requests.values()], total=len(gateways.requests()), statuses=[alert["status"], clear["status"]],
        read=frame["event_id"] == event, body={name: clear["body"].get(name) for name in ("aps", "type")},
        clears=clear["body"]["clear"] == alert["body"]["nid"], event=clear["body"]["event_id"] == event,
        own=clear["body"]["nid"] != alert["body"]["nid"] and clear["headers"]["apns-id"] != alert["headers"]["apns-id"],
        headers={name: clear["headers"].get(f"apns-{name}") for name in ("push-type", "priority", "collapse-id")},
        expires=clear["headers"]["apns-expiration"] == alert["headers"]["apns-expiration"],
        android=[data[1]["type"], data[1]["clear"] == data[0]["nid"], "notification" in requests[watch][1]["body"]["message"]],
        trail=[[push["device"], push["purpose"]] for push in row["pushes"]])


def cleared_by_word():
    """The phone is pushed to, and the tablet says by HTTP that it was opened there."""
    gateways, phone = Gateways(), apns_token("a")
    create_session(SESSION, CODE, definition="pinboard")
    ada = join(CODE, "Ada", device_token=phone, device_platform="ios", device_id="phone")
    on_tablet = join(CODE, "Ada", device_id="tablet")
    event = publish(f"presence-pinboard-{SESSION}", "news")
    [alert] = gateways.pushes(phone, 1)
    trail(event, ada["user_id"], lambda row: row["state"] == "pushed")
    for _ in range(2):
        receipt(on_tablet, nid=alert["body"]["nid"])
    gateways.pushes(phone, 2)
    gateways.settled()
    requests = gateways.requests()
    finish(count=len(requests), headers=[requests[1]["headers"][f"apns-{name}"] for name in ("push-type", "priority")],
           clears=requests[1]["body"]["clear"] == alert["body"]["nid"])


def clear_killed():
    """The phone has the notification, Ada reads it on her tablet, and the hub is killed before anybody answered the clear."""
    gateways, channel, phone = Gateways(), f"presence-pinboard-{SESSION}", apns_token("a")
    create_session(SESSION, CODE, definition="pinboard")
    ada = join(CODE, "Ada", device_token=phone, device_platform="ios", device_id="phone")
    on_tablet = join(CODE, "Ada", device_id="tablet")
    event = publish(channel, "news")
    gateways.pushes(phone, 1)
    trail(event, ada["user_id"], lambda row: [push["state"] for push in row["pushes"]] == ["accepted"])
    gateways.fault(phone, {"delay_ms": 60_000})
    tablet = foreground(on_tablet, channel)
    tablet.event("news")
    tablet.pong()
    gateways.pushes(phone, 2)
    os.kill(int(os.environ["HUB_PID"]), signal.SIGKILL)
    gateways.clear_faults()
    finish(event=event)


def clear_resumed():
    """On the next hub with the same data: the clear goes out again under its name, and no further word makes another."""
    gateways, phone = Gateways(), apns_token("a")
    gateways.pushes(phone, 3)
    on_tablet = join(CODE, "Ada", device_id="tablet")
    alert = gateways.requests(phone)[0]["body"]
    receipt(on_tablet, nid=alert["nid"])
    row = trail(alert["event_id"], on_tablet["user_id"], lambda row: all(push["state"] == "accepted" for push in row["pushes"]))
    gateways.settled()
    _, first, second = gateways.requests(phone)
    finish(
        count=len(gateways.requests()), status=second["status"], clears=[request["body"]["clear"] == alert["nid"] for request in (first, second)],
        same=[first["headers"][name] == second["headers"][name] for name in ("apns-id", "apns-push-type")] + [first["body"] == second["body"]],
        purposes=[push["purpose"] for push in row["pushes"]], event=alert["event_id"])


PEOPLE = 40


def everybody():
    return [join(CODE, f"P{number}", device_token=fcm_token(f"P{number}"), device_platform="android") for number in range(PEOPLE)]


def full_house():
    """Everybody is on the screen when the hub is killed."""
    create_session(SESSION, CODE, definition="board")
    sockets = [foreground(person, f"presence-board-{SESSION}") for person in everybody()]
    store = f"file:{os.environ['STORE']}?mode=ro"

    def marks():
        with sqlite3.connect(store, uri=True) as database:
            return database.execute("SELECT count(*) FROM attendance_mark").fetchone()[0]

    wait_for(lambda: marks() == 1, "a mark that somebody is there")
    os.kill(int(os.environ["HUB_PID"]), signal.SIGKILL)
    finish(present=len(sockets))


def house_returns():
    """On the next hub an event comes before anybody is back; then all come back but the first."""
    gateways, channel = Gateways(), f"presence-board-{SESSION}"
    event = publish(channel, "news")
    people = everybody()
    for person in people[1:]:
        socket = foreground(person, channel)
        check(socket.event("news")["event_id"] == event, "another event")
        socket.pong()

    def confirmed():
        answer = expect(signed("GET", f"/events/{event}/deliveries"))
        return answer if sum(bool(row["confirmed_at"]) for row in answer["deliveries"]) == PEOPLE - 1 else None

    early = len(gateways.requests())
    gateways.pushes(fcm_token("P0"), 1)
    # Who read the replay before their app said that it is on the screen is asked once more.
    answer = wait_for(confirmed, "the receipts of all who came back")
    [row] = expect(signed("GET", f"/events/{event}/deliveries", params={"user": people[0]["user_id"]}))["deliveries"]
    committed, due = (datetime.datetime.fromisoformat(text) for text in (answer["event"]["committed_at"], row["pushes"][0]["due_at"]))
    gateways.settled()
    finish(
        known=sorted({row["known"] for row in answer["deliveries"]}), early=early, total=len(gateways.requests()),
        waited=(due - committed).total_seconds())


def returned_late():
    """Ada comes back when her push is due and not yet taken; Ben when his has been taken."""
    gateways, channel = Gateways(), f"presence-board-{SESSION}"
    create_session(SESSION, CODE, definition="board")
    ada = join(CODE, "Ada", device_token=FCM_A, device_platform="android")
    ben = join(CODE, "Ben", device_token=FCM_B, device_platform="android")
    gateways.fault(FCM_A, {"reason": "UNAVAILABLE", "status": 503})
    event = publish(channel, "news")
    for token in (FCM_A, FCM_B):
        gateways.pushes(token, 1)
    sockets = [foreground(person, channel) for person in (ada, ben)]
    frames = [socket.event("news") for socket in sockets]
    for socket in sockets:
        socket.pong()
    cancelled = trail(event, ada["user_id"], lambda row: row["pushes"][0]["state"] == "cancelled")
    gateways.clear_faults()
    # Two retries' time.
    time.sleep(float(os.environ["RETRIES_TIME"]))
    requests = [gateways.requests(token) for token in (FCM_A, FCM_B)]
    taken = [[request["status"] for request in found] for found in requests]
    finish(
        taken=taken, frames=[[frame["event_id"] == event for frame in socket.all("news")] for socket in sockets], state=cancelled["state"],
        same=requests[1][0]["body"]["message"]["data"]["event_id"] == frames[1]["event_id"])


{f.__name__: f for f in (
    half_open, let_go, returned, pages, killed, after_the_kill, pong_in_time, cleared, cleared_by_word, clear_killed, clear_resumed, full_house,
    house_returns, returned_late)}[sys.argv[1]]()
