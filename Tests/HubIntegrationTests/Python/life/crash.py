"""The hub is killed right after it has accepted an event; what was not sent yet is sent by the next one.

The scenarios before the kill end the hub themselves, because every moment between the answer and the end is one in which
it could still do its work.
"""

import sys

from tandem_client import *

SESSION, CODE = "monday", "ABC123"
CHANNEL = f"presence-quiz-{SESSION}"
APNS_C = apns_token("c")
FCM_B, FCM_D = fcm_token("participant-b"), fcm_token("participant-d")
SLOW = {"delay_ms": 60_000}


def prepare():
    create_session(SESSION, CODE)
    join(CODE, "Ben", device_token=FCM_B, device_platform="android")
    join(CODE, "Cleo", device_token=APNS_C, device_platform="ios")
    join(CODE, "Dora", device_token=FCM_D, device_platform="android")


def kill():
    os.kill(int(os.environ["HUB_PID"]), signal.SIGKILL)


def report(gateways, **more):
    def brief(request):
        body = request["body"]
        data = body if request["provider"] == "apns" else body["message"]["data"]
        return {"status": request["status"], "nid": data["nid"], "apns_id": request["headers"].get("apns-id"), "ts": str(data["ts"])}

    finish(**{name: [brief(r) for r in gateways.requests(token)] for name, token in (("b", FCM_B), ("c", APNS_C), ("d", FCM_D))}, **more)


def at_once():
    """No gateway has answered anything when the hub dies."""
    gateways = Gateways()
    prepare()
    for token in (FCM_B, APNS_C, FCM_D):
        gateways.fault(token, SLOW)
    backend().trigger(CHANNEL, "session-started", {})
    kill()
    gateways.clear_faults()
    report(gateways)


def half_way():
    """D's push was accepted and written down, B's was sent and not answered, C's was refused for the moment."""
    gateways = Gateways()
    prepare()
    gateways.fault(FCM_B, SLOW)
    gateways.fault(APNS_C, {"status": 503, "reason": "ServiceUnavailable", "times": 1})
    backend().trigger(CHANNEL, "session-started", {})
    gateways.pushes(FCM_B, 1)
    gateways.pushes(APNS_C, 1)
    nid = gateways.pushes(FCM_D, 1)[0]["body"]["message"]["data"]["nid"]
    log = os.environ["HUB_LOG"]
    wait_for(
        lambda: any("push ended" in line and nid in line and "accepted" in line for line in open(log)),
        "the hub to write down that D's push was accepted")
    kill()
    gateways.clear_faults()
    report(gateways)


KEYS = 300


def keyed(url, number, attempts=1):
    """Publishes event number so-and-so under its own key, as a backend that is not told what became of it does."""
    path, body = f"/apps/{APP_ID}/events", json.dumps({"name": "session-started", "channel": CHANNEL, "data": f"{{\"n\":{number}}}"}).encode()
    for _ in range(attempts):
        try:
            # A session of its own: what requests does about proxies by itself changes the environment, and other threads do it, too.
            with requests.Session() as session:
                session.trust_env = False
                return session.post(
                    url + path, params=signed_query("POST", path, body), data=body, headers={"Idempotency-Key": f"order-{number}"}, timeout=PATIENCE)
        except requests.RequestException:
            continue
    return None


def keyed_publishes():
    """Backends publish under keys when the hub dies: some have their answer, some not, and some were never heard."""
    import concurrent.futures
    prepare()
    known = keyed(HUB_URL, 0)
    check(known.status_code == 200, known.text)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(keyed, HUB_URL, number) for number in range(1, KEYS)]
        wait_for(lambda: sum(answer.done() for answer in answers) > KEYS / 3, "a third of the answers")
        kill()
        answered = {str(number): answer.result().text for number, answer in enumerate(answers, 1) if answer.result() is not None}
    finish(answered={**answered, "0": known.text})


def keyed_retries():
    """All of them are sent again to the next hub, with the store looked at afterwards."""
    import sqlite3
    before = json.loads(os.environ["ANSWERED"])
    responses = {str(number): keyed(HUB_URL, number) for number in range(KEYS)}
    replayed = {number for number, response in responses.items() if response.headers.get("Idempotency-Replayed") == "true"}
    store = sqlite3.connect(f"file:{os.environ['STORE']}?mode=ro", uri=True)
    events = store.execute("SELECT id, CAST(data AS TEXT) FROM event").fetchall()
    finish(
        statuses=sorted({response.status_code for response in responses.values()}),
        answered=len(before), same=all(responses[number].text == text for number, text in before.items()),
        answered_are_replayed=set(before) <= replayed, some_were_new=len(replayed) < KEYS,
        # One event per key, and the answer tells which.
        events=len(events), numbers=len({data for _, data in events}), ids={json.loads(r.text)["event_id"] for r in responses.values()} == {i for i, _ in events})


def drained():
    """The hub ends in order while both gateways keep it waiting."""
    gateways = Gateways()
    prepare()
    for token in (FCM_B, APNS_C):
        gateways.fault(token, SLOW)
    backend().trigger(CHANNEL, "session-started", {})
    for token in (FCM_B, APNS_C, FCM_D):
        gateways.pushes(token, 1)
    gateways.clear_faults()
    os.kill(int(os.environ["HUB_PID"]), signal.SIGTERM)
    report(gateways)


def attended():
    """Ben is connected when the hub dies, and nobody is waited for."""
    import sqlite3
    prepare()
    event = expect(signed("POST", "/events", {"name": "session-started", "channel": CHANNEL, "data": "{}"}))["event_id"]
    known = known_states(event)
    socket = Socket()
    socket.subscribe(CHANNEL, participant=join(CODE, "Ben", device_token=FCM_B, device_platform="android"))
    store = f"file:{os.environ['STORE']}?mode=ro"

    def marks():
        with sqlite3.connect(store, uri=True) as database:
            return database.execute("SELECT count(*) FROM attendance_mark").fetchone()[0]

    wait_for(lambda: marks() == 1, "a mark that somebody is there")
    kill()
    finish(known=known)


def known_states(event):
    return sorted({row["known"] for row in expect(signed("GET", f"/events/{event}/deliveries"))["deliveries"]})


def awaited():
    """On the next hub with the same data: nobody has come back yet."""
    event = expect(signed("POST", "/events", {"name": "session-started", "channel": CHANNEL, "data": "{}"}))["event_id"]
    finish(known=known_states(event))


def afterwards():
    """On the next hub with the same data."""
    gateways = Gateways()
    for token in (FCM_B, APNS_C, FCM_D):
        wait_for(lambda: any(r["status"] == 200 for r in gateways.requests(token)), "a push that was accepted")
    for token in (FCM_B, APNS_C):
        gateways.pushes(token, int(os.environ["REQUESTS"]))
    gateways.settled()
    report(gateways, people=sorted(roster(SESSION)))


{f.__name__: f for f in (at_once, half_way, keyed_publishes, keyed_retries, drained, attended, awaited, afterwards)}[sys.argv[1]]()
