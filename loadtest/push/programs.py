"""The programs of a run: the hub, the sink, and the keys that both need."""

import json
import mmap
import os
import re
import struct
import subprocess
import time

from common import figures, hub
from common.certificate import make_certificate
from common.programs import fail, run, wait_for

APP, KEY, SECRET = "1", "push-key", "push-secret"
TOPIC = "com.example.tandem"


class Usage:
    """What a process has used: CPU of all its threads."""

    def __init__(self, pid):
        self.user, self.system = figures.cpu_seconds(pid)
        self.threads = {}
        for thread, name in figures.threads(pid):
            try:
                self.threads[name] = self.threads.get(name, 0) + sum(figures.cpu_seconds(pid, thread))
            except OSError:
                continue

    @property
    def total(self):
        return self.user + self.system


class Sink:
    """The far end: see sink.c."""

    FIELDS = ("requests", "last_ns", "connections", "resumed", "recording", "recorded")

    def __init__(self, programs, binary, folder, certificate, key):
        self.record_path = os.path.join(folder, "record")
        stats = os.path.join(folder, "sink.stats")
        output = os.path.join(folder, "sink.log")
        self.process = programs.start(
            [binary, certificate, key, stats, self.record_path], output, stdin=subprocess.PIPE)
        self.port = int(wait_for(r"ready at port (\d+)", self.process, 10, "the sink", output).group(1))
        self.output = output
        with open(stats, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 8 * len(self.FIELDS))
        self.url = f"https://127.0.0.1:{self.port}"

    def __getattr__(self, name):
        if name not in Sink.FIELDS:
            raise AttributeError(name)
        return struct.unpack_from("=Q", self.memory, 8 * Sink.FIELDS.index(name))[0]

    def record(self, is_on):
        struct.pack_into("=Q", self.memory, 8 * Sink.FIELDS.index("recording"), int(is_on))
        if not is_on:
            self.process.stdin.write(b".")
            self.process.stdin.flush()
            wait_for(r"flushed", self.process, 10, "the sink's record", self.output)

    def wait(self, count, seconds):
        """Until so many requests have been answered, or nothing has come for 30 s; returns the moment of the last one."""
        deadline, last, since = time.monotonic() + seconds, self.requests, time.monotonic()
        while (now := self.requests) < count:
            if now != last:
                last, since = now, time.monotonic()
            if time.monotonic() > deadline or time.monotonic() - since > 30:
                fail(f"only {now} of {count} pushes arrived")
            time.sleep(0.005)
        return self.last_ns / 1e9


# The cost is measured, not the pace that a project's quota allows.
CONFIGURATION = f"""\
listen: {{ host: 127.0.0.1, port: 0, loops: 2 }}
apps:
  - {{ id: "{APP}", key: {KEY}, secret: {SECRET} }}
push: {{ fcm: {{ messages_per_minute: 100000000 }} }}
"""


class Hub(hub.Hub):
    """A hub that pushes to the sink."""

    def __init__(self, programs, binary, folder, name, credentials):
        super().__init__(programs, binary, folder, name, os.path.join(os.path.dirname(os.path.abspath(__file__)), "channels"))
        self.credentials = credentials

    def start(self):
        self.launch(CONFIGURATION, self.credentials)

    def stop(self):
        self.programs.stop(self.process, seconds=30)

    def store(self):
        for name in sorted(os.listdir(self.data)):
            path = os.path.join(self.data, name)
            with open(path, "rb") as file:
                if file.read(15) == b"SQLite format 3":
                    return path
        fail(f"no store in {self.data}")

    def usage(self):
        return Usage(self.process.pid)

    def complaints(self):
        with open(self.output, errors="replace") as file:
            return [line.strip() for line in file if re.search(r"\b(error|warning)\b", line)]


def credentials(folder, sink_port):
    """The hub's environment."""
    return {
        "APNS_KEY_PATH": os.path.join(folder, "apns.p8"), "APNS_KEY_ID": "ABC123DEFG", "APNS_TEAM_ID": "DEF123GHIJ", "APNS_TOPIC": TOPIC,
        "TANDEM_APNS_URL": f"https://127.0.0.1:{sink_port}", "TANDEM_FCM_URL": f"https://127.0.0.1:{sink_port}",
        "TANDEM_PUSH_CA_FILE": os.path.join(folder, "tls.pem"), "GOOGLE_APPLICATION_CREDENTIALS": os.path.join(folder, "service-account.json"),
    }


def make_keys(folder):
    """Keys that no gateway knows, made for this run; returns the sink's certificate and its key."""
    for kind, option, name in (("EC", "ec_paramgen_curve:prime256v1", "apns.p8"), ("RSA", "rsa_keygen_bits:2048", "fcm.pem")):
        run(["openssl", "genpkey", "-algorithm", kind, "-pkeyopt", option, "-out", os.path.join(folder, name)], f"making {name}")
    return make_certificate(folder)


def write_account(folder, port):
    with open(os.path.join(folder, "fcm.pem")) as file:
        pem = file.read()
    with open(os.path.join(folder, "service-account.json"), "w") as file:
        json.dump({
            "type": "service_account", "project_id": "bench", "private_key_id": "1", "private_key": pem,
            "client_email": "bench@bench.iam.gserviceaccount.com", "token_uri": f"https://127.0.0.1:{port}/token"}, file)

