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


{f.__name__: f for f in (probes, drain, impatient, strangers)}[sys.argv[1]]()
