#!/usr/bin/env python3
"""Time from a commit of `tandem.publish` to the frame on a subscriber's socket, in milliseconds: p50, p99 and longest.

    Tests/StoreTests/postgres.sh python3 Tests/StoreTests/sql_latency.py [PUBLISHES]

Needs `psql` and .build/release/tandem, or the program that TANDEM names.
"""

import base64
import json
import os
import socket
import subprocess
import sys
import tempfile
import time


class Socket:
    """A WebSocket that reads text frames, as far as this measurement needs it."""

    def __init__(self, port):
        self.stream = socket.create_connection(("127.0.0.1", port), timeout=10)
        key = base64.b64encode(os.urandom(16)).decode()
        self.stream.sendall(
            f"GET /app/app-key?protocol=7 HTTP/1.1\r\nHost: localhost:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        self.file = self.stream.makefile("rb")
        while self.file.readline().strip():
            pass

    def read(self):
        """The next text frame, decoded."""
        while True:
            first, second = self.file.read(2)
            length = second & 0x7F
            if length == 126:
                length = int.from_bytes(self.file.read(2), "big")
            payload = self.file.read(length)
            if first & 0x0F == 1:
                return json.loads(payload)

    def say(self, message):
        data, mask = json.dumps(message).encode(), os.urandom(4)
        self.stream.sendall(bytes([0x81, 0x80 | len(data)]) + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(data)))


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    address = os.environ["TANDEM_TEST_POSTGRES"]
    with tempfile.TemporaryDirectory() as folder:
        hub = subprocess.Popen(
            [os.environ.get("TANDEM", ".build/release/tandem"), "serve", "--port", "0", "--data", folder, "--log-level", "error"],
            stdout=subprocess.PIPE, env=dict(os.environ, TANDEM_STORE=address))
        try:
            port = int(hub.stdout.readline().decode().rsplit(":", 1)[1])
            client = Socket(port)
            client.read()
            client.say({"event": "pusher:subscribe", "data": {"channel": "news"}})
            assert "subscription_succeeded" in client.read()["event"]
            shell = subprocess.Popen(
                ["psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--dbname", address], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, text=True, bufsize=1)
            took = []
            for number in range(count):
                shell.stdin.write(f"SELECT tandem.publish('1', 'news', 'told', '{number}');\n")
                shell.stdin.flush()
                # The answer of the statement is that of its commit.
                assert shell.stdout.readline().strip()
                committed = time.monotonic()
                frame = client.read()
                assert frame["event"] == "told" and frame["data"] == str(number), frame
                took.append(max(0.0, (time.monotonic() - committed) * 1000))
                time.sleep(0.01)
            took.sort()
            print(f"{count} publishes: p50 {took[count // 2]:.1f} ms, p99 {took[count * 99 // 100]:.1f} ms, longest {took[-1]:.1f} ms")
        finally:
            hub.terminate()
            hub.wait(20)


if __name__ == "__main__":
    main()
