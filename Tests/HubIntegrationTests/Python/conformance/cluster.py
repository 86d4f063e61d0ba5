"""Several hubs that are one, behind a balancer that gives each new connection to the next of them.

Needs redis-server, and a PostgreSQL that TANDEM_TEST_POSTGRES names: Tests/StoreTests/postgres.sh starts one.
"""

import asyncio
import os
import pathlib
import signal
import socket
import subprocess
import sys

import hub

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from balancer import Balancer  # noqa: E402

NODES = int(os.environ.get("CONFORMANCE_NODES", "1"))
# Time in which a change on one node has come to all of them.
TRAVEL_SECONDS = 0.3


class Redis:
    """A Redis server that keeps nothing on the disk."""

    def __init__(self, folder, process, port):
        self.folder, self.process, self.port = folder, process, port

    @classmethod
    async def start(cls, folder, port=0, master=None):
        """Starts one on `port`, or on a free one; a replica of the server at the port `master`, where there is one."""
        folder.mkdir(parents=True, exist_ok=True)
        if not port:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
        process = subprocess.Popen(
            ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--appendonly", "no",
             "--dir", str(folder), "--logfile", str(folder / "redis.log"), "--repl-diskless-sync-delay", "0",
             *(["--replicaof", f"127.0.0.1 {master}"] if master else [])], preexec_fn=hub._die_with_parent)
        server = cls(folder, process, port)
        async with asyncio.timeout(hub.PATIENCE):
            while True:
                try:
                    await server.ask("PING")
                    return server
                except OSError:
                    await asyncio.sleep(0.02)

    async def ask(self, *words):
        """The answer to one command: text, a number, or a list of such."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in map(str.encode, words)))
            return await self._answer(reader)
        finally:
            writer.close()

    async def _answer(self, reader):
        line = (await reader.readuntil(b"\r\n"))[:-2].decode()
        kind, rest = line[0], line[1:]
        if kind == "$":
            return None if rest == "-1" else (await reader.readexactly(int(rest) + 2))[:-2].decode()
        if kind == "*":
            return [await self._answer(reader) for _ in range(int(rest))]
        return int(rest) if kind == ":" else line if kind == "-" else rest

    async def again(self):
        """Starts it anew, without anything that it knew."""
        self.process = (await Redis.start(self.folder, self.port)).process

    def end(self):
        self.process.kill()
        self.process.wait()


class Cluster(hub.Hub):
    """Looks like one hub, whose port is the balancer's."""

    @classmethod
    async def start(cls, folder, apps, **options):
        redis = await Redis.start(folder / "redis")
        backplane = f"redis://127.0.0.1:{redis.port}"
        store = os.environ["TANDEM_TEST_POSTGRES"]
        nodes = await asyncio.gather(
            *(hub.Hub.start(folder / f"node-{place}", apps, backplane=backplane, store=store, **options) for place in range(NODES)))
        first = nodes[0]
        cluster = cls(first.process, first.port, first.log, apps, first.clock, first.tls)
        cluster.nodes, cluster.redis = nodes, redis
        cluster.balancer = await Balancer([node.port for node in nodes]).start()
        cluster.port = cluster.balancer.port
        return cluster

    async def end(self, sent=signal.SIGKILL):
        self.balancer.close()
        codes = [await node.end(sent) for node in self.nodes]
        self.redis.end()
        return next((code for code in codes if code), 0)

    async def travel(self):
        await asyncio.sleep(TRAVEL_SECONDS)
        await self.read()

    async def read(self):
        # A node answers this once it has read everything that was sent before.
        await asyncio.gather(
            *(hub.Hub.call(node, "GET", "/channels/cache-travel", app=next(iter(self.apps)), params=(("info", "cache"),)) for node in self.nodes),
            return_exceptions=True)

    async def call(self, method, path, body=None, app="main", **options):
        # A subscription is acknowledged by its node, and counted by the others as soon as it has travelled.
        if method == "GET":
            await self.travel()
        return await super().call(method, path, body, app, **options)

    def resident_kilobytes(self):
        return sum(node.resident_kilobytes() for node in self.nodes)
