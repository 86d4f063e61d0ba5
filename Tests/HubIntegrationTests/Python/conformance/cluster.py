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

    @classmethod
    async def start(cls, folder):
        folder.mkdir(parents=True, exist_ok=True)
        server = cls()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            server.port = free.getsockname()[1]
        server.process = subprocess.Popen(
            ["redis-server", "--bind", "127.0.0.1", "--port", str(server.port), "--save", "", "--appendonly", "no",
             "--dir", str(folder), "--logfile", str(folder / "redis.log")], preexec_fn=hub._die_with_parent)
        async with asyncio.timeout(hub.PATIENCE):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
                    writer.close()
                    return server
                except OSError:
                    await asyncio.sleep(0.02)

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

    async def call(self, method, path, body=None, app="main", **options):
        # A subscription is acknowledged by its node, and counted by the others as soon as it has travelled.
        if method == "GET":
            await self.travel()
        return await super().call(method, path, body, app, **options)

    def resident_kilobytes(self):
        return sum(node.resident_kilobytes() for node in self.nodes)
