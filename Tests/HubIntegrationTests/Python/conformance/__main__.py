"""Checks of the Pusher protocol against the real executable, each a function whose name begins with its id in the checklist
(docs/protocol.md, 10).

    conformance serve            reads names of checks, one a line, and answers each with a line of JSON: for the Swift tests
    conformance run [NAME…]      runs all checks, or those whose name begins so, and prints what they found: for people

Needs the environment variables TANDEM (the executable) and CHANNELS (its channel definitions). CONFORMANCE_LOOPS sets the number
of loops, CONFORMANCE_NODES that of hubs behind one balancer (cluster.py), TANDEM_TEST_PATIENCE by how much longer than usual it waits. A name after the word `tls` runs the check through TLS (hub.py).
"""

import asyncio
import json
import os
import pathlib
import re
import signal
import sys
import tempfile
import time
import traceback

import client
import cluster
import http_api
import hub
import nodes
import users
import webhooks
from channels import caches, client_events, delivery, presence, signatures, subscribing
from connections import connections, life, malformed
from libraries import libraries

# No check takes this long when all is well.
CHECK_SECONDS_MAX = 300 * hub.SLOWNESS
# More at a time would only make each other slow.
CHECKS_AT_A_TIME = 12
NAME = re.compile(r"[cn]\d\d_|lib_")
MODULES = (
    connections, subscribing, signatures, presence, caches, client_events, delivery, users, http_api, webhooks, life, malformed, libraries,
    *((nodes,) if cluster.NODES > 1 else ()))


def all_checks():
    return {name: function for module in MODULES for name, function in vars(module).items() if NAME.match(name)}


class Suite:
    def __init__(self, root):
        self.root = root
        self.checks = all_checks()
        self._folders = 0
        self._secure = None
        self._slots = asyncio.Semaphore(CHECKS_AT_A_TIME)

    def folder(self):
        self._folders += 1
        return self.root / f"hub-{self._folders}"

    async def start(self):
        self.receiver = await webhooks.Receiver().start()
        apps = hub.apps(self.receiver.port)
        self.hub = await (cluster.Cluster if cluster.NODES > 1 else hub.Hub).start(self.folder(), apps)
        return self

    async def hub_for(self, is_secure):
        """The hub of the checks with or without TLS; the one with TLS is started by the first of its checks."""
        if not is_secure:
            return self.hub
        if self._secure is None:
            self._secure = asyncio.ensure_future(hub.Hub.start(self.folder(), hub.apps(self.receiver.port), is_secure=True))
        return await self._secure

    async def check(self, words):
        """Runs the check of a name, with TLS after the word `tls`; returns what was wrong, or None."""
        name = words.removeprefix("tls ")
        function = self.checks.get(name)
        if function is None:
            return f"there is no check {name}"
        used = None
        async with self._slots:
            try:
                used = await self.hub_for(name != words)
                async with asyncio.timeout(CHECK_SECONDS_MAX), client.Session(used, self) as session:
                    await function(session)
            except (hub.Failed, TimeoutError, Exception) as error:
                place = traceback.extract_tb(error.__traceback__)
                lines = [f"{pathlib.Path(frame.filename).name}:{frame.lineno}" for frame in place if "conformance" in frame.filename]
                codes = [one.process.returncode for one in (self.hub, used) if one and one.process.returncode is not None]
                ended = f"; a hub has ended with {codes}" if codes else ""
                return f"{type(error).__name__}: {error} ({' '.join(lines[-4:])}){ended}"
        return None


async def serve(suite):
    """Until the end of standard input."""
    print(json.dumps({"checks": sorted(suite.checks)}), flush=True)
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)

    async def answer(name):
        print(json.dumps({"check": name, "error": await suite.check(name)}), flush=True)

    running = set()
    while line := await reader.readline():
        task = asyncio.ensure_future(answer(line.decode().strip()))
        running.add(task)
        task.add_done_callback(running.discard)


async def run(suite, prefixes):
    names = [name for name in suite.checks if not prefixes or name.startswith(tuple(prefixes))]
    failed = []

    async def one(name):
        began = time.monotonic()
        error = await suite.check(name)
        if error:
            failed.append(f"FAILED {name}: {error}")
        print(f"{time.monotonic() - began:6.2f} s  {'FAILED ' if error else ''}{name}" + (f"\n          {error}" if error else ""), flush=True)

    await asyncio.gather(*(one(name) for name in names))
    # Again at the end: the last lines of a log are often all that somebody sees of it.
    print("\n".join([f"{len(names)} checks, {len(failed)} failed; log: {suite.hub.log}", *failed]))
    return len(failed)


async def main():
    command, *names = sys.argv[1:]
    # Nothing of this outlives its test, whatever it waits for.
    signal.alarm(int(os.environ.get("CONFORMANCE_SECONDS_MAX", "1200")))
    with tempfile.TemporaryDirectory(prefix="tandem-conformance-", dir=os.getcwd() if command == "serve" else None) as folder:
        suite = await Suite(pathlib.Path(folder)).start()
        failed = await serve(suite) if command == "serve" else await run(suite, names)
        await suite.hub.end()
    sys.stdout.flush()
    # Threads of client libraries may still wait for their servers.
    os._exit(1 if failed else 0)


asyncio.run(main())
