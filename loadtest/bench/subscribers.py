"""Many WebSocket subscribers of the same channels, in one thread: counts and compares what each of them receives."""

import base64
import json
import os
import select
import socket
import time
import zlib

from common.frames import TEXT, client_frame, take_frames
from hub_process import KEY

READ_BYTES = 1 << 18
# Connections whose handshake is under way at the same time: below the kernel's backlog by far.
HANDSHAKES_MAX = 200


class DeliveryError(Exception):
    """The hub did not do what is being measured."""


class Subscriber:
    __slots__ = ("socket", "byte_count", "checksum")

    def __init__(self, connection):
        self.socket = connection
        self.byte_count = 0
        self.checksum = 0


class Subscribers:
    """All have subscribed when `__init__` returns. From then on, the hub owes every one of them the same bytes."""

    def __init__(self, port, count, *channels, seconds=300, receive_buffer_bytes=None):
        self.channels = channels
        self.receive_buffer_bytes = receive_buffer_bytes
        self.poll = select.epoll()
        self.by_descriptor = {}
        self.leader_stream = bytearray()
        self.leader_sequences = []
        deadline = time.monotonic() + seconds
        try:
            for first in range(0, count, HANDSHAKES_MAX):
                self._connect(port, min(HANDSHAKES_MAX, count - first), deadline)
        except BaseException:
            self.close()
            raise
        self.leader = next(iter(self.by_descriptor.values()))
        self.received_bytes = 0

    def _connect(self, port, count, deadline):
        waiting = {}
        for _ in range(count):
            connection = socket.socket()
            if self.receive_buffer_bytes:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.receive_buffer_bytes)
            connection.settimeout(60)
            connection.connect(("127.0.0.1", port))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            nonce = base64.b64encode(os.urandom(16)).decode()
            connection.sendall(
                f"GET /app/{KEY}?protocol=7&client=bench&version=1.0 HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
                f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {nonce}\r\n\r\n".encode())
            waiting[connection.fileno()] = [connection, bytearray(), "upgrade"]
            connection.setblocking(False)
            self.poll.register(connection, select.EPOLLIN)
            self.by_descriptor[connection.fileno()] = Subscriber(connection)
        while waiting:
            if time.monotonic() > deadline:
                raise DeliveryError(f"{len(waiting)} subscribers did not get through in time")
            for descriptor, _ in self.poll.poll(1):
                entry = waiting[descriptor]
                chunk = entry[0].recv(READ_BYTES)
                if not chunk:
                    raise DeliveryError("the hub closed a connection during the handshake")
                entry[1] += chunk
                if self._advance(entry):
                    del waiting[descriptor]

    def _advance(self, entry):
        """One step of upgrade, pusher:connection_established, pusher:subscribe; True: subscribed."""
        connection, buffer, phase = entry
        if phase == "upgrade":
            end = buffer.find(b"\r\n\r\n")
            if end < 0:
                return False
            if not buffer.startswith(b"HTTP/1.1 101"):
                raise DeliveryError(f"the upgrade was refused: {bytes(buffer[:200])!r}")
            del buffer[:end + 4]
            entry[2] = "established"
        for opcode, payload in take_frames(buffer):
            event = json.loads(payload)["event"] if opcode == 1 else f"opcode {opcode}"
            if entry[2] == "established" and event == "pusher:connection_established":
                for channel in self.channels:
                    connection.sendall(client_frame(TEXT, json.dumps({"event": "pusher:subscribe", "data": {"channel": channel}}).encode()))
                entry[2] = len(self.channels)
            elif entry[2] in range(1, len(self.channels) + 1) and event == "pusher_internal:subscription_succeeded":
                entry[2] -= 1
                if entry[2] == 0:
                    return True
            else:
                raise DeliveryError(f"unexpected {event} before the subscription was acknowledged")
        return False

    def __len__(self):
        return len(self.by_descriptor)

    def read(self, seconds):
        """Takes what has arrived."""
        for descriptor, _ in self.poll.poll(seconds):
            subscriber = self.by_descriptor[descriptor]
            chunk = subscriber.socket.recv(READ_BYTES)
            if not chunk:
                raise DeliveryError("the hub closed a subscriber")
            subscriber.byte_count += len(chunk)
            subscriber.checksum = zlib.crc32(chunk, subscriber.checksum)
            self.received_bytes += len(chunk)
            if subscriber is self.leader:
                self.leader_stream += chunk
                self._note_events()

    def _note_events(self):
        """One stream is parsed; the others only have to equal it."""
        for opcode, payload in take_frames(self.leader_stream):
            message = json.loads(payload) if opcode == 1 else {"event": f"opcode {opcode}"}
            if message["event"] != "tick" or message.get("channel") not in self.channels:
                raise DeliveryError(f"unexpected {message['event']} among the deliveries")
            self.leader_sequences.append(int(message["data"].split(":", 1)[0]))

    def wait_for(self, publishes, seconds):
        """Returns when every subscriber has everything of `publishes` events in all; an error says what is missing."""
        deadline = time.monotonic() + seconds
        while not (
            len(self.leader_sequences) == publishes and not self.leader_stream
            and self.received_bytes == self.leader.byte_count * len(self)
        ):
            if len(self.leader_sequences) > publishes:
                raise DeliveryError(f"{len(self.leader_sequences)} events arrived and {publishes} were published")
            if time.monotonic() > deadline:
                missing = self.leader.byte_count * len(self) - self.received_bytes
                raise DeliveryError(
                    f"deliveries are missing: one subscriber has {len(self.leader_sequences)} of {publishes} events, and the others "
                    f"together have {missing} bytes fewer than it")
            self.read(0.2)

    def verify(self, sequences):
        """Everybody got exactly these events, each once, in the same order, byte for byte. Returns the number of deliveries."""
        if sorted(self.leader_sequences) != sorted(sequences):
            raise DeliveryError("the events that arrived are not the events that were published")
        for subscriber in self.by_descriptor.values():
            if subscriber.byte_count != self.leader.byte_count or subscriber.checksum != self.leader.checksum:
                raise DeliveryError("subscribers of one channel received different bytes")
        return len(sequences) * len(self)

    def close(self):
        for subscriber in self.by_descriptor.values():
            subscriber.socket.close()
        self.poll.close()
