"""What goes over the wire: the upgrade, signed and bearer requests. Shares nothing with the hub."""

import base64
import json
import os
import socket
import urllib.parse

from common import http

APP, KEY, SECRET = "1", "surface-key", "surface-secret"


def upgrade(port, client):
    nonce = base64.b64encode(os.urandom(16)).decode()
    return (
        f"GET /app/{KEY}?protocol=7&client={client}&version=8.4.0 HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nSec-WebSocket-Key: {nonce}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode()


def request(method, path, body=b"", headers=()):
    head = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}"]
    return ("\r\n".join(head + [f"{name}: {value}" for name, value in headers]) + "\r\n\r\n").encode() + body


def signed(method, path, body=b"", headers=(), **further):
    """A backend's request."""
    return request(method, http.signed(method, path, body, KEY, SECRET, **further), body, [("Content-Type", "application/json"), *headers])


def authorisation(path, token, **form):
    """An app's request for the signature of a subscription, or of its sign-in."""
    return request(
        "POST", path, urllib.parse.urlencode(form).encode(),
        [("Authorization", f"Bearer {token}"), ("Content-Type", "application/x-www-form-urlencoded")])


class Caller:
    """One keep-alive connection for one thread; asks again on a new one only when the caller does."""

    def __init__(self, port, timeout=10):
        self.port, self.timeout, self.socket = port, timeout, None

    def call(self, data):
        """Returns (status, JSON). Raises OSError when there was no answer: what was asked may have been done all the same."""
        try:
            if self.socket is None:
                self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=self.timeout)
                self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.socket.sendall(data)
            buffer = bytearray()
            while True:
                chunk = self.socket.recv(1 << 18)
                if not chunk:
                    raise ConnectionError("the other side closed")
                buffer += chunk
                answer = http.take_answer(buffer)
                if answer:
                    return answer[0], json.loads(answer[1]) if answer[1] else None
        except OSError:
            self.close()
            raise

    def close(self):
        if self.socket is not None:
            self.socket.close()
            self.socket = None
