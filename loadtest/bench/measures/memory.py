"""Resident bytes of the hub per idle connection and per further subscription, and what the kernel holds for a connection."""

import json
import re
import time

from common.frames import TEXT, client_frame, take_frames
from common.programs import raise_descriptor_limit
from crowd import WAVE, Crowd, SecureHub, TwoLoops, build_crowd
from hub_process import Hub
from subscribers import DeliveryError, Subscribers
from workload import Workload, wait_until_steady

CONNECTIONS = 5000
MANY = 15_000
SPARE_DESCRIPTORS = 200
# Come and publish before the first reading, so that what is made once per process is not counted.
WARM_UP = 10
STEADY_KILOBYTES = 64
STEADY_SECONDS = 30
# By then the hub has given back what the handshakes of a crowd took (MemoryRelief).
RELIEF_SECONDS = 3
SUBSCRIBERS, FURTHER = 2000, 20
NAME_BYTES = 30


def plain(binary):
    with Hub(binary) as hub, Workload(hub, WARM_UP, channel="warm-up") as warm_up:
        warm_up.rounds(10, 1)
        before = wait_until_steady(hub.resident_kilobytes, STEADY_KILOBYTES, STEADY_SECONDS)
        with Workload(hub, CONNECTIONS) as load:
            after = wait_until_steady(hub.resident_kilobytes, STEADY_KILOBYTES, STEADY_SECONDS)
            # They are really subscribed: one event reaches all of them.
            load.rounds(1, 1)
    return (after - before) * 1024 / CONNECTIONS


def subscribe(connection, channels):
    """Returns when the hub has acknowledged all of them; an error when it does not."""
    connection.settimeout(STEADY_SECONDS)
    for channel in channels:
        message = {"event": "pusher:subscribe", "data": {"channel": channel}}
        connection.sendall(client_frame(TEXT, json.dumps(message).encode()))
    buffer, left = bytearray(), len(channels)
    while left > 0:
        chunk = connection.recv(1 << 16)
        if not chunk:
            raise DeliveryError("the hub closed a subscriber")
        buffer += chunk
        left -= sum(json.loads(payload)["event"] == "pusher_internal:subscription_succeeded" for _, payload in take_frames(buffer))


def further(binary, are_shared):
    """Bytes of each further subscription of a connection, without the name's: to channels that all share, or to ones of its own."""
    with Hub(binary) as hub, Workload(hub, WARM_UP, channel="warm-up") as warm_up:
        warm_up.rounds(10, 1)
        subscribers = Subscribers(hub.port, SUBSCRIBERS, "bench")
        try:
            before = wait_until_steady(hub.resident_kilobytes, STEADY_KILOBYTES, STEADY_SECONDS)
            for index, subscriber in enumerate(subscribers.by_descriptor.values()):
                whose = 0 if are_shared else index
                subscribe(subscriber.socket, [f"room-{whose}-{place}-".ljust(NAME_BYTES, "x") for place in range(FURTHER)])
            after = wait_until_steady(hub.resident_kilobytes, STEADY_KILOBYTES, STEADY_SECONDS)
        finally:
            subscribers.close()
    return (after - before) * 1024 / (SUBSCRIBERS * FURTHER) - NAME_BYTES


def slab_bytes():
    with open("/proc/meminfo") as file:
        return int(re.search(r"Slab:\s+(\d+) kB", file.read()).group(1)) * 1024


def crowded(kind, binary, crowd_binary, count, wave, *options):
    """Resident bytes per connection, and the kernel's, of which the machine has two for each: the client's end and the server's."""
    with kind(binary) as hub, Crowd(crowd_binary, hub.port, "private-warm-up", *options) as first:
        first.come(WARM_UP)
        before = wait_until_steady(hub.resident_kilobytes, STEADY_KILOBYTES, STEADY_SECONDS)
        slab = slab_bytes()
        with Crowd(crowd_binary, hub.port, "private-idle", *options) as crowd:
            crowd.come(count, wave)
            time.sleep(RELIEF_SECONDS)
            after = wait_until_steady(hub.resident_kilobytes, STEADY_KILOBYTES, STEADY_SECONDS)
            slab = slab_bytes() - slab
        hub.kill()
    return (after - before) * 1024 / count, slab / (2 * count)


def measure(binary, folder):
    raise_descriptor_limit(CONNECTIONS + SPARE_DESCRIPTORS)
    crowd_binary = build_crowd(folder)
    results = {
        "bytes_per_idle_connection": plain(binary),
        "bytes_per_further_subscription": further(binary, are_shared=True),
        "bytes_per_channel_of_one": further(binary, are_shared=False),
    }
    results["bytes_per_idle_tls_connection"], _ = crowded(SecureHub, binary, crowd_binary, CONNECTIONS, WAVE, "tls")
    results["bytes_per_idle_tls_connection_at_once"], _ = crowded(SecureHub, binary, crowd_binary, CONNECTIONS, None, "tls")
    raise_descriptor_limit(MANY + SPARE_DESCRIPTORS)
    results["bytes_per_idle_connection_15000"], results["kernel_bytes_per_socket"] = crowded(TwoLoops, binary, crowd_binary, MANY, WAVE)
    return results
