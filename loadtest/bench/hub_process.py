"""Starts one server for one measurement, on loopback and a free port, and ends it."""

import os
import signal
import subprocess
import tempfile

from common import figures
from common.programs import Programs, fail, text, wait_for_port

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


class Server:
    """One server process that says its port. `prefix` is what it runs under (valgrind, strace), which then is its parent or itself."""

    def __init__(self, binary, arguments=(), prefix=(), environment=None, start_seconds=120):
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("TANDEM_")}
        self.folder = tempfile.TemporaryDirectory(prefix="tandem-bench-")
        self.output_path = os.path.join(self.folder.name, "output")
        self.programs = Programs()
        self.process = self.programs.start(
            [*prefix, binary, *self.prepare(self.folder.name), *arguments], self.output_path, settings={**inherited, **(environment or {})})
        try:
            self.port = wait_for_port(self.process, start_seconds, "the server", self.output_path)
            # The child of strace, or the process we started.
            self.pid = figures.child_named(self.process.pid, os.path.basename(binary)) or self.process.pid
        except BaseException:
            self.kill()
            raise

    def prepare(self, folder):
        """Puts what the server needs into its folder; returns the arguments that say so."""
        return []

    def resident_kilobytes(self):
        return figures.kilobytes(self.pid, "VmRSS")

    def user_and_system_seconds(self):
        return figures.cpu_seconds(self.pid)

    def freeze(self):
        """Stops every thread; returns when all of them stand."""
        figures.freeze(self.pid, "the server")

    def thaw(self):
        os.kill(self.pid, signal.SIGCONT)

    def stop(self, seconds=60):
        """An orderly end by SIGTERM: what runs around the hub writes its results only then."""
        os.kill(self.pid, signal.SIGTERM)
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            fail(f"the server did not end within {seconds} s of SIGTERM")
        if code != 0:
            fail(f"the server ended with {code}:\n{text(self.output_path)}")
        self.folder.cleanup()

    def kill(self):
        if self.process.poll() is None:
            self.programs.kill(self.process)
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

    def settings(self, folder):
        """Its configuration; files that this names go into `folder`."""
        return CONFIGURATION

    def prepare(self, folder):
        configuration = os.path.join(folder, "tandem.yaml")
        with open(configuration, "w") as file:
            file.write(self.settings(folder))
        return ["serve", "--config", configuration, "--data", os.path.join(folder, "data")]
