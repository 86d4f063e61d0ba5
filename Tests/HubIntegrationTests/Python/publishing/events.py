"""What is kept of events: history, receipts that apps send, the trail, and publishes that wait for their time."""

import datetime
import sys

from tandem_client import *

SESSION, CODE = "monday", "ABC123"
CHANNEL = f"presence-quiz-{SESSION}"
EVENT = "session-started"
TOKEN = fcm_token("participant-b")


def publish(data="{}", name=EVENT, channel=CHANNEL, headers=None, **members):
    path, body = f"/apps/{APP_ID}/events", json.dumps({"name": name, "channel": channel, "data": data, **members}).encode()
    return http.post(HUB_URL + path, params=signed_query("POST", path, body), data=body, headers=headers or {}, timeout=PATIENCE)


def mine(participant, **params):
    return expect(http.get(f"{HUB_URL}/me/events", params=params, headers=bearer(participant), timeout=PATIENCE))


def receipt(participant, **body):
    return http.post(f"{HUB_URL}/me/receipts", json=body, headers=bearer(participant), timeout=PATIENCE)


def deliveries(event, **params):
    return expect(signed("GET", f"/events/{event}/deliveries", params=params))


def row(event, user, until):
    """The user's row of the trail once it is as wanted."""
    def found():
        rows = deliveries(event, user=user)["deliveries"]
        return rows[0] if rows and until(rows[0]) else None
    return wait_for(found, f"the trail of {user}")


def history():
    """Every event is fetched afterwards, by backends and by whom it was for; the data byte for byte."""
    create_session(SESSION, CODE)
    ada = join(CODE, "Ada")
    data = ['{"n": 1}', "{\"ü\" :\t\"\\u0041\\/\"}", "no JSON"]
    ids = [expect(publish(data[0]))["event_id"]]
    ben = join(CODE, "Ben")
    ids += [expect(publish(text))["event_id"] for text in data[1:]]
    expect(publish("plain", name="chat"))
    whole = expect(signed("GET", f"/channels/{CHANNEL}/history"))
    page = expect(signed("GET", f"/channels/{CHANNEL}/history", params={"after": "1", "limit": "1"}))
    first = mine(ada, limit=2)
    finish(
        same=[e["event_id"] for e in whole["events"]] == ids and [e["data"] for e in whole["events"]] == data,
        sequences=[e["sequence"] for e in whole["events"]], more=whole["more"],
        page=[[e["sequence"] for e in page["events"]], page["more"]],
        ada=[e["sequence"] for e in first["events"]] + [e["sequence"] for e in mine(ada, after=first["position"])["events"]],
        ben=[e["sequence"] for e in mine(ben)["events"]],
        unsigned=http.get(f"{HUB_URL}/apps/{APP_ID}/channels/{CHANNEL}/history", timeout=PATIENCE).status_code,
        no_token=http.get(f"{HUB_URL}/me/events", timeout=PATIENCE).status_code)


def receipts():
    """Apps confirm what reached them; the trail says all of it and names nobody's token or address."""
    gateways = Gateways()
    create_session(SESSION, CODE)
    ada, ben = join(CODE, "Ada"), join(CODE, "Ben", device_token=TOKEN, device_platform="android")
    live = Socket()
    live.subscribe(CHANNEL, participant=ada)
    gateways.fault(TOKEN, {"status": 503, "reason": "UNAVAILABLE", "times": 1})
    event = expect(publish())["event_id"]
    frame = live.event(EVENT)
    pushes = gateways.pushes(TOKEN, 2)
    nid = pushes[-1]["body"]["message"]["data"]["nid"]
    pushed = row(event, ben["user_id"], lambda r: r["state"] == "pushed")
    foreign = [receipt(ada, nid=nid, status="received").status_code, receipt(ada, event_id="x", status="received").status_code]
    opened = receipt(ben, nid=nid, status="opened")
    received = receipt(ada, event_id=frame["event_id"], status="received")
    b = row(event, ben["user_id"], lambda r: r["state"] == "confirmed")
    a = row(event, ada["user_id"], lambda r: r["state"] == "confirmed")
    text = json.dumps(deliveries(event))
    finish(
        event=event, frame_names_event=frame["event_id"] == event, foreign=foreign, opened=[opened.status_code, opened.json()["event_id"] == event],
        received=[received.status_code, received.json()["nid"] == a["nid"]], nid=b["nid"] == nid,
        pushed=[pushed["known"], pushed["decision"], pushed["confirmed_at"]],
        attempts=[answer["answer"] for answer in b["pushes"][0]["answers"]], accepted=b["pushes"][0]["state"],
        ada=[a["decision"], a["pushes"], a["confirmed_at"] is not None], ben_confirmed=b["confirmed_at"] is not None,
        secrets=[secret in text for secret in (TOKEN, "ada@example.com", "ben@example.com")])


# --- Publishing later -----------------------------------------------------------------------------------------------

SCHEDULED = 60


def milliseconds():
    return int(time.time() * 1000)


def at(text):
    return int(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)


def key(number):
    return {"Idempotency-Key": f"later-{number}"}


