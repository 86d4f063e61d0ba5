"""One reader that stands still among 10,000: what it does to the server's memory, to its CPU, and to the last delivery."""

import os
import statistics
import time

from common.programs import raise_descriptor_limit
from hub_process import Hub
from publisher import Publisher, request
from subscribers import Subscribers
from workload import Workload, wait_until_steady

READERS = 10_000
ROUNDS = 12
FLOOD_BYTES = 10_000
# limits.send_queue_bytes_max by default: what may wait for one connection.
BOUND_BYTES = 1 << 20


def round_of(hub, load):
    """Seconds from a publish to its last delivery, and the server's CPU seconds of it."""
    cpu, began = sum(hub.user_and_system_seconds()), time.perf_counter()
    for _ in range(5):
        load.rounds(1, 1)
    return (time.perf_counter() - began) / 5, (sum(hub.user_and_system_seconds()) - cpu) / 5


def flood(hub, publisher):
    """Fills the standing reader's socket buffers, and then its queue to just below the bound."""
    waiting, kernel_bytes, sent = 0, -1, 0
    while waiting + 20 * FLOOD_BYTES < BOUND_BYTES:
        for _ in range(10):
            publisher.ask(request(hub.port, ["flood"], sent, "x" * FLOOD_BYTES))
            sent += 1
        now = kernel_waiting(hub)
        waiting = waiting + 10 * FLOOD_BYTES if now == kernel_bytes else 0
        kernel_bytes = now


def kernel_waiting(hub):
    """Bytes that wait in the kernel's send buffers of the hub's port."""
    total = 0
    with open("/proc/net/tcp") as file:
        for line in file.readlines()[1:]:
            fields = line.split()
            if int(fields[1].split(":")[1], 16) == hub.port:
                total += int(fields[4].split(":")[0], 16)
    return total


def measure(binary, folder):
    raise_descriptor_limit(READERS + 200)
    os.makedirs(folder, exist_ok=True)
    with Hub(binary) as hub, Workload(hub, READERS) as load:
        stalled = Subscribers(hub.port, 1, "flood", load.channel, receive_buffer_bytes=4096)
        publisher = Publisher(hub.port)
        try:
            load.rounds(5, 1)
            before = [round_of(hub, load) for _ in range(ROUNDS)]
            memory = wait_until_steady(hub.resident_kilobytes, 64, 30)
            flood(hub, publisher)
            # The hub has ended it meanwhile, because it made no request.
            load.publishers.pop().close()
            after = [round_of(hub, load) for _ in range(ROUNDS)]
            grown = (wait_until_steady(hub.resident_kilobytes, 64, 30) - memory) * 1024
        finally:
            publisher.close()
            stalled.close()
    latency, cpu = ([statistics.median(round[part] for round in rounds) for rounds in (before, after)] for part in (0, 1))
    return {
        "stalled_grown_share": grown / BOUND_BYTES,
        "stalled_latency_ratio": latency[1] / latency[0],
        "stalled_cpu_ratio": cpu[1] / cpu[0],
    }
