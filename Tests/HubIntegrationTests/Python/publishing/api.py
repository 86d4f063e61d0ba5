"""Tandem's own HTTP routes: for backends, signed; for apps, with the participant token."""

import sys

from tandem_client import *


def answer(response):
    """Status and body; every refusal is a JSON object with a sentence."""
    body = response.json()
    check(response.status_code == 200 or isinstance(body.get("error"), str), response.status_code, body)
    return [response.status_code, body]


def status(response):
    return answer(response)[0]


def join_raw(code, body, **headers):
    return http.post(f"{HUB_URL}/api/scenarios/sessions/{code}/join", json=body, headers=headers, timeout=PATIENCE)


def me(method, path, token, body=None):
    headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
    return http.request(method, f"{HUB_URL}{path}", json=body, headers=headers, timeout=PATIENCE)


def sessions():
    created = create_session("monday", "abc123", attributes={"course": "Swift"})
    results = {
        "created": created, "read": expect(signed("GET", "/sessions/monday")),
        "repeated": create_session("monday", "ABC123", attributes={"course": "Swift"}),
        "clash": status(signed("PUT", "/sessions/tuesday", {"definition": "quiz", "join_code": "ABC123"})),
        "definition": answer(signed("PUT", "/sessions/x", {"definition": "quizz"})),
        "no_definition": status(signed("PUT", "/sessions/x", {})),
        "bad_name": status(signed("PUT", "/sessions/bad%20name", {"definition": "quiz"})),
        "bad_code": status(signed("PUT", "/sessions/x", {"definition": "quiz", "join_code": "no spaces"})),
        "bad_json": status(signed("PUT", "/sessions/x", raw=b"{")),
        "unsigned": status(http.put(f"{HUB_URL}/apps/1/sessions/x", json={"definition": "quiz"}, timeout=PATIENCE)),
        "method": status(signed("POST", "/sessions/monday", {})),
        "missing": status(signed("GET", "/sessions/nowhere")),
        "deleted": [status(signed("DELETE", "/sessions/monday")) for _ in range(2)],
        "gone": status(signed("GET", "/sessions/monday")),
        "code_is_free": status(signed("PUT", "/sessions/tuesday", {"definition": "quiz", "join_code": "ABC123"})),
    }
    finish(**results)


def participants():
    create_session("monday", "ABC123")
    put = expect(signed("PUT", "/sessions/monday/participants/u1", {"name": "Uma", "email": "uma@example.com"}))
    ada = join("ABC123", "Ada")
    again = join("abc123", "Ada")
    other = expect(join_raw("ABC123", {"name": "Ada", "email": "other@example.com"}))
    before = roster("monday")
    socket = Socket()
    socket.subscribe("presence-quiz-monday", participant=ada)
    wait_for(lambda: [entry["present"] for entry in expect(
        signed("GET", "/sessions/monday/participants"))["participants"]].count(True) == 1, "Ada to be present")
    listed = expect(signed("GET", "/sessions/monday/participants"))["participants"]
    results = {
        "put": put, "same": [ada["user_id"] == again["user_id"], ada["token"] != again["token"], other["user_id"] != ada["user_id"]],
        "names": sorted(before), "listed": [{key: entry[key] for key in ("name", "present", "connections", "app_state")} for entry in listed],
        "no_session": status(signed("PUT", "/sessions/nowhere/participants/u1", {"name": "U"})),
        "no_name": status(signed("PUT", "/sessions/monday/participants/u2", {})),
        "no_role": status(signed("PUT", "/sessions/monday/participants/u2", {"name": "U", "role": "king"})),
        "email_taken": status(signed("PUT", "/sessions/monday/participants/u2", {"name": "U", "email": "uma@example.com"})),
        "both_tokens": [status(me("PUT", "/me/state", token, {"state": "foreground"})) for token in (ada["token"], again["token"])],
        "removed": status(signed("DELETE", f"/sessions/monday/participants/{ada['user_id']}")),
        "token_of_removed": status(me("PUT", "/me/state", ada["token"], {"state": "foreground"})),
        "left": sorted(entry["email"] for entry in roster("monday").values()),
    }
    finish(**results)


