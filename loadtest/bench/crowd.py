"""Thousands of clients in one process of their own (crowd.c), and hubs of the size they are for."""

import json
import os
import re
import select
import subprocess

from callgrind import compiled
from common.certificate import make_certificate
from common.figures import threads
from hub_process import APP, KEY, SECRET, Hub

# Clients that shake hands at the same time, where they do not come all at once.
WAVE = 200

CONFIGURATION = """\
listen: {{ host: 127.0.0.1, port: 0, loops: {loops}{tls} }}
apps:
  - id: "{app}"
    key: {key}
    secret: {secret}
    presence_members_max: 100000
    activity_timeout: 3600s
    ping_interval: 3600s
    pong_timeout: 3600s
"""


def build_crowd(folder):
    return compiled("crowd.c", os.path.join(folder, "crowd"), "libssl", "libcrypto", options=["-Wno-deprecated-declarations"])


class Crowd:
    """What crowd.c does, and what it answers."""

    def __init__(self, binary, port, channel, *options, app=(KEY, SECRET)):
        self.process = subprocess.Popen(
            [binary, str(port), *app, channel, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def tell(self, command, seconds=120):
        self.begin(command)
        return self.answer(seconds)

    def begin(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def answer(self, seconds=120):
        if not select.select([self.process.stdout], [], [], seconds)[0]:
            raise SystemExit(f"bench: the crowd did not get through in {seconds} s")
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("bench: the crowd has died")
        return json.loads(line)

    def come(self, count, wave=None):
        """`count` more clients, all at once or so many at a time; an error when one was turned away."""
        while count > 0:
            step = min(count, wave or count)
            answer = self.tell(f"open {step}")
            if answer["failed"]:
                raise SystemExit(f"bench: {answer['failed']} clients were not let in")
            count -= step
        return answer

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.process.kill()
        self.process.wait()


class CrowdedHub(Hub):
    """The hub with as many loops as asked for, with or without TLS, and its defaults otherwise."""

    loops = 1
    tls = False

    def settings(self, folder):
        tls = ""
        if self.tls:
            certificate, key = make_certificate(folder)
            tls = f", tls: {{ cert: {certificate}, key: {key} }}"
        return CONFIGURATION.format(loops=self.loops, tls=tls, app=APP, key=KEY, secret=SECRET)

    def cpu_seconds(self):
        return sum(self.user_and_system_seconds())

    def loop_cpu_seconds(self):
        """Of each loop's thread, as exactly as the kernel counts."""
        seconds = {}
        for thread, name in threads(self.pid):
            if name.startswith("loop "):
                with open(f"/proc/{self.pid}/task/{thread}/schedstat") as file:
                    seconds[name] = int(file.read().split()[0]) / 1e9
        return [seconds[name] for name in sorted(seconds)]

    def loop_connections(self):
        """How many connections each loop watches: its epoll descriptor lists them. Ordered by number."""
        counts = []
        for descriptor in os.listdir(f"/proc/{self.pid}/fdinfo"):
            try:
                with open(f"/proc/{self.pid}/fdinfo/{descriptor}") as file:
                    watched = re.findall(r"^tfd:", file.read(), re.MULTILINE)
            except OSError:
                continue
            # What a loop watches besides: libuv's and libwebsockets' wake-ups.
            if len(watched) > 8:
                counts.append(len(watched))
        return sorted(counts)


class TwoLoops(CrowdedHub):
    loops = 2


class SecureHub(CrowdedHub):
    tls = True
