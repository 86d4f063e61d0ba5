"""Hubs to test, their apps, and their HTTP API by hand.

The executable is named by the environment variable TANDEM, its channel definitions by CHANNELS; files go below the working
directory. A hub with TLS takes its certificate and key from CONFORMANCE_CERT and CONFORMANCE_KEY; CONFORMANCE_CA is their authority.
"""

import asyncio
import ctypes
import dataclasses
import hashlib
import hmac
import json
import mmap
import os
import pathlib
import shutil
import signal
import ssl
import struct
import subprocess
import time
import urllib.parse

# Generous, because the machine that runs this may be busy; nothing waits this long when all is well.
SLOWNESS = int(os.environ.get("TANDEM_TEST_PATIENCE", "1"))
PATIENCE = 60.0 * SLOWNESS
IS_SLOW_BUILD = SLOWNESS > 1


class Failed(Exception):
    """What a check found."""


def expect(condition, *details):
    if not condition:
        raise Failed(" | ".join(detail if isinstance(detail, str) else repr(detail) for detail in details) or "unexpected")


def equal(found, wanted, what=""):
    expect(found == wanted, f"{what}: found {found!r}, wanted {wanted!r}")


@dataclasses.dataclass
class App:
    id: str
    key: str
    secret: str
    settings: dict = dataclasses.field(default_factory=dict)

    def entry(self):
        """As the configuration file has it; JSON is YAML."""
        return {"id": self.id, "key": self.key, "secret": self.secret, **self.settings}

    def hmac(self, text):
        data = text if isinstance(text, bytes) else text.encode()
        return hmac.new(self.secret.encode(), data, hashlib.sha256).hexdigest()

    def auth(self, socket_id, channel, channel_data=None):
        """The auth value of a subscription."""
        return f"{self.key}:" + self.hmac(f"{socket_id}:{channel}" + (f":{channel_data}" if channel_data is not None else ""))

    def user_auth(self, socket_id, user_data):
        return f"{self.key}:" + self.hmac(f"{socket_id}::user::{user_data}")


# The vectors are made with this pair (docs/protocol.md, 4.2).
VECTOR_KEY, VECTOR_SECRET = "278d425bdf160c739803", "7ad3773142a6692b25b8"


def apps(receiver_port):
    """One app for each set of settings that checks need."""
    receiver = f"http://127.0.0.1:{receiver_port}"
    every_kind = [
        "channel_occupied", "channel_vacated", "member_added", "member_removed", "client_event", "cache_miss", "subscription_count"]
    hooks = [
        {"url": f"{receiver}/all", "events": every_kind},
        {"url": f"{receiver}/members", "events": ["member_added", "member_removed"]},
        {"url": f"{receiver}/failing", "events": ["client_event"]},
        {"url": f"{receiver}/slow", "events": ["cache_miss"]},
    ]
    dead = [{"url": "http://127.0.0.1:9/nobody", "events": every_kind}]
    listed = [
        App("1", "main-key", "main-secret"),
        App("3", VECTOR_KEY, VECTOR_SECRET),
        App("4", "small-key", "small-secret", {"presence_members_max": 3, "client_events": False, "event_data_bytes_max": 1024}),
        App("5", "quota-key", "quota-secret", {"max_connections": 2}),
        App("6", "off-key", "off-secret", {"enabled": False}),
        App("7", "origin-key", "origin-secret", {"allowed_origins": ["https://good.example"]}),
        App("8", "first-key", "first-secret", {"keys": [{"key": "second-key", "secret": "second-secret"}]}),
        App("9", "quick-key", "quick-secret", {"ping_interval": "1s", "pong_timeout": "1s", "activity_timeout": "7s"}),
        App("10", "count-key", "count-secret", {"subscription_count": True}),
        App("11", "hooks-key", "hooks-secret", {"webhooks": hooks, "subscription_count": True}),
        App("12", "dead-key", "dead-secret", {"webhooks": dead}),
        App("13", "empty-key", "empty-secret"),
        App("14", "unwatched-key", "unwatched-secret", {"watchlist": False}),
        App("15", "steady-key", "steady-secret", {"client_events_per_second": 1000}),
        # For peers that are to stay: a second's pause of the machine is not theirs.
        App("16", "calm-key", "calm-secret", {"ping_interval": "1s", "pong_timeout": "6s", "activity_timeout": "7s"}),
    ]
    names = ("main", "vectors", "small", "quota", "off", "origin", "keys", "quick", "count", "hooks", "dead", "empty", "unwatched", "steady", "calm")
    return dict(zip(names, listed, strict=True))


