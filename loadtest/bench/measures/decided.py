"""What a publish costs that is decided for each of its recipients: instructions, and what reaches the disk."""

import json
import os
import socket
import time

from callgrind import Counted
from common.http import signed, take_answer
from hub_process import APP, KEY, SECRET, Hub
from publisher import Publisher, request
from strace import Traced

CROWDS = (1, 100)
PUBLISHES_SHORT, PUBLISHES_LONG = 20, 120
# Everybody is away and has no device: a decision that the trail tells, and nothing for a gateway.
DEFINITION = """\
channel: private-crowd-{session}
join: { identity: email }
alerts: { burst: 1000, every: 1s }
events:
  tick:
    to: all
    policy: critical
    ttl: 10m
    notification: { title: "Session started", body: "Question {{n}} is open." }
"""


class Decided:
    """Makes a hub's class one that has sessions of the crowds, and publishes to them."""

    def prepare(self, folder):
        channels = os.path.join(folder, "channels")
        os.makedirs(channels)
        with open(os.path.join(channels, "crowd.yaml"), "w") as file:
            file.write(DEFINITION)
        return [*super().prepare(folder), "--channels", channels]

    def fill(self):
        with socket.create_connection(("127.0.0.1", self.port), timeout=120) as line:
            buffer = bytearray()

            def put(path, value):
                body = json.dumps(value).encode()
                target = signed("PUT", path, body, KEY, SECRET)
                line.sendall(
                    f"PUT {target} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
                while not (answer := take_answer(buffer)):
                    buffer.extend(line.recv(65536))
                if answer[0] not in (200, 201):
                    raise SystemExit(f"bench: PUT {path} was refused: {answer}")

            for count in CROWDS:
                session = f"/apps/{APP}/sessions/s{count}"
                put(session, {"definition": "crowd", "join_code": f"CODE{count}"})
                for number in range(count):
                    put(f"{session}/participants/u{number}", {"name": f"User {number}"})

    def publish(self, crowd, count):
        """One after the other."""
        publisher = Publisher(self.port)
        for number in range(count):
            publisher.ask(request(self.port, [f"private-crowd-s{crowd}"], number, json.dumps({"n": number})))
        publisher.close()


class CountedHub(Decided, Counted, Hub):
    """Every instruction is counted."""


class SyncedHub(Decided, Traced, Hub):
    """Calls that wait for the disk are logged."""

    calls = ("fsync", "fdatasync")


def measure(binary, folder):
    results, profiles = {}, {}
    publishes = PUBLISHES_LONG - PUBLISHES_SHORT
    with CountedHub(binary, os.path.join(folder, "counted")) as hub:
        hub.fill()
        for crowd in CROWDS:
            # Settling comes behind the answer, and is part of the cost.
            def phase(count):
                hub.publish(crowd, count)
                time.sleep(1)
                return hub.take_profile()

            phase(PUBLISHES_SHORT)
            profile = phase(PUBLISHES_LONG) - phase(PUBLISHES_SHORT)
            results[f"decided_instructions_{crowd}"] = profile.total / publishes
            profiles[f"to_{crowd}"] = (profile, publishes)
    with SyncedHub(binary, os.path.join(folder, "synced")) as hub:
        hub.fill()
        for crowd in CROWDS:
            hub.publish(crowd, PUBLISHES_SHORT)
            before = hub.call_count()
            hub.publish(crowd, PUBLISHES_LONG)
            results[f"decided_syncs_{crowd}"] = (hub.call_count() - before) / PUBLISHES_LONG
    return results, profiles
