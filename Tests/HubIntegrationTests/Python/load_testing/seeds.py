"""The bundled definitions beside the quiz, from the HTTP publish to what the gateways get. docs/seed-systems.md names the rows."""

import sys

from tandem_client import *

IDENTITY = ("nid", "event_id", "seq", "ts")


def device(user, name, **members):
    return expect(signed("PUT", f"/users/{user}/devices/{name}", members))


def publish(channel, name, data, status=200, **members):
    response = signed("POST", "/events", {"name": name, "channel": channel, "data": json.dumps(data), **members})
    return expect(response, status)


class Books:
    """What each device has got so far."""

    def __init__(self, gateways, **tokens):
        self.gateways, self.tokens = gateways, tokens
        self.seen = dict.fromkeys(tokens, 0)

    def news(self, *expected):
        """The new pushes of each device once those named have one, and nobody another one behind it."""
        for name in expected:
            self.gateways.pushes(self.tokens[name], self.seen[name] + 1)
        self.gateways.settled()
        news = {}
        for name, token in self.tokens.items():
            requests = self.gateways.requests(token)[self.seen[name]:]
            self.seen[name] += len(requests)
            check(all(request["status"] == 200 for request in requests), name, requests)
            if requests:
                check(len(requests) == 1, name, requests)
                news[name] = requests[0]
        check(sorted(news) == sorted(expected), sorted(news), expected)
        return news


def alert(request):
    """Title and body as the person sees them."""
    if request["provider"] == "apns":
        shown = request["body"]["aps"].get("alert")
    else:
        shown = request["body"]["message"].get("notification")
    return None if shown is None else [shown["title"], shown["body"]]


def own(request):
    """The definition's data at the gateway, without the hub's identity members; each of those has to be there."""
    data = dict(request["body"] if request["provider"] == "apns" else request["body"]["message"]["data"])
    for name in IDENTITY:
        check(name in data, name, data)
        del data[name]
    data.pop("aps", None)
    return data


# --- Hide & Seek ----------------------------------------------------------------------------------------------------

GAME, CODE = "old-town", "HIDE42"
CHANNEL = f"presence-game-{GAME}"


def secret(name):
    """The id that an app would have made up at random."""
    return f"{name}-3f6c1f0e7a514b7e9a3e0d7c2b1a5e10"


def play(client, name, role, **members):
    body = {"join_code": CODE, "name": name, **members}
    player = expect(http.post(f"{HUB_URL}/games/join", json=body, headers={"X-Client-Id": secret(client)}, timeout=PATIENCE))
    expect(signed("PUT", f"/sessions/{GAME}/participants/{player['user_id']}", {"name": name, "role": role}))
    return player


