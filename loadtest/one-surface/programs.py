"""The programs of a run: started here, ended here, each by its own process id."""

import ctypes
import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
import urllib.request

import wire

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)


def _die_with_parent():
    """The kernel ends the program when the thread that started it is gone, however that came about."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Programs:
    """Everything that was started. `end` leaves nothing behind, whatever happened."""

    def __init__(self):
        self.running = []

    def start(self, command, output, stdin=subprocess.DEVNULL, environment=None):
        with open(output, "ab") as file:
            process = subprocess.Popen(
                command, stdin=stdin, stdout=file, stderr=subprocess.STDOUT, env=environment, start_new_session=True,
                preexec_fn=_die_with_parent)
        self.running.append(process)
        return process

    def kill(self, process):
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()
        if process in self.running:
            self.running.remove(process)

    def end(self):
        for process in list(self.running):
            self.kill(process)


def environment(**settings):
    """Only what programs need: settings of whoever runs this must not change what is measured."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return {**kept, "NO_PROXY": "*", **settings}


def raise_descriptor_limit(needed):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < needed:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed, max(needed, hard)))
        except (ValueError, OSError):
            raise SystemExit(f"one-surface: {needed} descriptors are needed and {hard} are allowed: run `ulimit -n {needed}` as root first")


def wait_for(text, path, process, seconds, what):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with open(path, errors="replace") as file:
            found = re.search(text, file.read())
        if found:
            return found
        if process.poll() is not None:
            break
        time.sleep(0.005)
    with open(path, errors="replace") as file:
        raise SystemExit(f"one-surface: {what} did not start within {seconds} s:\n{file.read()}")


class Gateways:
    """The simulated FCM and APNs, and what has arrived there so far."""

    def __init__(self, programs, binary, folder):
        output = os.path.join(folder, "gateways.log")
        data = os.path.join(folder, "gateways")
        self.process = programs.start([binary, "--data", data], output, environment=environment())
        wait_for(r"ready\n", output, self.process, 30, "tandem-gateways")
        self.settings = {}
        with open(os.path.join(data, "gateways.env")) as file:
            for line in file:
                if line.startswith("export "):
                    name, value = line[len("export "):].strip().split("=", 1)
                    self.settings[name] = value.strip("'\"")
        self.control = self.settings.pop("TANDEM_GATEWAYS_CONTROL")
        self.requests, self.last, self.lock = [], 0, threading.Lock()
        self.stopping, self.failure = threading.Event(), None
        self.thread = threading.Thread(target=self._collect, daemon=True)
        self.thread.start()

    def _collect(self):
        while not self.stopping.wait(0.4):
            try:
                self.poll()
            except (OSError, SystemExit) as error:
                if not self.stopping.is_set():
                    self.failure = error
                return

    def poll(self):
        """Fetches what is new, before the simulators' bounded book forgets it."""
        if self.failure:
            raise SystemExit(f"one-surface: the simulators' book could not be read: {self.failure}")
        with self.lock:
            with urllib.request.urlopen(f"{self.control}/requests?after={self.last}", timeout=60) as answer:
                dropped, records = answer.headers.get("X-Dropped-Requests"), json.load(answer)
            if records:
                if records[0]["sequence"] != self.last + 1:
                    raise SystemExit(f"one-surface: the simulators forgot requests before they were read ({dropped} in all)")
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


class Hub:
    """One server, killed and started again on the same data and port."""

    def __init__(self, programs, binary, folder, channels, gateways, loops=2, name="hub"):
        self.programs, self.binary, self.gateways = programs, binary, gateways
        self.folder, self.channels, self.loops, self.name = folder, channels, loops, name
        self.output = os.path.join(folder, f"{name}.log")
        self.port, self.process, self.user_seconds = 0, None, 0.0

    def start(self):
        """Returns when the server listens."""
        configuration = os.path.join(self.folder, f"{self.name}.yaml")
        with open(configuration, "w") as file:
            file.write(CONFIGURATION.replace("PORT", str(self.port)).replace("LOOPS", str(self.loops)))
        start = os.path.getsize(self.output) if os.path.exists(self.output) else 0
        if start:
            os.replace(self.output, f"{self.output}.{int(time.time() * 1000)}")
        self.process = self.programs.start(
            [self.binary, "serve", "--config", configuration, "--data", os.path.join(self.folder, f"{self.name}-data"),
             "--channels", self.channels],
            self.output, environment=environment(**self.gateways.settings))
        found = wait_for(r"ready at http://127\.0\.0\.1:(\d+)", self.output, self.process, 60, "the hub")
        self.port = int(found.group(1))

    def cpu(self):
        """User seconds of the running process."""
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return int(fields[11]) / os.sysconf("SC_CLK_TCK")

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
            stdin=subprocess.PIPE, environment=environment())

    def go(self, start):
        self.process.stdin.write(f"go {start}\n".encode())
        self.process.stdin.flush()

    def freeze(self):
        """Stops the process; returns the time when it stood."""
        self.process.send_signal(signal.SIGSTOP)
        while True:
            with open(f"/proc/{self.process.pid}/stat") as file:
                if file.read().rsplit(")", 1)[1].split()[0] in "Tt":
                    return time.time()
            time.sleep(0.001)

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
