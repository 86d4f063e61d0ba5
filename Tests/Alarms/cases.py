"""What goes wrong, and the alerts that have to fire then."""

import asyncio
import json
import os
import resource
import ssl
import threading
import time
import urllib.parse

import programs as surface
import wire
from common import hub, nodes
from common.programs import fail, run, wait_for_port
from link import Link
from metrics import Reading, firing

CHANNELS = os.path.join(os.path.dirname(os.path.abspath(surface.__file__)), "channels")
PATIENCE = 120


class Hub(hub.Hub):
    """One hub whose configuration is the case's."""

    def start(self, gateways=None, listen=""):
        text = surface.CONFIGURATION.replace("PORT", str(self.port)).replace("LOOPS }", "1" + listen + " }")
        self.launch(text, gateways.settings if gateways else {})
        return self


class World:
    def __init__(self, folder, programs, binaries):
        os.makedirs(folder)
        self.folder, self.programs, self.binaries, self.started = folder, programs, binaries, []

    def hub(self, gateways=None, listen=""):
        # A write beyond the limit of a file's size then fails, and ends nothing.
        shell = os.path.join(self.folder, "tandem")
        with open(shell, "w") as file:
            file.write(f"#!/bin/bash\ntrap '' XFSZ\nexec '{self.binaries['tandem']}' \"$@\"\n")
        os.chmod(shell, 0o755)
        made = Hub(self.programs, shell, self.folder, "hub", CHANNELS).start(gateways, listen)
        self.started.append(made.process)
        return made

    def gateways(self):
        made = surface.Gateways(self.programs, self.binaries["tandem-gateways"], self.folder)
        self.started.append(made.process)
        return made

    def end(self):
        for process in self.started:
            self.programs.kill(process)


def until(condition, what, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.1)
    fail(f"waited {seconds} s for {what}")


def value(reading, name, **labels):
    """The sum of a metric's series that have these labels."""
    wanted = [f'{label}="{text}"' for label, text in labels.items()]
    return sum(number for (own, text), number in reading.values.items() if own == name and all(word in text for word in wanted))


def read_until(port, condition, what):
    """The first reading that meets a condition."""
    def once():
        reading = Reading(port)
        return reading if condition(reading) else None
    return until(once, what)


def call(port, method, path, **body):
    caller = wire.Caller(port, timeout=30)
    status, answer = caller.call(wire.signed(method, f"/apps/{wire.APP}{path}", json.dumps(body).encode()))
    caller.close()
    return status, answer


def push(port, tokens):
    status, answer = call(port, "POST", "/notifications", to={"tokens": tokens}, notification={"title": "T", "body": "B"}, ttl="1h")
    if status != 200:
        fail(f"a direct send was refused: {status} {answer}")


def fault(gateways, provider, **fault):
    path = f"{gateways.control}/faults/*?provider={provider}"
    request = surface.urllib.request.Request(path, method="PUT", data=json.dumps([{"times": 1000, **fault}]).encode())
    surface.urllib.request.urlopen(request, timeout=30).close()


def hub_is_gone(world):
    hub = world.hub()
    before = Reading(hub.port)
    quiet = firing(world.folder, before, before)
    world.programs.kill(hub.process)
    try:
        Reading(hub.port)
        fail("the hub still answers")
    except OSError:
        return quiet, firing(world.folder, before, before, is_up=False), ["TandemDown"]


def lane_is_stopped(world):
    """Apple refuses the provider token; all but the one that tries it again wait for longer than a minute."""
    gateways = world.gateways()
    hub = world.hub(gateways)
    before = Reading(hub.port)
    quiet = firing(world.folder, before, before)
    fault(gateways, "apns", status=403, reason="InvalidProviderToken")
    push(hub.port, [digit * 64 for digit in "abcdef"])
    after = read_until(hub.port, lambda reading: value(reading, "tandem_outbox_oldest_seconds") > 60, "a push to be a minute late")
    return quiet, firing(world.folder, before, after), ["TandemPushLaneStopped", "TandemPushesLate"]


def pushes_fail(world):
    gateways = world.gateways()
    hub = world.hub(gateways)
    before = Reading(hub.port)
    fault(gateways, "fcm", status=400, reason="INVALID_ARGUMENT")
    push(hub.port, [f"fcm{number}:APA91b{'x' * 120}" for number in range(90)])
    some = read_until(hub.port, lambda reading: value(reading, "tandem_pushes_ended_total", state="failed") >= 90, "90 dead letters")
    # Ninety are below the rule's hundred.
    quiet = firing(world.folder, before, some)
    push(hub.port, [f"more{number}:APA91b{'x' * 120}" for number in range(30)])
    after = read_until(hub.port, lambda reading: value(reading, "tandem_pushes_ended_total", state="failed") >= 120, "120 dead letters")
    return quiet, firing(world.folder, before, after), ["TandemDeadLetters"]