def joining():
    create_session("monday", "ABC123")
    plain = join("ABC123", "Ada")
    with_token = join("ABC123", "Ben", device_token="t:APA91b" + "x" * 100, device_platform="android")
    results = {
        "members": sorted(plain), "same_members": sorted(plain) == sorted(with_token), "session_id": plain["session_id"],
        "types": [type(plain[key]).__name__ for key in ("id", "session_id", "joined_at")], "joined_at": plain["joined_at"],
        "no_name": status(join_raw("ABC123", {"email": "a@example.com"})),
        "no_email": status(join_raw("ABC123", {"name": "A"})),
        "bad_email": status(join_raw("ABC123", {"name": "A", "email": "nobody"})),
        "no_object": status(join_raw("ABC123", [1])),
        # What is wrong with a device never keeps a person out.
        "bad_platform": status(join_raw("ABC123", {"name": "A", "email": "a@example.com", "device_token": "x", "device_platform": "fax"})),
        "bad_token": status(join_raw("ABC123", {"name": "A", "email": "a@example.com", "device_token": "spaces in it", "device_platform": "ios"})),
        "method": status(http.get(f"{HUB_URL}/api/scenarios/sessions/ABC123/join", timeout=PATIENCE)),
    }
    right = [status(join_raw("ABC123", {"name": f"P{n}", "email": f"p{n}@example.com"})) for n in range(30)]
    wrong = [join_raw(f"WRONG{n}", {"name": "A", "email": "a@example.com"}) for n in range(11)]
    results["right"] = sorted(set(right))
    results["wrong"] = [status(response) for response in wrong]
    results["right_in_turn"] = status(join_raw("ABC123", {"name": "A", "email": "a@example.com"}))
    finish(**results)


def devices():
    create_session("monday", "ABC123")
    path = "/users/u1/devices/phone"
    results = {
        "put": answer(signed("PUT", path, {"token": "t:" + "x" * 50, "platform": "android"})),
        "get": answer(signed("GET", path)),
        "patch": answer(signed("PATCH", path, {"notifications": False, "locale": "de-CH"})),
        "list": answer(signed("GET", "/users/u1/devices")),
        "no_token": status(signed("PUT", path, {"platform": "android"})),
        "no_platform": status(signed("PUT", path, {"token": "t"})),
        "bad_platform": status(signed("PUT", path, {"token": "t", "platform": "fax"})),
        "apns_android": status(signed("PUT", path, {"token": "ab", "platform": "android", "provider": "apns"})),
        "apns_no_hex": status(signed("PUT", path, {"token": "xyz", "platform": "ios", "provider": "apns"})),
        "ios": answer(signed("PUT", "/users/u1/devices/pad", {"token": "AB" * 32, "platform": "ios"}))[1],
        # An iOS app that holds an FCM token.
        "ios_fcm": answer(signed("PUT", "/users/u1/devices/other", {"token": "f:" + "x" * 50, "platform": "ios"}))[1],
        "patch_missing": status(signed("PATCH", "/users/u1/devices/nothing", {"notifications": False})),
        "deleted": [status(signed("DELETE", path)) for _ in range(2)],
        "gone": status(signed("GET", path)),
    }
    # An app speaks for its own device, with the token that joining gave it.
    ada = join("ABC123", "Ada", headers={"X-Client-Id": "3f6c1f0e-7a51-4b7e-9a3e-0d7c2b1a5e10"}, device_token="a:" + "x" * 50, device_platform="android")
    results["own"] = [
        status(me("PUT", "/me/device", ada["token"], {"token": "b:" + "x" * 50})),
        [device["device"][:4] for device in expect(signed("GET", f"/users/{ada['user_id']}/devices"))["devices"]],
        status(me("PUT", "/me/device", ada["token"], {})), status(me("DELETE", "/me/device", ada["token"])),
        expect(signed("GET", f"/users/{ada['user_id']}/devices"))["devices"], status(me("GET", "/me/device", ada["token"]))]
    finish(**results)


