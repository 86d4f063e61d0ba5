"""The programs of a run: started here, ended here, each by its own process id."""

import ctypes
import os
import re
import resource
import signal
import subprocess
import sys
import time

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)
# The tool's name begins each message. Python puts the tool's folder first on the path.
TOOL = os.path.basename(os.path.abspath(sys.path[0]))


def fail(text):
    raise SystemExit(f"{TOOL}: {text}")


def environment(**settings):
    """Only what programs need: settings of whoever runs this must not change what is measured."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return {**kept, **settings}


def die_with_parent():
    """The kernel ends the program when the thread that started it is gone, however that came about."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


class Programs:
    """Everything that was started. `end` leaves nothing behind, whatever happened."""

    def __init__(self):
        self.running = []

    def start(self, command, output, stdin=subprocess.DEVNULL, settings=None, cores=None):
        """A program in a process group of its own, with its output in a file. `settings` is its environment."""

        def prepare():
            die_with_parent()
            if cores:
                os.sched_setaffinity(0, cores)

        with open(output, "wb") as file:
            process = subprocess.Popen(
                command, stdin=stdin, stdout=file, stderr=file, env=environment() if settings is None else settings, start_new_session=True,
                preexec_fn=prepare)
        self.running.append(process)
        return process

    def stop(self, process, seconds=15):
        """Asks first: a hub then closes its store, and a server with workers leaves no shared memory behind."""
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                pass
        self.kill(process)

    def kill(self, process):
        """Kills the group, since a server may have workers; the group is the program's own, made by `start_new_session`."""
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        if process in self.running:
            self.running.remove(process)

    def end(self):
        for process in list(self.running):
            self.kill(process)


def run(command, what):
    """The output of a program that ends by itself."""
    done = subprocess.run(command, capture_output=True, text=True, env=environment())
    if done.returncode:
        fail(f"{what} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def text(path):
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def wait_until(condition, process, seconds, what, output):
    """The first answer of `condition` that is true."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        answer = condition()
        if answer:
            return answer
        if process.poll() is not None:
            break
        time.sleep(0.005)
    fail(f"{what} did not start within {seconds} s:\n{text(output)}")


def wait_for(pattern, process, seconds, what, output):
    """The match of a pattern in a program's output."""
    return wait_until(lambda: re.search(pattern, text(output)), process, seconds, what, output)


def port_in(output):
    """The port that a server says it is ready at; 0: it has not said so yet."""
    found = re.search(r"ready at https?://127\.0\.0\.1:(\d+)", output)
    return int(found.group(1)) if found else 0


def wait_for_port(process, seconds, what, output):
    return wait_until(lambda: port_in(text(output)), process, seconds, what, output)


def raise_descriptor_limit(needed):
    """Makes room for `needed` descriptors in this process and in what it starts; says how when it cannot."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < needed:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed, max(needed, hard)))
        except (ValueError, OSError):
            fail(f"{needed} descriptors are needed and {hard} are allowed: run `ulimit -n {needed}` as root first")