class Clock:
    """The clocks of one hub, see clock.c."""

    ahead = 0

    def __init__(self, folder):
        self._library = folder / "clock.so"
        self._file = folder / "clock"
        self._file.write_bytes(bytes(24))
        with open(self._file, "r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 24)
        # Swift brings its own, also where only a link to `swift` is on the path.
        beside_swift = os.path.join(os.path.dirname(os.path.realpath(shutil.which("swift") or "/")), "clang")
        compiler = next(filter(None, map(shutil.which, ("cc", "clang", "gcc", beside_swift))), None)
        expect(compiler, "there is no C compiler")
        source = pathlib.Path(__file__).with_name("clock.c")
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", self._library, source], check=True)

    @property
    def environment(self):
        return {"LD_PRELOAD": str(self._library), "TEST_CLOCK": str(self._file)}

    def _set(self, index, seconds):
        struct.pack_into("q", self._memory, index * 8, int(seconds * 1_000_000_000))

    def stop_wall(self, at):
        """The wall clock stands at so many seconds since 1970."""
        self._set(0, at)

    def shift(self, seconds):
        """Both clocks are so far ahead."""
        self.ahead = seconds
        self._set(1, seconds)
        self._set(2, seconds)


def _die_with_parent():
    # However this program ends, nothing that it started goes on.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Hub:
    """A running `tandem serve`."""

    def __init__(self, process, port, log, apps, clock, tls):
        self.process, self.port, self.log, self.apps, self.clock, self.tls = process, port, log, apps, clock, tls

    @classmethod
    async def start(cls, folder, apps, loops=int(os.environ.get("CONFORMANCE_LOOPS", "2")), port=0, limits=None, clock=None, is_secure=False, backplane=None, store=None, settings=None, channels=None):
        """Starts one on `port`, or on a free one, and waits until it is ready. `settings` go into its environment; TANDEM among them is another executable."""
        folder.mkdir(parents=True, exist_ok=True)
        configuration = {"apps": [app.entry() for app in apps.values()]}
        if limits:
            configuration["limits"] = limits
        configuration.update({name: value for name, value in (("backplane", backplane), ("store", store)) if value})
        (folder / "tandem.yaml").write_text(json.dumps(configuration))
        environment = dict(os.environ, **(clock.environment if clock else {}), **(settings or {}))
        if is_secure:
            environment.update(TANDEM_TLS_CERT=os.environ["CONFORMANCE_CERT"], TANDEM_TLS_KEY=os.environ["CONFORMANCE_KEY"])
        tls = ssl.create_default_context(cafile=os.environ["CONFORMANCE_CA"]) if is_secure else None
        log = folder / "hub.log"
        with open(log, "ab") as errors:
            process = await asyncio.create_subprocess_exec(
                environment["TANDEM"], "serve", "--config", folder / "tandem.yaml", "--port", str(port), "--loops", str(loops),
                "--data", folder / "data", "--channels", channels or os.environ["CHANNELS"], "--log-level", "info",
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, preexec_fn=_die_with_parent,
                env=environment)
        prefix = b"Tandem is ready at http%s://127.0.0.1:" % (b"s" if is_secure else b"")
        async with asyncio.timeout(PATIENCE):
            banner = await process.stdout.readline()
        if not banner.startswith(prefix):
            raise Failed(f"the hub did not start: {banner!r} {log.read_text()[-2000:]}")
        hub = cls(process, int(banner[len(prefix):]), log, apps, clock, tls)
        # Reads on, so that the hub never waits for a reader.
        hub._rest = asyncio.ensure_future(process.stdout.read())
        return hub

    async def end(self, sent=signal.SIGKILL):
        """Ends it, if it still runs, and returns its exit code."""
        if self.process.returncode is None:
            self.process.send_signal(sent)
        async with asyncio.timeout(PATIENCE):
            return await self.process.wait()

    def resident_kilobytes(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))

    async def travel(self):
        """Until all nodes of the hub know what one of them has answered. A single hub knows at once."""

    async def read(self):
        """Until all nodes have read what any of them has sent to the others."""

    # --- HTTP ---

    async def connect(self, **options):
        """A connection to read from and write to."""
        address = {} if "sock" in options else {"host": "127.0.0.1", "port": self.port}
        return await asyncio.open_connection(**address, **options, ssl=self.tls, server_hostname="127.0.0.1" if self.tls else None)

    async def request(self, method, target, body=b"", headers=None):
        """One request over a connection of its own, with the target exactly as given."""
        async with asyncio.timeout(PATIENCE):
            reader, writer = await self.connect()
            lines = [f"{method} {target} HTTP/1.1", f"Host: 127.0.0.1:{self.port}", "Connection: close"]
            if body or method == "POST":
                lines.append(f"Content-Length: {len(body)}")
            for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
                lines.append(f"{name}: {value}")
            writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
            try:
                return await Answer.read(reader)
            finally:
                writer.close()

    async def call(self, method, path, body=None, app="main", params=(), raw=None, **options):
        """A signed request below the app's own path."""
        app = self.apps[app] if isinstance(app, str) else app
        data = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        if self.clock and "timestamp" not in options:
            options["timestamp"] = int(time.time() + self.clock.ahead)
        return await self.request(method, signed_target(app, method, f"/apps/{app.id}{path}", data, params, **options), data)

    async def post(self, path, body=None, app="main", **options):
        return await self.call("POST", path, body, app, **options)

    async def get(self, path, app="main", **params):
        answer = await self.call("GET", path, None, app, params=tuple(params.items()))
        return answer

    async def publish(self, channel, name, data="{}", app="main", **members):
        """An event, which must be accepted."""
        channels = {"channels": list(channel)} if isinstance(channel, (list, tuple)) else {"channel": channel}
        answer = await self.post("/events", {"name": name, "data": data, **channels, **members}, app)
        equal(answer.status, 200, answer.text)
        return answer.json