def hide_and_seek():
    gateways = Gateways()
    books = Books(gateways, hal=apns_token("a"), sam=apns_token("b"), sia=fcm_token("sia"))
    # A host registers before there is a game; map_id is the app's own.
    http.post(f"{HUB_URL}/games", headers={"X-Client-Id": secret("client-hal")}, timeout=PATIENCE, json={
        "map_id": "m1", "device_token": books.tokens["hal"].upper(), "device_token_environment": "sandbox"}).raise_for_status()
    create_session(GAME, CODE, "hide-and-seek")
    hal = play("client-hal", "Hal", "hider")
    sam = play("client-sam", "Sam", "seeker", device_token=books.tokens["sam"], device_token_environment="production")
    play("client-sia", "Sia", "seeker", device_token=books.tokens["sia"], device_platform="android")
    refused = http.post(f"{HUB_URL}/games/join", json={"join_code": CODE, "name": "Tom"}, headers={"X-Client-Id": "t"}, timeout=PATIENCE)
    environments = [expect(signed("GET", f"/users/{p['user_id']}/devices"))["devices"][0]["environment"] for p in (hal, sam)]

    results = {"join_without_token": refused.status_code, "environments": environments}

    def tell(step, name, data, *expected, **members):
        publish(CHANNEL, name, data, **members)
        news = books.news(*expected)
        results[step] = {who: {"alert": alert(request), "data": own(request)} for who, request in news.items()}
        return news

    for name in ("player_joined", "player_left", "game_ended"):
        publish(CHANNEL, name, {"name": "Hal"})
    tell("thermometer", "question_asked", {"id": "q1", "type": "thermometer", "min_travel_m": 500}, "hal")
    news = tell("started", "game_started", {}, "hal", "sam", "sia")
    results["apns"] = {"headers": news["hal"]["headers"], "aps": news["hal"]["body"]["aps"]}
    results["fcm"] = news["sia"]["body"]["message"]["android"]
    tell("hiding", "phase_changed", {"phase": "hiding"})
    tell("seeking", "phase_changed", {"phase": "seeking"}, "hal", "sam", "sia")
    tell("radar", "question_asked", {"id": "q2", "type": "radar", "radius_m": 3000}, "hal")
    tell("answerable", "question_answerable", {"id": "q1", "type": "thermometer"}, "hal")
    tell("answered", "question_answered", {"id": "q1", "type": "thermometer", "answer": "closer"}, "sam", "sia")
    news = tell("endgame", "phase_changed", {"phase": "endgame"}, "hal", "sam", "sia")
    results["silent"] = {"headers": news["sam"]["headers"], "aps": news["sam"]["body"]["aps"], "fcm": news["sia"]["body"]["message"]}
    results["leak"] = [word for who in ("sam", "sia") for word in ("ndgame", "Stay") if word in json.dumps(news[who]["body"])]
    # The socket is as tight: the seeker looks at the app and reads nothing of what is for the hider.
    socket = Socket()
    socket.subscribe(CHANNEL, participant=sam)
    socket.send("client-app-state", {"state": "foreground"}, CHANNEL)
    publish(CHANNEL, "question_asked", {"id": "q3", "type": "radar", "radius_m": 500})
    news = books.news("hal")
    results["half"] = alert(news["hal"])
    publish(CHANNEL, "question_answered", {"id": "q3", "type": "radar", "answer": "yes"})
    socket.event("question_answered")
    books.news("sia")
    socket.pong()
    results["seeker_read"] = [frame["event"] for frame in socket.frames if not frame["event"].startswith("pusher")]
    # What was pushed is also there to be fetched.
    mine = expect(http.get(f"{HUB_URL}/me/events", headers=bearer(hal), timeout=PATIENCE))["events"]
    results["fetched"] = [event["name"] for event in mine]
    finish(**results)


def unconfigured():
    """Without credentials a game goes on: what would have been pushed is logged."""
    create_session(GAME, CODE, "hide-and-seek")
    play("client-hal", "Hal", "hider", device_token=apns_token("a"))
    publish(CHANNEL, "game_started", {})
    finish()


def timer():
    """Hiding turns into seeking by the hub's own durable timer."""
    gateways = Gateways()
    books = Books(gateways, hal=apns_token("a"))
    create_session(GAME, CODE, "hide-and-seek")
    play("client-hal", "Hal", "hider", device_token=books.tokens["hal"])
    moment = time.time() + 1.5
    publish(CHANNEL, "phase_changed", {"phase": "seeking"}, deliver_at=int(moment * 1000))
    early = len(gateways.requests(books.tokens["hal"]))
    news = books.news("hal")
    finish(early=early, alert=alert(news["hal"]))


# --- Orders ---------------------------------------------------------------------------------------------------------


def orders():
    gateways = Gateways()
    books = Books(gateways, android=fcm_token("ann"), ios=apns_token("c"), ios_by_fcm=fcm_token("pad"))
    device("ann", "phone", token=books.tokens["android"], platform="android")
    device("ann", "iphone", token=books.tokens["ios"], platform="ios", locale="de-AT")
    # The same registration again is no second device.
    device("ann", "iphone", token=books.tokens["ios"], platform="ios", locale="de-AT")
    device("ann", "pad", token=books.tokens["ios_by_fcm"], platform="ios", provider="fcm")
    channel = "private-orders-ann"
    publish(channel, "order-shipped", {"order_id": "A-1042", "image_url": "https://shop.example/a.jpg"})
    shipped = books.news("android", "ios", "ios_by_fcm")
    publish(channel, "order-delayed", {"order_id": "A-1042", "days": 2})
    delayed = books.news("android", "ios", "ios_by_fcm")
    publish(channel, "order-delayed", {"order_id": "A-1042", "days": "two"}, status=400)
    publish(channel, "order-updated", {"order_id": "A-1042"})
    updated = books.news("android", "ios", "ios_by_fcm")
    publish(channel, "promotion", {"title": "Sale", "body": "Today only", "deep_link": "shop://sale"})
    promotion = books.news("android", "ios", "ios_by_fcm")
    finish(**{
        name: {who: {"body": request["body"], "headers": request["headers"]} for who, request in news.items()}
        for name, news in (("shipped", shipped), ("delayed", delayed), ("updated", updated), ("promotion", promotion))})


