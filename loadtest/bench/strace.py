"""The hub under strace: how often it calls the kernel by certain names, all threads together."""

import os
import re
import time

LOG_SECONDS = 30


class Traced:
    """Makes the class of a hub one whose calls are logged, one line each, without what is written. `calls` are their names."""

    calls = ()

    def __init__(self, binary, folder):
        os.makedirs(folder, exist_ok=True)
        self.log = os.path.join(folder, "strace.txt")
        # strace -f writes `PID call(...`; a call that another thread interrupts has a second line, `PID <... call resumed>`.
        self.line = re.compile(rb"^\d+ +(?:%s)\(" % "|".join(self.calls).encode(), re.MULTILINE)
        prefix = ["strace", "-f", "-s", "0", "-o", self.log, "-e", "signal=none", "-e", "trace=" + ",".join(self.calls)]
        super().__init__(binary, prefix=prefix)

    def call_count(self):
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
            return len(self.line.findall(file.read()))