def later():
    """A publish waits for its time, can be looked at and cancelled, and is refused at once for what would be refused then."""
    create_session(SESSION, CODE)
    ada = join(CODE, "Ada")
    live = Socket()
    live.subscribe(CHANNEL, participant=ada)
    live.subscribe("room")
    due = milliseconds() + 2500
    answer = expect(publish('{"n": 1}', deliver_at=due))
    plain = expect(publish("plain", name="chat", channel="room", deliver_at=due))
    cancelled = expect(publish("cancelled", name="chat", channel="room", deliver_at=due))["scheduled_id"]
    iso = datetime.datetime.fromtimestamp(due / 1000, datetime.timezone.utc).isoformat()
    zoned = expect(publish("zoned", name="chat", channel="room", deliver_at=iso))
    listed = expect(signed("GET", "/scheduled"))["scheduled"]
    first_delete, second_delete = (signed("DELETE", f"/scheduled/{cancelled}").status_code for _ in range(2))
    early = [len(live.all(EVENT)), len(live.all("chat"))]
    check(milliseconds() < due, "too slow to see that nothing came early")
    frame = live.event(EVENT)
    arrived = milliseconds()
    live.count("chat", 2)
    state = expect(signed("GET", f"/scheduled/{answer['scheduled_id']}"))
    expect(signed("DELETE", "/sessions/monday"))
    refused = publish('{"n": 2}', deliver_at=milliseconds() + 60_000)
    create_session("tuesday", "DEF456")
    doomed = expect(publish(channel="presence-quiz-tuesday", deliver_at=milliseconds() + 700))["scheduled_id"]
    expect(signed("DELETE", "/sessions/tuesday"))
    failed = wait_for(lambda: expect(signed("GET", "/scheduled", params={"state": "failed"}))["scheduled"], "the failed one")
    finish(
        due=at(answer["deliver_at"]) == due == at(plain["deliver_at"]) == at(zoned["deliver_at"]), listed=len(listed), deletes=[first_delete, second_delete], early=early,
        late=arrived - due, not_early=arrived >= due, data=frame["data"], event=state["event_ids"] == [frame["event_id"]], state=state["state"],
        chats=sorted(f["data"] for f in live.all("chat")), refused=refused.status_code, no_event_id="event_id" in answer,
        failed=[failed[0]["scheduled_id"] == doomed, failed[0]["error"]], past="event_id" in expect(publish_to_new_session()))


def publish_to_new_session():
    create_session(SESSION, "GHI789")
    return publish(deliver_at=milliseconds() - 1)


def later_before():
    """The hub is killed while publishes fall due one after the other."""
    create_session(SESSION, CODE)
    join(CODE, "Ada")
    # Long enough to send them all, on a machine that is busy as well.
    start = milliseconds() + 10_000
    answers = {}
    for number in range(SCHEDULED):
        answers[str(number)] = expect(publish(f'{{"n":{number}}}', deliver_at=start + 20 * number, headers=key(number)))
    cancelled = expect(publish('{"n":"cancelled"}', deliver_at=start + 600))["scheduled_id"]
    plain = expect(publish("x", name="chat", channel="room", deliver_at=start + 600))["scheduled_id"]
    expect(signed("DELETE", f"/scheduled/{cancelled}"))
    check(milliseconds() < start, "too slow to be killed in the middle")
    # Somewhere around a due time, not at a time that the hub could prefer.
    time.sleep((start - milliseconds()) / 1000 + 0.6 + (os.getpid() % 20) / 1000)
    os.kill(int(os.environ["HUB_PID"]), signal.SIGKILL)
    finish(answers=answers, cancelled=cancelled, plain=plain, killed=milliseconds())


def later_after():
    """The next hub publishes the rest: each once, none early, and none because its request is sent again."""
    before = json.loads(os.environ["BEFORE"])
    wait_for(lambda: not expect(signed("GET", "/scheduled"))["scheduled"], "all to be published")
    replayed = [publish(f'{{"n":{n}}}', deliver_at=at(before["answers"][str(n)]["deliver_at"]), headers=key(n)) for n in range(SCHEDULED)]
    events = expect(signed("GET", f"/channels/{CHANNEL}/history", params={"limit": "200"}))["events"]
    states = [expect(signed("GET", f"/scheduled/{answer['scheduled_id']}")) for answer in before["answers"].values()]
    by_id = {event["event_id"]: event for event in events}
    finish(
        numbers=[json.loads(event["data"])["n"] for event in events], states=sorted({state["state"] for state in states}),
        ids=sorted(i for state in states for i in state["event_ids"]) == sorted(by_id),
        not_early=all(at(by_id[state["event_ids"][0]]["committed_at"]) >= at(state["deliver_at"]) for state in states),
        by_first=sum(at(event["committed_at"]) <= before["killed"] for event in events),
        replayed=[{r.status_code for r in replayed} == {200}, all(r.json() == before["answers"][str(n)] for n, r in enumerate(replayed))],
        cancelled=expect(signed("GET", f"/scheduled/{before['cancelled']}"))["state"],
        plain=expect(signed("GET", f"/scheduled/{before['plain']}"))["state"])


{f.__name__: f for f in (history, receipts, later, later_before, later_after)}[sys.argv[1]]()
