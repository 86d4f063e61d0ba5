"""Direct sends, many devices at once, and dead letters, from the HTTP request to what the gateways get. Standard library and requests only."""

import subprocess
import sys
import time

from tandem_client import *

TANDEM = os.environ["TANDEM"]
TEXT = {"title": "Welcome to LoopRail! 🚀", "body": "Your onboarding is complete. Start exploring now."}


def command(*arguments, code=0):
    result = subprocess.run([TANDEM, *arguments, "--url", HUB_URL], capture_output=True, text=True, timeout=PATIENCE)
    check(result.returncode == code, arguments, result.returncode, result.stdout, result.stderr)
    return result.stdout if code == 0 else result.stderr


def send(to, status=200, **members):
    return expect(signed("POST", "/notifications", {"to": to, "notification": TEXT} | members), status)


def message(request):
    return request["body"]["message"]


def sends():
    gateways = Gateways()
    phone, tablet = fcm_token("ann"), apns_token("a")
    outcomes = expect(signed("POST", "/devices", {"devices": [
        {"user": "ann", "device": "phone", "token": phone, "platform": "android"},
        {"user": "ann", "device": "tablet", "token": tablet, "platform": "ios", "environment": "production"},
        {"user": "bob", "device": "phone"}]}))["devices"]
    statuses = [outcome["status"] for outcome in outcomes]

    users = send({"users": ["ann", "bob"]}, data={"action": "NONE", "campaign_id": ""}, once="welcome")
    [android], [ios] = gateways.pushes(phone, 1), gateways.pushes(tablet, 1)
    again = send({"users": ["ann", "bob"]}, once="welcome")

    fid, hexadecimal = "dXJ0fid-1", apns_token("b")
    tokens = send({"tokens": [fcm_token("lone"), {"fid": fid, "platform": "ios"}, hexadecimal]})
    [lone], [direct] = gateways.pushes(fcm_token("lone"), 1), gateways.pushes(hexadecimal, 1)
    topic = send({"topic": "news"})
    condition = send({"condition": "'news' in topics && !('sport' in topics)"})

    def target(kind, value):
        return [request for request in gateways.requests() if message_of(request).get(kind) == value]

    def message_of(request):
        return request["body"].get("message", {})

    wait_for(lambda: target("fid", fid) and target("topic", "news") and target("condition", "'news' in topics && !('sport' in topics)"),
             "the three others at the gateway")
    trace = command("trace", users["event_id"])
    finish(statuses=statuses, users={key: users[key] for key in ("devices", "unreachable")}, again=again,
           android={"notification": message(android)["notification"], "data": message(android)["data"]["campaign_id"]},
           ios=ios["body"]["aps"]["alert"], devices=[tokens["devices"], topic["devices"], condition["devices"]],
           lone=message(lone)["notification"]["title"], direct=direct["body"]["aps"]["alert"]["title"],
           fid=[message(request)["notification"]["title"] for request in target("fid", fid)],
           trace="ann" in trace and "bob" in trace and "#notifications" in trace,
           silent_about_tokens=not any(token in open(os.environ["HUB_LOG"]).read() for token in (phone, tablet, hexadecimal)))


def dead_letters():
    gateways = Gateways()
    token = fcm_token("ann")
    expect(signed("PUT", "/users/ann/devices/phone", {"token": token, "platform": "android"}))
    gateways.fault(token, {"status": 400, "reason": "INVALID_ARGUMENT", "message": "Invalid value", "times": 1})
    event = send({"users": ["ann"]}, data={"n": "7"})["event_id"]
    wait_for(lambda: expect(signed("GET", "/dead-letters"))["dead_letters"], "the dead letter")
    [letter] = expect(signed("GET", "/dead-letters"))["dead_letters"]
    shown = json.loads(command("dead-letters", "show", letter["nid"]))
    listed = command("dead-letters")
    replayed = command("dead-letters", "replay", letter["nid"])
    requests = gateways.pushes(token, 2)
    wait_for(lambda: expect(signed("GET", f"/events/{event}/deliveries"))["deliveries"][0]["state"] == "pushed", "the accepted push")
    finish(letter={key: letter[key] for key in ("user", "device", "provider", "reason", "attempts")}, event=letter["event_id"] == event,
           shown=[shown["message"]["title"], shown["message"]["data"]], listed=letter["nid"] in listed and TEXT["title"] not in listed,
           replayed=replayed.strip(), statuses=[request["status"] for request in requests],
           same=message(requests[0])["data"]["nid"] == message(requests[1])["data"]["nid"] == letter["nid"],
           left=expect(signed("GET", "/dead-letters"))["dead_letters"], empty=command("dead-letters").strip(),
           missing=command("dead-letters", "replay", letter["nid"], code=1).strip(),
           devices=[token not in command("devices", "ann"), "phone" in command("devices", "ann"), command("devices", "nobody or somebody").strip()])


def invented_tokens():
    """150 honest people; then 12, and 500 more tokens that nobody has. Everybody honest is told of what follows, at once."""
    gateways = Gateways()
    honest = {f"p{number}": f"a{number:063x}" for number in range(150)}

    def register(people):
        expect(signed("POST", "/devices", {"devices": [
            {"user": user, "device": "phone", "token": token, "platform": "ios", "environment": "production"} for user, token in people.items()]}))

    def told():
        accepted = [request["token"] for request in gateways.requests() if request["status"] == 200]
        return {token: accepted.count(token) for token in honest.values()}

    register(honest)
    send({"users": list(honest)})
    wait_for(lambda: all(count == 1 for count in told().values()), "the first push to everybody")
    everybody, seconds, rounds = dict(honest), [], 1
    for number, count in enumerate((12, 500)):
        invented = {f"x{number}-{place}": f"b{number}{place:062x}" for place in range(count)}
        for token in invented.values():
            gateways.fault(token, {"status": 400, "reason": "BadDeviceToken"})
        register(invented)
        everybody |= invented
        for _ in range(2):
            rounds += 1
            begin = time.monotonic()
            send({"users": list(everybody)})
            wait_for(lambda: all(count == rounds for count in told().values()), f"push {rounds} to everybody honest")
            seconds.append(round(time.monotonic() - begin, 1))
    wait_for(lambda: not any(
        expect(signed("GET", f"/users/x0-{place}/devices"))["devices"][0]["has_token"] for place in range(12)), "the invented tokens to go")
    finish(seconds=seconds, counts=sorted(set(told().values())), alarm="push alarm" in open(os.environ["HUB_LOG"]).read())


{f.__name__: f for f in (sends, dead_letters, invented_tokens)}[sys.argv[1]]()
