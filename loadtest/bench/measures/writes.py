"""Write calls per delivery, as the kernel sees them: strace on all threads."""

import os
import re
import time

from hub_process import Hub
from publisher import Publisher, request
from subscribers import Subscribers
from workload import ROUND_SECONDS, Workload

CALLS = ("write", "writev", "sendto", "sendmsg")
MANY = 1000
ROUNDS = 20
OUTSTANDING = 16
LOG_SECONDS = 30
# Channels that each connection is in, and connections, when several channels have events in one turn.
CHANNELS, CONNECTIONS = 10, 200
# strace -f writes `PID call(...`; a call that another thread interrupts has a second line, `PID <... call resumed>`.
CALL = re.compile(rb"^\d+ +(?:%s)\(" % "|".join(CALLS).encode(), re.MULTILINE)


class CountedHub(Hub):
    """A hub whose write calls are logged, one line each, without what is written."""

    def __init__(self, binary, folder):
        os.makedirs(folder, exist_ok=True)
        self.log = os.path.join(folder, "strace.txt")
        prefix = ["strace", "-f", "-s", "0", "-o", self.log, "-e", "signal=none", "-e", "trace=" + ",".join(CALLS)]
        super().__init__(binary, prefix=prefix)

    def write_calls(self):
        """The calls so far, once the log has stopped growing."""
        deadline = time.monotonic() + LOG_SECONDS
        size = -1
        while time.monotonic() < deadline:
            new = os.path.getsize(self.log)
            if new == size:
                break
            size = new
            time.sleep(0.5)
        with open(self.log, "rb") as file:
            return len(CALL.findall(file.read()))


def per_delivery(hub, load, outstanding):
    load.rounds(2, outstanding)
    before = hub.write_calls()
    deliveries = load.rounds(ROUNDS, outstanding)
    calls = hub.write_calls() - before
    if not calls:
        raise SystemExit(f"bench: strace saw no write calls; see {hub.log}")
    # Every publish has one answer to its publisher, which is no delivery.
    return (calls - ROUNDS * outstanding) / deliveries


def over_several_channels(hub):
    """Write calls per delivery when all the channels of a connection have an event in the same turn."""
    channels = [f"part-{number}" for number in range(CHANNELS)]
    subscribers, publisher = Subscribers(hub.port, CONNECTIONS, *channels), Publisher(hub.port)
    try:
        sequences = []
        before = hub.write_calls()
        for sequence in range(ROUNDS):
            publisher.ask(request(hub.port, channels, sequence))
            sequences += [sequence] * CHANNELS
            subscribers.wait_for(len(sequences), ROUND_SECONDS)
        return (hub.write_calls() - before - ROUNDS) / subscribers.verify(sequences)
    finally:
        publisher.close()
        subscribers.close()


def measure(binary, folder):
    with CountedHub(binary, folder) as hub, Workload(hub, MANY) as load:
        results = {
            "writes_per_delivery": per_delivery(hub, load, 1),
            "writes_per_delivery_16": per_delivery(hub, load, OUTSTANDING),
        }
    with CountedHub(binary, folder) as hub:
        results["writes_per_delivery_channels"] = over_several_channels(hub)
    return results
