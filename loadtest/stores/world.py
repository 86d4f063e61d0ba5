"""What the stores are measured with: the far end of pushes, hubs on either store, and people who are away."""

import http.client
import json
import os
import subprocess
import threading
import time
import urllib.parse

import programs as p
import store as rows
from common.http import signed
from common.programs import environment, fail, run
from common.workspace import built

EVENT, PROVIDER = "session-started", "apns"
DEVICE_COLUMNS = ("app, user_id, id, platform, provider, token, environment, notifications, registered_at, refreshed_at, accepted_at, "
                  "origin")
PERSON_COLUMNS = "app, session, user_id, name, email, email_key, joined_at"


def psql(address, text, stdin=None):
    """The rows of a statement, as lists of words."""
    done = subprocess.run(
        ["psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set", "ON_ERROR_STOP=1", "--dbname", address, "--command", text],
        input=stdin, capture_output=True, text=True)
    if done.returncode:
        fail(f"psql failed: {done.stderr}")
    return [line.split("|") for line in done.stdout.splitlines() if line]


class Hub(p.Hub):
    """A hub on SQLite, or on PostgreSQL where there is an address."""

    def __init__(self, programs, folder, name, credentials, address=None):
        super().__init__(programs, built("tandem", "build"), folder, name, credentials)
        self.channels = os.path.join(os.path.dirname(os.path.abspath(__file__)), "channels")
        self.address, self.name, self.lock = address, name, threading.local()
        if address:
            self.credentials = dict(credentials, TANDEM_STORE=address)

    def call(self, method, path, body):
        """A backend's request, on a connection that the calling thread keeps."""
        data = json.dumps(body).encode()
        for attempt in (1, 2):
            if not getattr(self.lock, "connection", None) or self.lock.port != self.port:
                self.lock.connection, self.lock.port = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300), self.port
            try:
                self.lock.connection.request(
                    method, signed(method, path, data, p.KEY, p.SECRET), data, {"Content-Type": "application/json"})
                answer = self.lock.connection.getresponse()
                text = answer.read()
                break
            except (http.client.HTTPException, OSError):
                self.lock.connection = None
                if attempt == 2:
                    raise
        if answer.status not in (200, 201):
            fail(f"{method} {path} was refused: {answer.status} {text[:300]!r}")

    def publish(self, session, number=0):
        self.call("POST", f"/apps/{p.APP}/events", {
            "name": EVENT, "channels": [f"private-crowd-{session}"], "data": json.dumps({"n": number})})

    def publish_batch(self, session, count):
        self.call("POST", f"/apps/{p.APP}/batch_events", {"batch": [
            {"name": EVENT, "channel": f"private-crowd-{session}", "data": json.dumps({"n": number})} for number in range(count)]})

    def metrics(self):
        """Each row of /metrics by its name with labels."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line and line[0] != "#"}

    @property
    def accepted(self):
        return self.metrics()['tandem_pushes_ended_total{state="accepted"}']

    def wait_accepted(self, count, seconds):
        """Until so many pushes have been accepted and settled."""
        deadline = time.monotonic() + seconds
        while (now := self.accepted) < count:
            if time.monotonic() > deadline:
                fail(f"{self.name}: {now:,.0f} of {count:,.0f} pushes were settled within {seconds} s")
            time.sleep(0.02)

    def fill(self, sessions, with_devices=True):
        """Puts people into sessions while no hub runs; `sessions` has the number of people by session."""
        now = int(time.time() * 1000)
        people, devices = [], []
        for session, members in sessions.items():
            for number in range(members):
                user = f"{session}-{number}"
                email = f"{session}{number}@example.com"
                people.append((p.APP, session, user, f"Person {number}", email, email, now))
                if with_devices:
                    devices.append(rows.device(p.APP, PROVIDER, len(devices), user))
        if self.address:
            for table, columns, values in (("participant", PERSON_COLUMNS, people), ("device", DEVICE_COLUMNS, devices)):
                lines = []
                for row in values:
                    row = [*row[:6], "production", "t", *row[6:], "app"] if table == "device" else row
                    lines.append("\t".join(str(value) for value in row) + "\n")
                psql(self.address, f"COPY tandem.{table} ({columns}) FROM STDIN", "".join(lines))
            psql(self.address, "ANALYZE tandem.participant, tandem.device")
            return
        database = rows.sqlite3.connect(self.store())
        with database:
            database.executemany(rows.SESSION_SQL, people)
            database.executemany(rows.DEVICE_SQL, devices)
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.close()

    def prepare(self, sessions, without=()):
        """Starts on a store that knows these people; those of `without` have no device."""
        self.start()
        for session in [*sessions, *without]:
            self.call("PUT", f"/apps/{p.APP}/sessions/{session}", {"definition": "crowd", "join_code": f"{session}code"})
        self.stop()
        self.fill(sessions)
        if without:
            self.fill(without, with_devices=False)
        self.start()

    def bytes(self):
        """Size of the store with its indexes; of SQLite only while no hub runs."""
        if self.address:
            return int(psql(self.address, "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c WHERE c.relkind = 'r' "
                                          "AND c.relnamespace = 'tandem'::regnamespace")[0][0])
        database = rows.sqlite3.connect(self.store())
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (pages,), (free,), (size,) = (
            database.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "freelist_count", "page_size"))
        database.close()
        return (pages - free) * size


class World:
    """The far end, and the addresses of the stores."""

    def __init__(self, folder, programs):
        self.folder, self.programs = folder, programs
        self.address = os.environ["TANDEM_TEST_POSTGRES"]
        push = os.path.dirname(os.path.abspath(p.__file__))
        run(["cc", "-O2", "-Wall", "-o", os.path.join(folder, "sink"), os.path.join(push, "sink.c"), "-lnghttp2", "-lssl", "-lcrypto"],
            "compiling sink.c")
        certificate, key = p.make_keys(folder)
        self.sink = p.Sink(programs, os.path.join(folder, "sink"), folder, certificate, key)
        p.write_account(folder, self.sink.port)
        self.credentials = p.credentials(folder, self.sink.port)

    def hub(self, name, address=None):
        return Hub(self.programs, self.folder, name, self.credentials, address)

    def proxied(self, milliseconds):
        """The address of PostgreSQL behind a way that takes longer, each way."""
        parts = urllib.parse.urlsplit(self.address)
        output = os.path.join(self.folder, "way.log")
        here = os.path.dirname(os.path.abspath(__file__))
        process = self.programs.start(
            ["python3", "-B", os.path.join(here, "slow_way.py"), str(parts.port), str(milliseconds)], output, settings=environment())
        port = int(p.wait_for(r"ready at (\d+)", process, 10, "the slow way", output).group(1))
        return urllib.parse.urlunsplit(parts._replace(netloc=parts.netloc.rsplit(":", 1)[0] + f":{port}"))
