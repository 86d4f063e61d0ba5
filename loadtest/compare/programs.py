"""The programs of a comparison: started here, ended here, each by its own process id, and tied to cores."""

import ctypes
import os
import signal
import subprocess
import time

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)
STOP_SECONDS = 15


def fail(text):
    raise SystemExit(f"compare: {text}")


def environment(**settings):
    """Only what programs need: settings of whoever runs this must not change what is measured."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return {**kept, "NO_PROXY": "*", **settings}


class Programs:
    def __init__(self):
        self.running = []

    def start(self, command, output, cores, **settings):
        """A program of a process group of its own, on some cores, whose output goes into a file."""

        def prepare():
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            os.sched_setaffinity(0, cores)

        with open(output, "wb") as file:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=environment(**settings), start_new_session=True,
                preexec_fn=prepare)
        self.running.append(process)
        return process

    def stop(self, process):
        """Asks first, so that nobody leaves children or shared memory behind."""
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                pass
        self._kill(process)
        if process in self.running:
            self.running.remove(process)

    def end(self):
        for process in list(self.running):
            self._kill(process)
        self.running.clear()

    @staticmethod
    def _kill(process):
        """The group, since a server may have workers; it is the program's own, made by `start_new_session`."""
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()


def run(command, what):
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
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        answer = condition()
        if answer:
            return answer
        time.sleep(0.02)
    fail(f"{what} did not start within {seconds} s:\n{text(output)}")
