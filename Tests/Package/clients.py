"""Thousands of clients of Pusher's protocol, on one loop: they subscribe, hear, and come back as client libraries do."""

import asyncio
import json
import random
import threading
import time

CHANNEL = "news"


class Client:
    def __init__(self, crowd):
        self.crowd = crowd
        self.is_subscribed = False
        self.events = 0
        self.left_at = None
        self.away = 0.0

    async def run(self):
        while not self.crowd.is_over:
            try:
                await self.connect()
            except (OSError, asyncio.IncompleteReadError, ValueError):
                self.crowd.failures += self.left_at is not None
            if self.is_subscribed:
                self.left_at = time.monotonic()
            self.is_subscribed = False
            await asyncio.sleep(random.uniform(0.1, 1))

    async def connect(self):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.crowd.port)
        try:
            writer.write(
                f"GET /app/{self.crowd.key}?protocol=7&client=js&version=8 HTTP/1.1\r\nHost: hub\r\nUpgrade: websocket\r\n"
                "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            if b" 101 " not in head.split(b"\r\n")[0]:
                raise ValueError(head)
            while True:
                code, data = await self.frame(reader)
                if code == 8:
                    self.crowd.closes[int.from_bytes(data[:2], "big")] = self.crowd.closes.get(int.from_bytes(data[:2], "big"), 0) + 1
                    return
                if code == 9:
                    self.send(writer, 10, data)
                elif code == 1:
                    self.heard(writer, json.loads(data))
        finally:
            writer.close()

    def heard(self, writer, message):
        event = message["event"]
        if event == "pusher:connection_established":
            self.send(writer, 1, json.dumps({"event": "pusher:subscribe", "data": {"channel": CHANNEL}}).encode())
        elif event == "pusher_internal:subscription_succeeded":
            self.is_subscribed = True
            if self.left_at is not None:
                self.away = max(self.away, time.monotonic() - self.left_at)
        elif event == "pusher:ping":
            self.send(writer, 1, b'{"event":"pusher:pong","data":{}}')
        elif not event.startswith("pusher"):
            self.events += 1

    @staticmethod
    async def frame(reader):
        first, second = await reader.readexactly(2)
        length = second & 127
        if length >= 126:
            length = int.from_bytes(await reader.readexactly(2 if length == 126 else 8), "big")
        return first & 15, await reader.readexactly(length)

    @staticmethod
    def send(writer, code, data):
        length = bytes([128 | len(data)]) if len(data) < 126 else bytes([254]) + len(data).to_bytes(2, "big")
        writer.write(bytes([128 | code]) + length + bytes(4) + data)


class Crowd:
    """Clients on a thread of their own."""

    def __init__(self, port, key, count):
        self.port, self.key, self.count = port, key, count
        self.is_over = False
        self.failures = 0
        self.closes = {}
        self.clients = [Client(self) for _ in range(count)]
        self.thread = threading.Thread(target=lambda: asyncio.run(self.run()), daemon=True)
        self.thread.start()

    async def run(self):
        async def later(client):
            await asyncio.sleep(random.uniform(0, 2))
            await client.run()

        tasks = [asyncio.create_task(later(client)) for client in self.clients]
        while not self.is_over:
            await asyncio.sleep(0.05)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def subscribed(self):
        return sum(client.is_subscribed for client in self.clients)

    def heard(self, count):
        """Clients that have heard so many events."""
        return sum(client.events == count for client in self.clients)

    def end(self):
        self.is_over = True
        self.thread.join(10)
