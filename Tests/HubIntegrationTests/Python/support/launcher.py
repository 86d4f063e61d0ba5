"""Runs the scripts of the folders beside this one for the tests, each in a process of its own that begins with the packages loaded.

Reads requests, one line of JSON each, until the end of standard input:
    {"script": PATH, "scenario": WORD, "folder": PATH, "environment": {…}, "files": PATH}     starts one
    {"end": PATH}                                                                             ends the one with these files
Output goes to FILES.out and FILES.err. FILES.end comes last and holds the exit code, below 0 for a signal.
"""

import json
import os
import runpy
import select
import signal
import sys

# Loading these takes longer than most scripts.
import pusher  # noqa: F401
import pysher.channel  # noqa: F401
import requests  # noqa: F401
import websockets.sync.client  # noqa: F401


def requested():
    """The next request for a script, in a process made for it; nothing at the end of standard input."""
    # Whoever starts this may have blocked them all, as threads of Swift's pool do.
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running, buffer = {}, b""
    while True:
        ready, _, _ = select.select([0, woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            while running:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                files = running.pop(pid)
                with open(files + ".part", "w") as end:
                    end.write(str(os.waitstatus_to_exitcode(status)))
                # Whoever sees it may read it.
                os.rename(files + ".part", files + ".end")
        if 0 not in ready:
            continue
        part = os.read(0, 1 << 16)
        if not part:
            for pid in running:
                os.kill(pid, signal.SIGKILL)
            return None
        *lines, buffer = (buffer + part).split(b"\n")
        for line in lines:
            request = json.loads(line)
            if "end" in request:
                for pid, files in running.items():
                    if files == request["end"]:
                        os.kill(pid, signal.SIGKILL)
                continue
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                os.close(woken)
                os.close(wake)
                return request
            running[pid] = request["files"]


if request := requested():
    for descriptor, name in ((0, os.devnull), (1, request["files"] + ".out"), (2, request["files"] + ".err")):
        file = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(file, descriptor)
        os.close(file)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.argv = [request["script"], request["scenario"]]
    runpy.run_path(request["script"], run_name="__main__")
