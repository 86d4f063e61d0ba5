"""The kernel's figures of a process, from /proc."""

import os
import re
import signal
import time

from common.programs import fail

TICKS = os.sysconf("SC_CLK_TCK")


def _fields(path):
    """The fields of a `stat` file after the program's name."""
    with open(path) as file:
        return file.read().rsplit(")", 1)[1].split()


def _name(path):
    with open(path) as file:
        return file.read().strip()


def cpu_seconds(pid, thread=None):
    """User and system seconds of all threads, or of one."""
    fields = _fields(f"/proc/{pid}/task/{thread}/stat" if thread else f"/proc/{pid}/stat")
    return int(fields[11]) / TICKS, int(fields[12]) / TICKS


def threads(pid):
    """Each thread's number and name, but of those that end meanwhile."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            yield thread, _name(f"/proc/{pid}/task/{thread}/comm")
        except OSError:
            continue


def child_named(pid, name):
    """The child of that name; None: there is none."""
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return next((int(child) for child in file.read().split() if _name(f"/proc/{child}/comm") == name), None)


def kilobytes(pid, row):
    """A row of the process's `status`: VmRSS is resident memory, VmHWM the most of it so far."""
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(rf"{row}:\s+(\d+) kB", file.read()).group(1))


def freeze(pid, what, seconds=10):
    """Stops every thread; returns when all of them stand."""
    os.kill(pid, signal.SIGSTOP)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if all(_fields(f"/proc/{pid}/task/{thread}/stat")[0] in "Tt" for thread in os.listdir(f"/proc/{pid}/task")):
            return
        time.sleep(0.001)
    fail(f"{what} could not be stopped for a moment")
