"""Signed publishes over HTTP keep-alive connections, each with at most one request in flight."""

import json
import socket

from common.http import signed, take_answer
from hub_process import APP, KEY, SECRET
from subscribers import DeliveryError

# With the frame's header and JSON around it, some 128 bytes on the wire: the size of the peers' published figures.
DATA_BYTES = 80


def request(port, channels, sequence, data=None):
    """The bytes of one publish (head and body in one piece) of event `tick` on these channels, whose data begins with `sequence` or is `data`."""
    data = data or f"{sequence:08d}:".ljust(DATA_BYTES, "x")
    body = json.dumps({"name": "tick", "channels": channels, "data": data}).encode()
    path = signed("POST", f"/apps/{APP}/events", body, KEY, SECRET)
    # Headers and their order are those of an official library (pusher-http-node), because every server pays for reading them.
    head = (
        f"POST {path} HTTP/1.1\r\nContent-Type: application/json\r\n"
        "X-Pusher-Library: pusher-http-node 5.2.0\r\nAccept: */*\r\n"
        f"Content-Length: {len(body)}\r\nUser-Agent: node-fetch/1.0 (+https://github.com/bitinn/node-fetch)\r\n"
        f"Accept-Encoding: gzip,deflate\r\nConnection: keep-alive\r\nHost: 127.0.0.1:{port}\r\n\r\n")
    return head.encode() + body


class Publisher:
    """One keep-alive connection."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray()

    def fileno(self):
        return self.socket.fileno()

    def send(self, request_bytes):
        self.socket.sendall(request_bytes)

    def ask(self, request_bytes):
        self.send(request_bytes)
        self.finish()

    def finish(self):
        """Waits until the answer is complete."""
        while not self.receive():
            pass

    def receive(self):
        """Takes what has arrived (waits when nothing has); True: the answer is complete, and it was 200."""
        chunk = self.socket.recv(65536)
        if not chunk:
            raise DeliveryError("the server closed a publisher")
        self.buffer += chunk
        answer = take_answer(self.buffer)
        if answer and answer[0] != 200:
            raise DeliveryError(f"a publish was refused: {answer}")
        return answer is not None

    def close(self):
        self.socket.close()
