"""How a hub ends: what connected clients are told."""

import sys

from protocol_bytes import raw_upgrade
from tandem_client import *


def probes():
    finish(
        health=[http.get(f"{HUB_URL}/health").status_code, http.get(f"{HUB_URL}/health").json()],
        ready=[http.get(f"{HUB_URL}/ready").status_code, http.get(f"{HUB_URL}/ready").json()],
        posted=[refusal("POST", f"{path}") for path in ("/health", "/ready")], plain=refusal("GET", "/app/app-key"))


def refusal(method, path):
    """Status, error, and what the headers say to do instead."""
    answer = http.request(method, HUB_URL + path, timeout=PATIENCE)
    return [answer.status_code, answer.json()["error"], answer.headers.get("Allow") or answer.headers.get("Upgrade")]


def unreadiness():
    """Status and body of what `/ready` answers, once it is not 200."""
    answer = http.get(f"{HUB_URL}/ready", timeout=PATIENCE)
    return [answer.status_code, answer.json()] if answer.status_code != 200 else None


def drain():
    """SIGTERM: not ready any more, error and close 4200 for everybody."""
    clients = [Socket() for _ in range(6)]
    for client in clients:
        client.subscribe("news")
    # It never answers the close frame and so keeps the hub waiting for a moment.
    slow = raw_upgrade()
    # This connection was there before and stays usable; new ones are not let in.
    check(http.get(f"{HUB_URL}/ready", timeout=PATIENCE).status_code == 200, "ready")
    os.kill(int(os.environ["HUB_PID"]), signal.SIGTERM)
    unready = wait_for(unreadiness, "the hub to be unready")
    codes = [client.closed() for client in clients]
    finish(
        unready=unready, codes=codes, reasons=sorted({client.close_reason for client in clients}),
        errors=[[frame["data"]["code"] for frame in client.all("pusher:error")] for client in clients], slow=slow.fileno() >= 0)


def half_sent():
    """A request whose body has come in part when the hub begins to end, and one that comes then."""
    import socket as sockets
    body = json.dumps({"join_code": "NONE12", "name": "Ben"}).encode()
    slow = sockets.create_connection(("127.0.0.1", HUB_PORT), timeout=PATIENCE)
    slow.sendall(b"POST /games/join HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body[:5])
    check(http.get(f"{HUB_URL}/health", timeout=PATIENCE).status_code == 200, "a connection from before")
    os.kill(int(os.environ["HUB_PID"]), signal.SIGTERM)

    def refused():
        answer = http.post(f"{HUB_URL}/games/join", json={}, timeout=PATIENCE)
        return answer.json() if answer.status_code == 503 else None

    late = wait_for(refused, "the hub to refuse what is new")
    slow.sendall(body[5:])
    finish(late=late["error"], slow=slow.recv(4096).decode().split("\r\n")[0])


def impatient():
    """The second SIGTERM ends the hub at once."""
    # It never answers the close frame and so keeps the hub waiting for a moment.
    slow = raw_upgrade()
    pid = int(os.environ["HUB_PID"])
    os.kill(pid, signal.SIGTERM)
    wait_for(lambda: "stopping" in open(os.environ["HUB_LOG"]).read(), "the first signal to be noticed")
    os.kill(pid, signal.SIGTERM)
    finish(slow=slow.fileno() >= 0)


def strangers():
    """Two hundred connections that speak another protocol, or stop in the middle, or are reset."""
    import socket as sockets
    import struct
    for number in range(200):
        connection = sockets.create_connection(("127.0.0.1", HUB_PORT), timeout=PATIENCE)
        texts = (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x07" * 508, b"\x00" * 300, b"SSH-2.0-x\r\n", b"")
        if text := texts[number % 5]:
            connection.sendall(text)
        if number % 2:
            connection.setsockopt(sockets.SOL_SOCKET, sockets.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
    finish(served=http.get(f"{HUB_URL}/health", timeout=PATIENCE).status_code == 200)


def full_disk():
    """No file of the hub may grow any more; then they may again, and nobody publishes anything."""
    import resource
    pid = int(os.environ["HUB_PID"])
    channel = "presence-quiz-monday"
    create_session("monday", "ABC123")
    ben = join("ABC123", "Ben")

    def publish():
        event = {"name": "session-started", "channel": channel, "data": json.dumps({"filler": "x" * 8000})}
        return signed("POST", "/events", event)

    def brief(answer):
        return [answer.status_code, answer.headers.get("Retry-After"), bool(answer.json()["error"])]

    accepted = [expect(publish())["event_id"] for _ in range(20)]
    began = time.monotonic()
    unlimited = resource.prlimit(pid, resource.RLIMIT_FSIZE, (os.stat(os.environ["STORE"] + "-wal").st_size, resource.RLIM_INFINITY))
    # Calls go on while it fails, as backends' do: each is refused, and each is one failure more.
    refused = [brief(publish()) for _ in range(40)]
    unready = wait_for(unreadiness, "the hub to be unready")
    device = {"token": fcm_token("b"), "platform": "android"}
    routes = [
        brief(http.post(f"{HUB_URL}/games/join", json={"join_code": "ABC123", "name": "Cleo", "email": "cleo@example.com"}, timeout=PATIENCE)),
        brief(http.put(f"{HUB_URL}/me/device", json=device, headers=bearer(ben), timeout=PATIENCE)),
        brief(signed("PUT", "/users/u1/devices/phone", device)), brief(signed("PUT", "/sessions/tuesday", {"definition": "quiz", "attributes": {}}))]
    socket_only = signed("POST", "/events", {"name": "greeting", "channel": "news", "data": "{}"}).status_code
    seconds = time.monotonic() - began
    resource.prlimit(pid, resource.RLIMIT_FSIZE, unlimited)
    wait_for(lambda: http.get(f"{HUB_URL}/ready", timeout=PATIENCE).status_code == 200, "the hub to be ready again by itself")
    again = publish()
    accepted.append(again.json().get("event_id"))
    stored, after = [], 0
    while page := expect(signed("GET", f"/channels/{channel}/history", params={"after": str(after), "limit": "100"}))["events"]:
        stored += page
        after = page[-1]["sequence"]
    known = {event["event_id"] for event in stored}
    finish(
        refused=refused, unready=[unready[0], unready[1]["error"]], routes=routes, socket_only=socket_only, ready_again=200,
        published_again=again.status_code, missing=len(set(accepted) - known), beyond=len(known - set(accepted)),
        gaps=sum(later["sequence"] != earlier["sequence"] + 1 for earlier, later in zip(stored, stored[1:])), seconds=int(seconds) + 1)


{f.__name__: f for f in (probes, drain, half_sent, impatient, strangers, full_disk)}[sys.argv[1]]()
