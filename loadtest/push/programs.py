"""The programs of a run: started here, ended here, each by its own process id."""

import ctypes
import json
import mmap
import os
import re
import signal
import struct
import subprocess
import time

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)
APP, KEY, SECRET = "1", "push-key", "push-secret"
TOPIC = "com.example.tandem"


def fail(text):
    raise SystemExit(f"push: {text}")


def _die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def environment(**settings):
    """Only what programs need: settings of whoever runs this must not change what is measured."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return {**kept, **settings}


class Programs:
    def __init__(self):
        self.running = []

    def start(self, command, output, stdin=subprocess.DEVNULL, stdout=None, **settings):
        with open(output, "ab") as file:
            process = subprocess.Popen(
                command, stdin=stdin, stdout=stdout or file, stderr=file, env=environment(**settings), start_new_session=True,
                preexec_fn=_die_with_parent)
        self.running.append(process)
        return process

    def stop(self, process):
        """Asks first: a hub then closes its store."""
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if process in self.running:
            self.running.remove(process)

    def end(self):
        for process in list(self.running):
            process.kill()
            process.wait()


def run(command, what):
    done = subprocess.run(command, capture_output=True, text=True, env=environment())
    if done.returncode:
        fail(f"{what} failed:\n{done.stderr}")
    return done.stdout


def wait_for(pattern, path, process, seconds, what):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        with open(path, errors="replace") as file:
            found = re.search(pattern, file.read())
        if found:
            return found
        time.sleep(0.01)
    with open(path, errors="replace") as file:
        fail(f"{what} did not start within {seconds} s:\n{file.read()}")


class Usage:
    """What a process has used: CPU of all its threads, from /proc."""

    TICK = 1 / os.sysconf("SC_CLK_TCK")

    def __init__(self, pid):
        self.user, self.system = self._times(f"/proc/{pid}/stat")
        self.threads = {}
        for thread in os.listdir(f"/proc/{pid}/task"):
            try:
                with open(f"/proc/{pid}/task/{thread}/comm") as file:
                    name = file.read().strip()
                self.threads[name] = self.threads.get(name, 0) + sum(self._times(f"/proc/{pid}/task/{thread}/stat"))
            except OSError:
                continue

    def _times(self, path):
        with open(path) as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return int(fields[11]) * self.TICK, int(fields[12]) * self.TICK

    @property
    def total(self):
        return self.user + self.system


def peak_bytes(pid):
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(r"VmHWM:\s+(\d+) kB", file.read()).group(1)) * 1024


class Sink:
    """The far end: see sink.c."""

    FIELDS = ("requests", "last_ns", "connections", "resumed", "recording", "recorded")

    def __init__(self, programs, binary, folder, certificate, key):
        self.record_path = os.path.join(folder, "record")
        stats = os.path.join(folder, "sink.stats")
        output = os.path.join(folder, "sink.log")
        self.process = programs.start(
            [binary, certificate, key, stats, self.record_path], output, stdin=subprocess.PIPE)
        self.port = int(wait_for(r"ready at port (\d+)", output, self.process, 10, "the sink").group(1))
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
            wait_for(r"flushed", self.output, self.process, 10, "the sink's record")

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


class Hub:
    """One server on a store of its own."""

    def __init__(self, programs, binary, folder, name, credentials, sink):
        self.programs, self.binary, self.credentials, self.sink = programs, binary, credentials, sink
        self.data = os.path.join(folder, name)
        self.output = os.path.join(folder, f"{name}.log")
        self.configuration = os.path.join(folder, f"{name}.yaml")
        self.process, self.port = None, 0
        with open(self.configuration, "w") as file:
            file.write(
                "listen: { host: 127.0.0.1, port: 0, loops: 2 }\n"
                f'apps:\n  - {{ id: "{APP}", key: {KEY}, secret: {SECRET} }}\n'
                # The cost is measured, not the pace that a project's quota allows.
                "push: { fcm: { messages_per_minute: 100000000 } }\n")

    def start(self):
        if os.path.exists(self.output):
            os.remove(self.output)
        channels = os.path.join(os.path.dirname(os.path.abspath(__file__)), "channels")
        self.process = self.programs.start(
            [self.binary, "serve", "--config", self.configuration, "--data", self.data, "--channels", channels], self.output,
            NO_PROXY="*", **self.credentials)
        found = wait_for(r"ready at http://127\.0\.0\.1:(\d+)", self.output, self.process, 60, "the hub")
        self.port = int(found.group(1))

    def stop(self):
        self.programs.stop(self.process)

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
    openssl = ["openssl"]
    certificate, key = os.path.join(folder, "tls.pem"), os.path.join(folder, "tls.key")
    # The kind of key that Google's and Apple's certificates have.
    run(openssl + ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-keyout", key,
                   "-out", certificate, "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"], "making a certificate")
    run(openssl + ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-out", os.path.join(folder, "apns.p8")],
        "making the APNs key")
    run(openssl + ["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", os.path.join(folder, "fcm.pem")],
        "making the service account's key")
    return certificate, key


def write_account(folder, port):
    with open(os.path.join(folder, "fcm.pem")) as file:
        pem = file.read()
    with open(os.path.join(folder, "service-account.json"), "w") as file:
        json.dump({
            "type": "service_account", "project_id": "bench", "private_key_id": "1", "private_key": pem,
            "client_email": "bench@bench.iam.gserviceaccount.com", "token_uri": f"https://127.0.0.1:{port}/token"}, file)

