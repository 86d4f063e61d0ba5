"""The programs of a run: the simulated gateways, the hub, and the processes of clients."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request

import wire
from common import figures, hub
from common.programs import fail, wait_for


class Gateways:
    """The simulated FCM and APNs, and what has arrived there so far."""

    def __init__(self, programs, binary, folder):
        output = os.path.join(folder, "gateways.log")
        data = os.path.join(folder, "gateways")
        self.process = programs.start([binary, "--data", data], output)
        wait_for(r"ready\n", self.process, 30, "tandem-gateways", output)
        self.settings = {}
        with open(os.path.join(data, "gateways.env")) as file:
            for line in file:
                if line.startswith("export "):
                    name, value = line[len("export "):].strip().split("=", 1)
                    self.settings[name] = value.strip("'\"")
        self.control = self.settings.pop("TANDEM_GATEWAYS_CONTROL")
        self.requests, self.last, self.lock = [], 0, threading.Lock()
        self.failure = None
        threading.Thread(target=self._collect, daemon=True).start()

    def _collect(self):
        while not self.failure:
            time.sleep(0.4)
            try:
                self.poll()
            except (OSError, SystemExit) as error:
                self.failure = error

    def poll(self):
        """Fetches what is new, before the simulators' bounded book forgets it."""
        if self.failure:
            fail(f"the simulators' book could not be read: {self.failure}")
        with self.lock:
            with urllib.request.urlopen(f"{self.control}/requests?after={self.last}", timeout=60) as answer:
                dropped, records = answer.headers.get("X-Dropped-Requests"), json.load(answer)
            if records:
                if records[0]["sequence"] != self.last + 1:
                    fail(f"the simulators forgot requests before they were read ({dropped} in all)")
                self.last = records[-1]["sequence"]
            for record in records:
                if record["provider"] != "oauth":
                    self.requests.append(_push(record))
            return len(records)

    def wait_quiet(self, seconds, quiet=1.0):
        """Until nothing has come for a while."""
        deadline, last = time.monotonic() + seconds, time.monotonic()
        while time.monotonic() < deadline and time.monotonic() - last < quiet:
            if self.poll():
                last = time.monotonic()
            time.sleep(0.1)


def _push(record):
    """What matters of one request: (time, status, token, n, kind, nid, event id, request id or name, visible)."""
    body = record["body"] or {}
    if record["provider"] == "fcm":
        message = body.get("message", {})
        data, visible = message.get("data", {}), "notification" in message
    else:
        data, visible = body, "alert" in body.get("aps", {})
    return {
        "time": record["received_at"] / 1000, "status": record["status"], "reason": record["reason"], "token": record["token"],
        "n": int(data.get("n", -1)), "kind": data.get("kind"), "nid": data.get("nid"), "event": data.get("event_id"),
        "id": record["headers"].get("apns-id"), "visible": visible,
    }


CONFIGURATION = f"""\
listen: {{ host: 127.0.0.1, port: PORT, loops: LOOPS }}
apps:
  - id: "{wire.APP}"
    key: {wire.KEY}
    secret: {wire.SECRET}
    presence_members_max: 5000
limits: {{ joins_per_minute: 0 }}
"""


class Hub(hub.Hub):
    """One server, killed and started again on the same data and port."""

    def __init__(self, programs, binary, folder, channels, gateways, loops=2, name="hub"):
        super().__init__(programs, binary, folder, name, channels)
        self.gateways, self.loops = gateways, loops

    def start(self):
        self.launch(CONFIGURATION.replace("PORT", str(self.port)).replace("LOOPS", str(self.loops)), self.gateways.settings)

    @property
    def ports(self):
        return [self.port]

    def cpu(self):
        """User seconds of the running process."""
        return figures.cpu_seconds(self.process.pid)[0]

    def kill(self):
        self.programs.kill(self.process)


class Client:
    """One client process."""

    def __init__(self, programs, folder, number, plan):
        path = os.path.join(folder, f"client{number}.json")
        with open(path, "w") as file:
            json.dump(plan, file)
        self.log = os.path.join(folder, f"client{number}.tsv")
        self.users = [person["user"] for person in plan["people"]]
        self.programs = programs
        here = os.path.dirname(os.path.abspath(__file__))
        self.process = programs.start(
            [sys.executable, "-B", os.path.join(here, "client.py"), path, self.log], os.path.join(folder, f"client{number}.log"),
            stdin=subprocess.PIPE)

    def go(self, start):
        self.process.stdin.write(f"go {start}\n".encode())
        self.process.stdin.flush()

    def freeze(self):
        """Stops the process; returns the time when it stood."""
        figures.freeze(self.process.pid, "a client process")
        return time.time()

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)
        return time.time()

    def finish(self):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            pass
        self.programs.kill(self.process)
