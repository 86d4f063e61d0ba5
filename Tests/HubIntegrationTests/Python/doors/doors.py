"""Strangers and honest people at one hub, with the gateways counting who is told what."""

import sys
import uuid

from tandem_client import *

EVENT = "session-started"


def post(path, body, client=None):
    headers = {"X-Client-Id": client} if client else {}
    return http.post(f"{HUB_URL}{path}", json=body, headers=headers, timeout=PATIENCE)


def notify(gateways, user):
    expect(signed("POST", "/notifications", {"to": {"users": [user]}, "notification": {"title": "Your code", "body": "123456"}}))


def told(gateways, tokens):
    gateways.settled()
    return {name: len(gateways.requests(token)) for name, token in tokens.items()}


def stranger():
    """Nobody without a credential moves somebody else's notifications, by no id and by no token."""
    gateways = Gateways()
    tokens = {name: fcm_token(name) for name in ("victim", "attacker", "ada")}
    create_session("monday", "ABC123")
    expect(signed("PUT", "/users/u1/devices/phone", {"token": tokens["victim"], "platform": "android"}))
    ada = join("ABC123", "Ada", device_token=tokens["ada"], device_platform="android")
    statuses = [
        post("/games", {"device_token": tokens["attacker"], "device_platform": "android"}, client).status_code
        for client in ("phone", "unnamed-android", "unnamed-android-0123456789abcdef", str(uuid.uuid4()))
    ]
    post("/games", {"device_token": tokens["victim"], "device_platform": "android"}, str(uuid.uuid4()))
    eve = post("/api/scenarios/sessions/ABC123/join", {"name": "Eve", "email": "eve@example.com"}, "phone").json()
    notify(gateways, "u1")
    notify(gateways, ada["user_id"])
    gateways.pushes(tokens["ada"], 1)
    finish(statuses=statuses, eve=eve["user_id"] != ada["user_id"], told=told(gateways, tokens))


def one_phone():
    """One phone in two sessions hears of both; one person with two rows of one token is told once."""
    gateways = Gateways()
    token, client = fcm_token("phone"), str(uuid.uuid4())
    for session, code in (("monday", "AAA111"), ("tuesday", "BBB222")):
        create_session(session, code)
    first = join("AAA111", "Ada", headers={"X-Client-Id": client}, device_token=token, device_platform="android")
    second = join("BBB222", "Ada", headers={"X-Client-Id": client})
    expect(signed("PUT", f"/users/{first['user_id']}/devices/phone", {"token": token, "platform": "android"}))
    counts = []
    for session in ("monday", "tuesday"):
        expect(signed("POST", "/events", {"name": EVENT, "channel": f"presence-quiz-{session}", "data": "{}"}))
        gateways.pushes(token, len(counts) + 1)
        gateways.settled()
        counts.append(len(gateways.requests(token)))
    finish(counts=counts, people=[first["user_id"] != second["user_id"]])


def honest():
    """What honest people do: joining again, a reinstalled app, a refreshed token, a role, a logout, an invitation."""
    gateways = Gateways()
    tokens = {name: fcm_token(name) for name in ("old", "new", "fresh", "host", "nina")}
    create_session("monday", "ABC123")
    create_session("old-town", "HIDE42", "hide-and-seek")
    results = {}
    ada = join("ABC123", "Ada", headers={"X-Client-Id": str(uuid.uuid4())}, device_token=tokens["old"], device_platform="android")
    expect(signed("PUT", f"/sessions/monday/participants/{ada['user_id']}", {"name": "Ada", "email": "ada@example.com"}))
    # Reinstalled: another id, another token, the same e-mail. The gateway says that the old token is dead.
    gateways.fault(tokens["old"], {"status": 404, "reason": "UNREGISTERED"})
    again = join("ABC123", "Ada", headers={"X-Client-Id": str(uuid.uuid4())}, device_token=tokens["new"], device_platform="android")
    results["same"] = again["id"] == ada["id"]
    expect(signed("POST", "/events", {"name": EVENT, "channel": "presence-quiz-monday", "data": "{}"}))
    gateways.pushes(tokens["new"], 1)
    devices = lambda: expect(signed("GET", f"/users/{ada['user_id']}/devices"))["devices"]
    wait_for(lambda: not all(device["has_token"] for device in devices()), "the dead token to be removed")
    expect(http.put(f"{HUB_URL}/me/device", json={"token": tokens["fresh"]}, headers=bearer(again), timeout=PATIENCE))
    expect(signed("POST", "/events", {"name": EVENT, "channel": "presence-quiz-monday", "data": "{}"}))
    gateways.pushes(tokens["fresh"], 1)
    # A logout deletes the device of the token.
    http.delete(f"{HUB_URL}/me/device", headers=bearer(again), timeout=PATIENCE).raise_for_status()
    # A host's token waits for the game.
    host = str(uuid.uuid4())
    expect(post("/games", {"device_token": tokens["host"], "device_platform": "android"}, host))
    hal = expect(post("/games/join", {"join_code": "HIDE42", "name": "Hal"}, host))
    expect(signed("PUT", f"/sessions/old-town/participants/{hal['user_id']}", {"name": "Hal", "role": "hider"}))
    results["host"] = expect(post("/games/join", {"join_code": "HIDE42", "name": "Hal"}, host))["id"] == hal["id"]
    results["role"] = roster("old-town")["Hal"]["role"]
    # Nina is invited: her e-mail is no way in, the backend's token is.
    expect(signed("PUT", "/sessions/monday/participants/u9", {"name": "Nina", "email": "nina@example.com"}))
    results["stranger"] = post("/api/scenarios/sessions/ABC123/join", {"name": "Nina", "email": "nina@example.com"}).status_code
    nina = expect(signed("POST", "/sessions/monday/participants/u9/token", {"scope": "app", "device": "phone"}))
    expect(http.put(f"{HUB_URL}/me/device", json={"token": tokens["nina"]}, headers=bearer(nina), timeout=PATIENCE))
    socket = Socket()
    socket.subscribe("presence-quiz-monday", participant=nina)
    results["events"] = http.get(f"{HUB_URL}/me/events", headers=bearer(nina), timeout=PATIENCE).status_code
    expect(signed("POST", "/notifications", {"to": {"users": ["u9", hal["user_id"]]}, "notification": {"title": "Hello", "body": "there"}}))
    gateways.pushes(tokens["nina"], 1)
    gateways.pushes(tokens["host"], 1)
    finish(told=told(gateways, tokens), **results)


{f.__name__: f for f in (stranger, one_phone, honest)}[sys.argv[1]]()
