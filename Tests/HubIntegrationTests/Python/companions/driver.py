"""A companion as a program of its own: each line to it is a call, and is answered by a line. It says `subscribed` whenever it is."""

import os
import queue
import shlex
import subprocess
import threading

from tandem_client import *

PLATFORM = os.environ.get("PLATFORM", "android")


def device_token(name):
    """A push token of the companion's platform."""
    return hashlib.sha256(name.encode()).hexdigest() if PLATFORM == "ios" else fcm_token(name)


class Companion:
    def __init__(self, participant, channel=None):
        self.answers, self.subscriptions = queue.SimpleQueue(), 0
        self.process = subprocess.Popen(
            [*shlex.split(os.environ["COMPANION"]), HUB_URL, KEY, channel or participant["channel"], participant["token"]],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        threading.Thread(target=self._read, daemon=True).start()
        self.subscribed(1)

    def _read(self):
        for line in self.process.stdout:
            if line.strip() == "subscribed":
                self.subscriptions += 1
            else:
                self.answers.put(line.strip())

    def subscribed(self, count):
        wait_for(lambda: self.subscriptions >= count or self.process.poll() is not None, f"subscription {count} of the companion")
        check(self.process.poll() is None, "the companion has ended", self.process.returncode)

    def call(self, *words):
        """The answer: `true` or `false` where the call has one, a list of `events`, or `done`."""
        self.process.stdin.write(" ".join(words) + "\n")
        try:
            answer = self.answers.get(timeout=PATIENCE)
        except queue.Empty:
            raise SystemExit(f"the companion did not answer {words[0]}")
        check(answer not in ("", "unknown"), words, answer)
        return answer

    def numbers(self):
        """Of the events that its app has read."""
        return [json.loads(data)["n"] for data in json.loads(self.call("events"))]

    def read(self, number):
        wait_for(lambda: number in self.numbers(), f"event {number} on the socket")

    def leave(self):
        self.call("leave")
        self.process.kill()
        self.process.wait()
