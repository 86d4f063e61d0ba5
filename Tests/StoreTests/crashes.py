#!/usr/bin/env python3
"""Kills a hub, its PostgreSQL, or both, again and again under publishers, and counts what was answered and is not stored.

    Tests/StoreTests/postgres.sh python3 Tests/StoreTests/crashes.py hub|server|both ROUNDS

Needs `psql` and .build/release/tandem, or the program that TANDEM names. Every publish has an Idempotency-Key and is repeated under it until
it is answered with 200. Lost: a key that was answered and has no event. Doubled: a key with two events. Ends with 1 if there is one.
"""

import hashlib
import hmac
import http.client
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

KEY, SECRET, PUBLISHERS = "app-key", "app-secret", 4


def signed(method, path, body):
    """The path with Pusher's signature of a request."""
    query = {
        "auth_key": KEY, "auth_timestamp": str(int(time.time())), "auth_version": "1.0",
        "body_md5": hashlib.md5(body).hexdigest(),
    }
    text = "&".join(f"{name}={query[name]}" for name in sorted(query))
    signature = hmac.new(SECRET.encode(), f"{method}\n{path}\n{text}".encode(), hashlib.sha256).hexdigest()
    return f"{path}?{text}&auth_signature={signature}"


class Hub:
    """The hub's process: started again on the same port after each kill."""

    def __init__(self, folder, address):
        self.folder, self.address, self.port, self.process = folder, address, 0, None

    def start(self):
        environment = dict(os.environ, TANDEM_STORE=self.address)
        self.process = subprocess.Popen(
            [os.environ.get("TANDEM", ".build/release/tandem"), "serve", "--port", str(self.port), "--channels", "channels",
             "--data", str(self.folder), "--log-level", "error"],
            stdout=subprocess.PIPE, stderr=open(self.folder / "hub.log", "ab"), env=environment)
        line = self.process.stdout.readline().decode()
        if "ready at" not in line:
            sys.exit(f"the hub does not start: {line} {(self.folder / 'hub.log').read_text()[-2000:]}")
        self.port = int(line.rsplit(":", 1)[1])

    def request(self, method, path, body, key=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            headers = {"Content-Type": "application/json"} | ({"Idempotency-Key": key} if key else {})
            connection.request(method, signed(method, path, body), body, headers)
            return connection.getresponse().status
        finally:
            connection.close()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


class Publisher(threading.Thread):
    def __init__(self, hub, number):
        super().__init__(daemon=True)
        self.hub, self.number, self.answered, self.refused, self.is_over = hub, number, [], 0, False

    def run(self):
        count = 0
        while not self.is_over:
            key = f"k-{self.number}-{count}"
            count += 1
            body = json.dumps({"name": "session-started", "channel": "presence-quiz-one", "data": json.dumps({"key": key})}).encode()
            while not self.is_over:
                try:
                    status = self.hub.request("POST", "/apps/1/events", body, key)
                except OSError:
                    status = 0
                except http.client.HTTPException:
                    status = 0
                if status == 200:
                    self.answered.append(key)
                    break
                if 400 <= status < 500:
                    print(f"a publish is refused with {status}", flush=True)
                    os._exit(2)
                self.refused += 1
                time.sleep(0.02)


def main():
    what, rounds = sys.argv[1], int(sys.argv[2])
    address, crash = os.environ["TANDEM_TEST_POSTGRES"], os.environ["TANDEM_TEST_POSTGRES_CRASH"]
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as name:
        hub = Hub(pathlib.Path(name), address)
        hub.start()
        assert hub.request("PUT", "/apps/1/sessions/one", b'{"definition":"quiz","join_code":"ABC123"}') in (200, 201)
        for user in range(5):
            path, body = f"/apps/1/sessions/one/participants/u{user}", json.dumps({"name": f"U {user}"}).encode()
            assert hub.request("PUT", path, body) in (200, 201)
        publishers = [Publisher(hub, number) for number in range(PUBLISHERS)]
        for publisher in publishers:
            publisher.start()
        began = time.monotonic()
        for _ in range(rounds):
            # Some publishes are under way whenever the kill comes.
            before = sum(len(publisher.answered) for publisher in publishers)
            while sum(len(publisher.answered) for publisher in publishers) < before + 20:
                if hub.process.poll() is not None:
                    sys.exit(f"the hub ended: {(pathlib.Path(name) / 'hub.log').read_text()[-2000:]}")
                time.sleep(0.005)
            time.sleep(rng.random() * 0.1)
            if what in ("hub", "both"):
                hub.kill()
            if what in ("server", "both"):
                subprocess.run([crash], check=True, stdout=subprocess.DEVNULL)
            if what in ("hub", "both"):
                hub.start()
        seconds = time.monotonic() - began
        for publisher in publishers:
            publisher.is_over = True
        for publisher in publishers:
            publisher.join(10)
        hub.process.terminate()
        hub.process.wait(20)
    found = subprocess.run(
        ["psql", "--no-psqlrc", "--tuples-only", "--no-align", "--dbname", address, "--command",
         "SELECT convert_from(data, 'UTF8') FROM tandem.event"],
        check=True, capture_output=True, text=True).stdout
    stored = [json.loads(line)["key"] for line in found.splitlines() if line]
    answered = [key for publisher in publishers for key in publisher.answered]
    lost, doubled = set(answered) - set(stored), len(stored) - len(set(stored))
    print(f"{what}: {rounds} kills in {seconds:.0f} s, {len(answered)} answered, {sum(p.refused for p in publishers)} refused, "
          f"lost {len(lost)}, doubled {doubled}")
    sys.exit(1 if lost or doubled else 0)


if __name__ == "__main__":
    main()
