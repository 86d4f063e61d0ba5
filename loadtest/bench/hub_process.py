"""Starts one server for one measurement, on loopback and a free port, and ends it."""

import os
import re
import resource
import signal
import subprocess
import tempfile
import time

KEY = "bench-key"
SECRET = "bench-secret"
APP = "1"

# Pings are silenced, because a run under valgrind lasts longer than the default interval and the byte streams of all
# subscribers are compared. Everything else is the default.
CONFIGURATION = f"""\
listen: {{ host: 127.0.0.1, port: 0, loops: 1 }}
apps:
  - id: "{APP}"
    key: {KEY}
    secret: {SECRET}
    activity_timeout: 3600s
    ping_interval: 3600s
    pong_timeout: 3600s
limits: {{ request_timeout: 300s }}
"""


def raise_descriptor_limit(needed):
    """Makes room for `needed` descriptors in this process and in what it starts; says how when it cannot."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= needed:
        return
    if hard < needed:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed, needed))
        except (ValueError, OSError):
            raise SystemExit(f"bench: {needed} descriptors are needed and {hard} are allowed: run `ulimit -n {needed}` as root first")
    else:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


class Server:
    """One server process that says its port. `prefix` is what it runs under (valgrind, strace), which then is its parent or itself."""

    def __init__(self, binary, arguments=(), prefix=(), environment=None, start_seconds=120):
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("TANDEM_")}
        self.folder = tempfile.TemporaryDirectory(prefix="tandem-bench-")
        self.output_path = os.path.join(self.folder.name, "output")
        with open(self.output_path, "wb") as output:
            self.process = subprocess.Popen(
                [*prefix, binary, *self.prepare(self.folder.name), *arguments], stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, env={**inherited, **(environment or {})}, start_new_session=True)
        try:
            self.port = self._wait_for_port(start_seconds)
            self.pid = self._server_pid(os.path.basename(binary))
        except BaseException:
            self.kill()
            raise

    def prepare(self, folder):
        """Puts what the server needs into its folder; returns the arguments that say so."""
        return []

    def output(self):
        with open(self.output_path, errors="replace") as file:
            return file.read()

    def _wait_for_port(self, seconds):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = re.search(r"ready at https?://127\.0\.0\.1:(\d+)", self.output())
            if found:
                return int(found.group(1))
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise SystemExit(f"bench: the server did not start:\n{self.output()}")

    def _server_pid(self, name):
        """The server itself: the child of strace, or the process we started."""
        for child in self._children(self.process.pid):
            with open(f"/proc/{child}/comm") as file:
                if file.read().strip() == name:
                    return child
        return self.process.pid

    @staticmethod
    def _children(pid):
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(word) for word in file.read().split()]

    def resident_kilobytes(self):
        with open(f"/proc/{self.pid}/status") as file:
            return int(re.search(r"VmRSS:\s+(\d+) kB", file.read()).group(1))

    def user_and_system_seconds(self):
        with open(f"/proc/{self.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        tick = os.sysconf("SC_CLK_TCK")
        return int(fields[11]) / tick, int(fields[12]) / tick

    def freeze(self, seconds=10):
        """Stops every thread; returns when all of them stand."""
        os.kill(self.pid, signal.SIGSTOP)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if all(state in "Tt" for state in self._thread_states()):
                return
            time.sleep(0.001)
        raise SystemExit("bench: the server could not be stopped for a moment")

    def _thread_states(self):
        for thread in os.listdir(f"/proc/{self.pid}/task"):
            with open(f"/proc/{self.pid}/task/{thread}/stat") as file:
                yield file.read().rsplit(")", 1)[1].split()[0]

    def thaw(self):
        os.kill(self.pid, signal.SIGCONT)

    def stop(self, seconds=60):
        """An orderly end by SIGTERM: what runs around the hub writes its results only then."""
        os.kill(self.pid, signal.SIGTERM)
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise SystemExit(f"bench: the server did not end within {seconds} s of SIGTERM")
        if code != 0:
            raise SystemExit(f"bench: the server ended with {code}:\n{self.output()}")
        self.folder.cleanup()

    def kill(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        # Nothing is left to do in order where a measure has killed it, so as not to wait for thousands of clients to be sent away.
        if kind is None and self.process.poll() is None:
            self.stop()
        else:
            self.kill()


class Hub(Server):
    """The hub, with one app and one loop."""

    def prepare(self, folder):
        configuration = os.path.join(folder, "tandem.yaml")
        with open(configuration, "w") as file:
            file.write(CONFIGURATION)
        return ["serve", "--config", configuration, "--data", os.path.join(folder, "data")]