def tokens():
    import base64
    create_session("monday", "ABC123")
    create_session("tuesday", "DEF456")
    ada, ben = join("ABC123", "Ada"), join("DEF456", "Ben")
    header, claims, signature = ada["token"].split(".")

    def encoded(value):
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    def decoded(text):
        return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))

    def resigned(head, body, secret=SECRET):
        text = f"{encoded(head)}.{encoded(body)}"
        mac = hmac.new(secret.encode(), text.encode(), hashlib.sha256).digest()
        return f"{text}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"

    head, body = decoded(header), decoded(claims)
    flipped = ("A" if signature[0] != "A" else "B") + signature[1:]
    forged = {
        "none": None, "empty": "", "text": "nonsense", "signature": f"{header}.{claims}.{flipped}",
        "claims": f"{header}.{encoded({**body, 'sub': '2'})}.{signature}", "no_signature": f"{header}.{claims}.",
        "alg_none": f"{encoded({**head, 'alg': 'none'})}.{claims}.", "other_secret": resigned(head, body, "guess"),
        "expired": resigned(head, {**body, "exp": int(time.time()) - 1}), "foreign_session": resigned(head, {**body, "session": "nowhere"}),
        "subscription_signature": ada["token"].replace(".", ":"),
    }
    socket = Socket()
    channel = "presence-quiz-monday"
    auth_body = {"socket_id": socket.socket_id, "channel_name": channel}
    results = {"forged": {}}
    for name, token in forged.items():
        results["forged"][name] = [
            status(me("PUT", "/me/state", token, {"state": "background"})), status(me("POST", "/pusher/auth", token, auth_body)),
            status(me("POST", "/pusher/user-auth", token, auth_body)), status(me("DELETE", "/me/device", token))]
    results["genuine"] = status(me("PUT", "/me/state", resigned(head, body), {"state": "background"}))

    def auth(participant, channel_name, socket_id=socket.socket_id):
        return me("POST", "/pusher/auth", participant["token"], {"socket_id": socket_id, "channel_name": channel_name})

    own = expect(auth(ada, channel))
    results["own"] = [own["auth"] == sign_channel(socket.socket_id, channel, own["channel_data"]), json.loads(own["channel_data"])]
    results["form"] = authorize(ada, socket.socket_id, channel) == own
    results["email_hidden"] = "example.com" not in json.dumps(own)
    results["foreign"] = {name: status(auth(ada, name)) for name in (
        "presence-quiz-tuesday", "private-quiz-monday", "presence-quiz-", "presence-quiz-monday2", "private-other", "presence-other", "public")}
    results["ben"] = [status(auth(ben, channel)), status(auth(ben, "presence-quiz-tuesday"))]
    results["bad"] = [status(auth(ada, "bad name!")), status(auth(ada, channel, "nonsense")), status(me("POST", "/pusher/auth", ada["token"], {}))]
    user = expect(me("POST", "/pusher/user-auth", ada["token"], {"socket_id": socket.socket_id}))
    results["user"] = backend().authenticate_user(socket.socket_id, json.loads(user["user_data"]))["user_data"] is not None
    text = f"{socket.socket_id}::user::{user['user_data']}"
    results["user_signature"] = user["auth"] == f"{KEY}:{hmac.new(SECRET.encode(), text.encode(), hashlib.sha256).hexdigest()}"
    results["bad_state"] = [status(me("PUT", "/me/state", ada["token"], {"state": state})) for state in ("asleep", None, 5)]
    finish(**results)


{f.__name__: f for f in (sessions, participants, joining, devices, tokens)}[sys.argv[1]]()