def signed_parameters(app, method, path, body=b"", params=(), timestamp=None, **changes):
    """The parameters of a signed request in their usual order; `changes` replaces, or with None leaves out, what is signed."""
    query = {**dict(params), "auth_key": app.key, "auth_timestamp": str(timestamp or int(time.time())), "auth_version": "1.0"}
    if body:
        query["body_md5"] = hashlib.md5(body).hexdigest()
    for name, value in changes.items():
        if value is None:
            query.pop(name, None)
        else:
            query[name] = value
    text = "&".join(f"{name}={value}" for name, value in sorted((name.lower(), value) for name, value in query.items()))
    query["auth_signature"] = app.hmac(f"{method}\n{path}\n{text}")
    return query


def signed_target(app, method, path, body=b"", params=(), **options):
    query = signed_parameters(app, method, path, body, params, **options)
    return f"{path}?" + "&".join(f"{name}={urllib.parse.quote(str(value), safe='')}" for name, value in query.items())


@dataclasses.dataclass
class Answer:
    status: int
    headers: dict
    body: bytes

    @classmethod
    async def read(cls, reader):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers["content-length"])) if "content-length" in headers else await reader.read()
        return cls(int(head[0].split()[1]), headers, body)

    @property
    def text(self):
        return self.body.decode()

    @property
    def json(self):
        return json.loads(self.body)

    def refused(self, status, *words):
        """Checks that this is a refusal with that status and a sentence that has the words."""
        equal(self.status, status, self.text)
        sentence = self.json["error"]
        expect(isinstance(sentence, str) and sentence, "no sentence", self.text)
        for word in words:
            expect(word in sentence, f"'{word}' is missing", sentence)
        return self