def quiet():
    """In quiet hours an advertisement waits; it stays cancellable and is not lost. Critical news does not exist for a shop."""
    gateways = Gateways()
    device("ann", "phone", token=fcm_token("ann"), platform="android")
    answer = publish("private-orders-ann", "promotion", {"title": "Sale", "body": "Today only", "deep_link": "shop://sale"})
    def row():
        rows = expect(signed("GET", f"/events/{answer['event_id']}/deliveries"))["deliveries"][0]["pushes"]
        return rows[0] if rows and rows[0]["outcome"] else None
    pushed = wait_for(row, "the push to be ruled on")
    finish(state=pushed["state"], outcome=pushed["outcome"], pushes=len(gateways.requests()))


# --- LoopRail -------------------------------------------------------------------------------------------------------


def looprail():
    gateways = Gateways()
    books = Books(gateways, phone=fcm_token("phone"), pad=apns_token("d"), silent=fcm_token("silent"))
    channel = "private-wallet-u17"
    # Three login sessions: two with consent, one without.
    device("u17", "login-1", token=books.tokens["phone"], platform="android", notifications=True)
    device("u17", "login-2", token=books.tokens["pad"], platform="ios", notifications=True)
    device("u17", "login-3", token=books.tokens["silent"], platform="android", notifications=False)
    results = {}

    def tell(step, name, data, *expected, **members):
        publish(channel, name, data, **members)
        news = books.news(*expected)
        results[step] = {who: {"alert": alert(request), "data": own(request)} for who, request in news.items()}
        return news

    news = tell("welcome", "welcome", {}, "phone", "pad", idempotency_key="welcome-u17")
    results["android"] = news["phone"]["body"]["message"]["android"]
    results["aps"] = news["pad"]["body"]["aps"]
    tell("welcome_again", "welcome", {}, idempotency_key="welcome-u17")
    transaction = {"transaction_id": "t1", "amount": "0.10000000", "asset": "BTC", "network": "bitcoin"}
    tell("received", "deposit-received", transaction, "phone", "pad")
    tell("confirmed", "deposit-confirmed", transaction, "phone", "pad")
    tell("initiated", "withdrawal-initiated", {**transaction, "destination": "bc1q"}, "phone", "pad")
    # The token changed: the session is patched. Logging out ends it.
    fresh = fcm_token("fresh")
    expect(signed("PATCH", "/users/u17/devices/login-1", {"token": fresh}))
    expect(signed("DELETE", "/users/u17/devices/login-2"))
    books.tokens["fresh"], books.seen["fresh"] = fresh, 0
    tell("completed", "withdrawal-processed", {**transaction, "status": "completed"}, "fresh")
    device("u17", "login-4", token=fcm_token("late"), platform="android")
    missing = signed("POST", "/events", {"name": "deposit-received", "channel": channel, "data": json.dumps({"amount": "1"})})
    results["missing"] = [missing.status_code, missing.json()["error"]]
    finish(**results)


# --- Deployments ----------------------------------------------------------------------------------------------------


def deployment():
    """Who is reached with the credentials that this hub has: an Android phone, an iPhone of APNs' and one of FCM's."""
    gateways = Gateways()
    tokens = {"android": fcm_token("ann"), "ios": apns_token("c"), "ios_by_fcm": fcm_token("pad")}
    device("ann", "android", token=tokens["android"], platform="android")
    device("ann", "ios", token=tokens["ios"], platform="ios")
    device("ann", "ios_by_fcm", token=tokens["ios_by_fcm"], platform="ios")
    answer = publish("private-wallet-ann", "welcome", {})
    def ends():
        rows = {push["device"]: push["state"] for push in
                expect(signed("GET", f"/events/{answer['event_id']}/deliveries"))["deliveries"][0]["pushes"]}
        return rows if len(rows) == 3 and not {"due", "leased", "retry"} & set(rows.values()) else None
    states = wait_for(ends, "all pushes to end")
    finish(states=states, sent={name: len(gateways.requests(token)) for name, token in tokens.items()})


{f.__name__: f for f in (deployment, hide_and_seek, unconfigured, timer, orders, quiet, looprail)}[sys.argv[1]]()
