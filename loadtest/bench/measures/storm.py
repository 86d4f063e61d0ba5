"""Ten thousand clients dropped at once and back at once, and what a publisher notices of it; then SIGTERM with all of them there."""

import os
import signal
import threading
import time

from common.programs import raise_descriptor_limit
from crowd import Crowd, TwoLoops, build_crowd
from publisher import Publisher, request
from report import Spread

CLIENTS = 10_000
STORMS = 5
EXIT_SECONDS_MAX = 15


class Publishing:
    """A second publisher, one request after the other, in a thread of its own."""

    def __init__(self, hub):
        self.hub = hub
        self.milliseconds = []
        self.is_over = False
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        publisher, sequence = Publisher(self.hub.port), 0
        while not self.is_over:
            bytes_of_request = request(self.hub.port, ["nobody-is-here"], sequence)
            sequence += 1
            began = time.monotonic()
            publisher.ask(bytes_of_request)
            self.milliseconds.append((time.monotonic() - began) * 1e3)
            time.sleep(0.001)
        publisher.close()

    def take(self):
        taken, self.milliseconds = sorted(self.milliseconds), []
        return taken

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, kind, error, trace):
        self.is_over = True
        self.thread.join()


def storm(hub, crowd, publishing):
    """All gone and all back: seconds until the last is subscribed, the publisher's latencies, the hub's CPU for each client."""
    publishing.take()
    before = hub.cpu_seconds()
    began = time.monotonic()
    crowd.tell("drop")
    crowd.come(CLIENTS)
    seconds = time.monotonic() - began
    latencies = publishing.take()
    return {
        "seconds": seconds, "per_second": CLIENTS / seconds, "cpu": (hub.cpu_seconds() - before) / CLIENTS * 1e6,
        "p50": latencies[len(latencies) // 2], "p99": latencies[int(len(latencies) * 0.99)], "max": latencies[-1]}


def drain(hub, crowd):
    began = time.monotonic()
    crowd.begin("drain")
    os.kill(hub.pid, signal.SIGTERM)
    answer = crowd.answer(EXIT_SECONDS_MAX)
    code = hub.process.wait(EXIT_SECONDS_MAX)
    if code != 0 or answer["with_4200"] != CLIENTS:
        raise SystemExit(f"bench: SIGTERM ended with {code}, and {answer['with_4200']} of {CLIENTS} clients were told 4200")
    return answer["last_seconds"], time.monotonic() - began


def measure(binary, folder):
    raise_descriptor_limit(CLIENTS + 200)
    crowd_binary = build_crowd(folder)
    # Not as a context: the hub ends by the SIGTERM that is measured.
    hub = TwoLoops(binary)
    try:
        with Crowd(crowd_binary, hub.port, "private-crowd") as crowd:
            with Publishing(hub) as publishing:
                crowd.come(CLIENTS)
                resident = hub.resident_kilobytes()
                storms = [storm(hub, crowd, publishing) for _ in range(STORMS)]
                growth = hub.resident_kilobytes() / resident
            last, exited = drain(hub, crowd)
    finally:
        hub.kill()
    rows = {name: Spread.of(row[name] for row in storms) for name in storms[0]}
    return {
        "storm_seconds": rows["seconds"], "storm_clients_per_second": rows["per_second"], "storm_cpu_microseconds": rows["cpu"],
        "storm_publish_ms_p50": rows["p50"], "storm_publish_ms_p99": rows["p99"], "storm_publish_ms_max": rows["max"],
        "storm_memory_growth": growth, "drain_last_seconds": last, "drain_exit_seconds": exited,
    }