def disk_is_full(world):
    hub = world.hub()
    call(hub.port, "PUT", "/sessions/main", definition="arena", join_code="maincode")

    def publish():
        return call(hub.port, "POST", "/events", name="alarm", channels=["private-arena-main"], data=json.dumps({"n": 1, "x": "x" * 8000}))[0]

    first = Reading(hub.port)
    statuses = {publish() for _ in range(20)}
    before = Reading(hub.port)
    # Growing as fast as this for ten minutes is no reason to call anybody.
    quiet = firing(world.folder, first, before, grows=True) if statuses == {200} else [str(statuses)]
    log = os.path.join(hub.data, "tandem.db-wal")
    resource.prlimit(hub.process.pid, resource.RLIMIT_FSIZE, (os.stat(log).st_size, resource.RLIM_INFINITY))
    statuses = {publish() for _ in range(20)}
    after = Reading(hub.port)
    found = firing(world.folder, before, after, grows=True)
    return quiet, found if 503 in statuses else [str(statuses)], ["TandemStoreSlow", "TandemServerErrors"]


def descriptors_run_out(world):
    hub = world.hub()
    before = Reading(hub.port)
    quiet = firing(world.folder, before, before)
    most = int(value(before, "process_open_fds")) + 12
    resource.prlimit(hub.process.pid, resource.RLIMIT_NOFILE, (most, most))
    import socket
    clients = [socket.create_connection(("127.0.0.1", hub.port)) for _ in range(10)]
    after = read_until(hub.port, lambda reading: value(reading, "process_open_fds") > 0.9 * most, "the descriptors to be short")
    for client in clients:
        client.close()
    return quiet, firing(world.folder, before, after), ["TandemDescriptorsShort"]


def loop_is_busy(world):
    """Handshakes with an RSA key of 8192 bits, many at a time: each turn is long, on every machine."""
    certificate, key = os.path.join(world.folder, "tls.pem"), os.path.join(world.folder, "tls.key")
    run(["openssl", "req", "-x509", "-newkey", "rsa:8192", "-nodes", "-days", "30", "-keyout", key, "-out", certificate, "-subj",
         "/CN=127.0.0.1"], "making a certificate")
    hub = world.hub(listen=f", tls: {{ cert: {certificate}, key: {key} }}")
    context = ssl._create_unverified_context()
    first = Reading(hub.port, context)
    time.sleep(2)
    before = Reading(hub.port, context)
    quiet = firing(world.folder, first, before, grows=True)

    async def storm():
        async def one():
            _, writer = await asyncio.open_connection("127.0.0.1", hub.port, ssl=context)
            writer.close()
        for _ in range(3):
            await asyncio.gather(*(one() for _ in range(30)), return_exceptions=True)

    asyncio.run(storm())
    after = Reading(hub.port, context)
    return quiet, firing(world.folder, before, after, grows=True), ["TandemLoopBusy"]


class Way:
    """The way to a server on this machine, which can be closed."""

    def __init__(self, port):
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self.link = asyncio.run_coroutine_threadsafe(self._start(port), self.loop).result(30)

    async def _start(self, port):
        return await Link(port).start()

    def close(self):
        self.loop.call_soon_threadsafe(self.link.close)


def node(world, gateways=None):
    """One node of a hub, with a way to PostgreSQL, and Redis: its port, the way, and Redis' process."""
    store = urllib.parse.urlsplit(os.environ["TANDEM_TEST_POSTGRES"])
    way = Way(store.port)
    address = store._replace(netloc=store.netloc.replace(f":{store.port}", f":{way.link.port}")).geturl()
    redis, port = nodes.start_redis(world.programs, world.folder)
    settings = dict(gateways.settings if gateways else {}, TANDEM_APP_KEY=wire.KEY, TANDEM_APP_SECRET=wire.SECRET, TANDEM_CHANNELS=CHANNELS)
    process, output = start_node(world, port, address, settings)
    world.started += [process, redis]
    return wait_for_port(process, nodes.START_SECONDS, "the node", output), way, redis


def start_node(world, redis, store, settings):
    former, os.environ["TANDEM_TEST_POSTGRES"] = os.environ["TANDEM_TEST_POSTGRES"], store
    try:
        return nodes.start_node(world.programs, world.binaries["tandem"], world.folder, 0, redis, **settings)
    finally:
        os.environ["TANDEM_TEST_POSTGRES"] = former


def postgres_is_away(world):
    port, way, _ = node(world)
    before = read_until(port, lambda reading: value(reading, "tandem_postgres_failing") == 0, "PostgreSQL to take writes")
    quiet = firing(world.folder, before, before)
    way.close()
    after = read_until(port, lambda reading: value(reading, "tandem_postgres_failing") == 1, "PostgreSQL to be away")
    return quiet, firing(world.folder, before, after), ["TandemPostgresAway"]


def node_is_deaf(world):
    port, _, redis = node(world)
    before = read_until(port, lambda reading: value(reading, "tandem_backplane_connected") == 1, "the node to be connected")
    quiet = firing(world.folder, before, before)
    world.programs.kill(redis)
    after = read_until(port, lambda reading: value(reading, "tandem_backplane_probe_age_seconds") > 5, "the node to hear nothing")
    return quiet, firing(world.folder, before, after), ["TandemNodeDeaf"]


CASES = [
    hub_is_gone, lane_is_stopped, pushes_fail, disk_is_full, descriptors_run_out, loop_is_busy, postgres_is_away, node_is_deaf,
]
