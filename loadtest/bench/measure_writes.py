"""Write calls per delivery, as the kernel sees them: strace on all threads."""

import os
import re
import time

from hub_process import Hub
from workload import Workload

CALLS = ("write", "writev", "sendto", "sendmsg")
MANY = 1000
ROUNDS = 20
OUTSTANDING = 16
LOG_SECONDS = 30
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


def measure(binary, folder):
    with CountedHub(binary, folder) as hub, Workload(hub, MANY) as load:
        return {
            "writes_per_delivery": per_delivery(hub, load, 1),
            "writes_per_delivery_16": per_delivery(hub, load, OUTSTANDING),
        }
