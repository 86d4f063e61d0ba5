"""A WebSocket client of one thread, as far as these measurements need it."""

import base64
import hashlib
import hmac
import json
import os
import socket

from common.frames import TEXT, client_frame, take_frames
from common.programs import fail
from hubs import KEY, SECRET

SECONDS = 30


class Client:
    """Connected, and greeted by the hub."""

    def __init__(self, port):
        self.socket, self.buffer, self.waiting = socket.create_connection(("127.0.0.1", port), timeout=SECONDS), bytearray(), []
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        nonce = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET /app/{KEY}?protocol=7&client=nodes&version=1.0 HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {nonce}\r\n\r\n".encode())
        while (end := self.buffer.find(b"\r\n\r\n")) < 0:
            self._receive()
        del self.buffer[:end + 4]
        self.socket_id = json.loads(self.await_event("pusher:connection_established")["data"])["socket_id"]

    def _receive(self):
        data = self.socket.recv(1 << 18)
        if not data:
            fail("a node closed a connection")
        self.buffer += data

    def read(self):
        """The next message."""
        while not self.waiting:
            self.waiting = [json.loads(payload) for opcode, payload in take_frames(self.buffer) if opcode == TEXT]
            if not self.waiting:
                self._receive()
        return self.waiting.pop(0)

    def await_event(self, name):
        """The next message of this name; others are passed over."""
        while (message := self.read())["event"] != name:
            if message["event"] == "pusher:error":
                fail(f"a node refused something: {message}")
        return message

    def subscribe(self, channel, user=None):
        """Asks only; a presence channel needs a user."""
        data, signed = {"channel": channel}, f"{self.socket_id}:{channel}"
        if user:
            data["channel_data"] = json.dumps({"user_id": user})
            signed += f":{data['channel_data']}"
        data["auth"] = f"{KEY}:{hmac.new(SECRET.encode(), signed.encode(), hashlib.sha256).hexdigest()}"
        self.socket.sendall(client_frame(TEXT, json.dumps({"event": "pusher:subscribe", "data": data}).encode()))

    def close(self):
        self.socket.close()
