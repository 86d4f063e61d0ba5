"""The HTTP API of Pusher's protocol beyond what the official libraries ask for: idempotency keys, CORS, deprecated routes, refusals."""

import concurrent.futures
import sys

from tandem_client import *


def publish(body, key=None, path="/events", name="Idempotency-Key", app="1", credentials=(KEY, SECRET), **params):
    """A signed POST, with headers as a backend may add them."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    path = f"/apps/{app}{path}"
    query = signed_query("POST", path, data, params, key=credentials[0], secret=credentials[1])
    headers = {"Content-Type": "application/json; charset=utf-8"}
    if key is not None:
        headers[name] = key
    # A connection of its own: several at once have to reach different loops.
    # A session of its own: what requests does about proxies by itself changes the environment, and other threads do it, too.
    with requests.Session() as session:
        session.trust_env = False
        return session.post(HUB_URL + path, params=query, data=data, headers=headers, timeout=PATIENCE)


def brief(response):
    return [response.status_code, response.text, response.headers.get("Idempotency-Replayed")]


def sentence(response):
    """Status and error text of a refusal, which has to be a JSON object whose size is told."""
    check(response.headers["Content-Type"] == "application/json", response.headers)
    check(int(response.headers["Content-Length"]) == len(response.content) > 0, response.headers)
    error = response.json()["error"]
    check(isinstance(error, str) and error, response.text)
    return [response.status_code, error]


def idempotency():
    create_session("monday", "ABC123")
    # One reader per loop would do; the loops take connections in turn.
    readers = [Socket() for _ in range(4)]
    for reader in readers:
        reader.subscribe("news")
        reader.subscribe("presence-quiz-monday", user=f"u{reader.socket_id}")
    event = {"name": "told", "channel": "news", "data": "1"}
    results = {"plain": [brief(publish(event, "k1")), brief(publish(event, "k1")), brief(publish(event, "k1", name="X-Idempotency-Key"))]}
    started = {"name": "session-started", "channel": "presence-quiz-monday", "data": "{}", "info": "user_count"}
    first, again = publish(started, "k2"), publish(started, "k2")
    results["policy"] = [sorted(first.json()), first.json()["channels"], first.text == again.text, brief(again)[0::2]]
    batch = {"batch": [event, {**started, "channel": "news"}]}
    results["batch"] = [brief(publish(batch, "k3", "/batch_events")) for _ in range(2)]
    results["member"] = [brief(publish({**event, "idempotency_key": "k4"})) for _ in range(2)]
    results["different"] = [
        sentence(publish({**event, "data": "2"}, "k1"))[0], sentence(publish(batch, "k1", "/batch_events"))[0],
        publish({**event, "data": "2"}, "k1 ").status_code]
    results["bad_key"] = [sentence(publish(event, "k" * 256)), sentence(publish(event, ""))[0], publish(event, "k" * 255).status_code]
    # Refused, corrected, accepted under the same key.
    results["corrected"] = [sentence(publish({"name": "told"}, "k5"))[0], brief(publish(event, "k5"))]
    lost = {**started, "channel": "presence-quiz-tuesday"}
    results["refused"] = [sentence(publish(lost, "k6"))[0]]
    create_session("tuesday", "DEF456")
    results["refused"].append(brief(publish(lost, "k6"))[0::2])
    results["other_app"] = brief(publish(event, "k1", app="2", credentials=("two-key", "two-secret")))

    known = len(readers[0].all("told"))
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: brief(publish({**event, "data": "crowd"}, "crowd")), range(12)))
    for reader in readers:
        reader.pong()
    results["crowd"] = [
        sorted({status for status, _, _ in answers}), sorted({text for _, text, _ in answers}),
        sum(replayed is None for _, _, replayed in answers), len(readers[0].all("told")) - known]
    # By data: what every reader got, in order.
    told = [[frame["data"] for frame in reader.all("told")] for reader in readers]
    results["told"] = [told[0], all(other == told[0] for other in told)]
    results["started"] = sorted({len(reader.all("session-started", "presence-quiz-monday")) for reader in readers})
    finish(**results)


def cors():
    good, evil = {"Origin": "https://tool.example"}, {"Origin": "https://evil.example"}

    def seen(response):
        return [response.status_code, response.headers.get("Access-Control-Allow-Origin"), response.headers.get("Vary")]

    preflight = http.options(f"{HUB_URL}/apps/1/events", headers={
        **good, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type, idempotency-key, x-pusher-library"},
        timeout=PATIENCE)
    path = "/apps/1/channels"

    def get(headers, signature=True):
        return http.get(HUB_URL + path, params=signed_query("GET", path) if signature else {}, headers=headers, timeout=PATIENCE)

    finish(
        preflight=seen(preflight), methods=preflight.headers["Access-Control-Allow-Methods"],
        headers=preflight.headers["Access-Control-Allow-Headers"].lower().split(", "),
        answer=seen(get(good)), unsigned=seen(get(good, False)), evil=seen(get(evil)), native=seen(get({})),
        later=seen(http.get(f"{HUB_URL}/nothing", headers=good, timeout=PATIENCE)),
        evil_preflight=seen(http.options(HUB_URL + path, headers=evil, timeout=PATIENCE)))


def deprecated():
    reader, other = Socket(), Socket()
    for socket in (reader, other):
        socket.subscribe("presence-old", user="u1")
        socket.subscribe("old")
    data = "{\"raw\": \"ä\"}\n".encode()
    query = {"name": "told", "socket_id": other.socket_id}
    path = "/channels/old/events"
    accepted = signed("POST", path, raw=data, params=query)
    reader.event("told")
    other.pong()
    stats = [expect(signed("GET", f"/channels/{name}/stats")) for name in ("presence-old", "old", "never")]
    finish(
        accepted=[accepted.status_code, accepted.text, accepted.headers["Content-Type"].split(";")[0]],
        data=reader.event("told")["data"] == data.decode(), excluded=len(other.all("told")), stats=stats,
        refused=[sentence(signed("POST", path, raw=data))[0], sentence(signed("GET", path))[0]],
        too_much=sentence(signed("POST", path, raw=b"x" * 10_241, params=query))[0],
        connections=expect(signed("GET", "/connections")))


def refusals():
    def url(path):
        return http.get(HUB_URL + path, timeout=PATIENCE)

    event = {"name": "n", "channel": "c", "data": "d"}
    put = signed("PUT", "/events", event)
    head = signed("HEAD", "/channels")
    expired = signed("GET", "/channels", auth_timestamp=str(int(time.time()) - 600))
    wrong = signed("GET", "/channels", secret="wrong")
    results = {
        "texts": {
            "no_key": sentence(signed("GET", "/channels", auth_key=None)), "key": sentence(signed("GET", "/channels", auth_key="x")),
            "no_version": sentence(signed("GET", "/channels", auth_version=None)), "version": sentence(signed("GET", "/channels", auth_version="2.0")),
            "no_timestamp": sentence(signed("GET", "/channels", auth_timestamp=None))},
        "expired": sentence(expired), "wrong": sentence(wrong), "md5": sentence(signed("POST", "/events", event, body_md5="0" * 32))[0],
        "app": sentence(url("/apps/77/channels")), "route": sentence(url("/nowhere"))[0], "apps": sentence(url("/apps"))[0],
        "method": [sentence(put)[0], put.headers["Allow"]],
        "head": [head.status_code, head.text, int(head.headers["Content-Length"]) > 0],
        "info": sentence(signed("GET", "/channels", params={"info": "colour"}))[0],
        "data": sentence(signed("POST", "/events", {**event, "data": "x" * 10_241})),
        "body": sentence(signed("POST", "/events", raw=b" " * (2 << 20)))[0],
        "query": signed("POST", "/events", raw=b"", params={"name": "n", "channels[]": "c", "data": "d"}).text,
    }
    finish(**results)


{f.__name__: f for f in (idempotency, cors, deprecated, refusals)}[sys.argv[1]]()
