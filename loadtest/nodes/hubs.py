"""One node, and several as one hub, with the CPU that each process has taken."""

import glob
import os
import subprocess

from common import figures
from common.nodes import START_SECONDS, start_node, start_redis
from common.output import setting
from common.programs import environment, fail, wait_for_port
from common.workspace import ROOT, built

APP, KEY, SECRET = "1", "nodes-key", "nodes-secret"
CONFIGURATION = f"""\
listen: {{ host: 127.0.0.1, port: 0, loops: LOOPS }}
apps:
  - id: "{APP}"
    key: {KEY}
    secret: {SECRET}
    presence_members_max: 100000
    activity_timeout: 3600s
    ping_interval: 3600s
    pong_timeout: 3600s
"""
NODES = setting("NODES", 3)
if NODES < 2:
    fail(f"NODES is 2 or more, not {NODES}: one node is measured beside them")


class Node:
    """A hub's process."""

    def __init__(self, process, output):
        self.process, self.pid = process, process.pid
        self.port = wait_for_port(process, START_SECONDS, "a node", output)

    def cpu(self):
        """User and system seconds of all threads, as exactly as the kernel counts."""
        seconds = 0.0
        for path in glob.glob(f"/proc/{self.pid}/task/*/schedstat"):
            try:
                with open(path) as file:
                    seconds += int(file.read().split()[0]) / 1e9
            except OSError:
                continue
        if not seconds:
            fail(f"a node has ended with {self.process.poll()}")
        return seconds


class Hub:
    """The nodes that clients see as one."""

    def __init__(self, name, nodes):
        self.name, self.nodes = name, nodes

    @property
    def ports(self):
        return [node.port for node in self.nodes]

    def cpu(self):
        return sum(node.cpu() for node in self.nodes)


def psql(text):
    """The answer of a statement to the nodes' database."""
    done = subprocess.run(
        ["psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set", "ON_ERROR_STOP=1", "--dbname",
         os.environ["TANDEM_TEST_POSTGRES"], "--command", text], capture_output=True, text=True)
    if done.returncode:
        fail(f"psql failed: {done.stderr}")
    return done.stdout.strip()


class World:
    """One hub of one node on SQLite, one of several on PostgreSQL and Redis, all at once.

    `wide` is one node again, with as many loops as the several nodes have together: so many threads write there, too.
    """

    def __init__(self, folder, programs):
        self.folder, tandem = folder, built("tandem", "build")
        self.tester = built("tandem-loadtest", "nodes")
        channels = os.path.join(ROOT, "channels")

        def arguments(loops):
            configuration = os.path.join(folder, f"tandem-{loops}.yaml")
            with open(configuration, "w") as file:
                file.write(CONFIGURATION.replace("LOOPS", str(loops)))
            return ["--config", configuration, "--channels", channels]

        # Each file is written once: a node that reads it meanwhile would find it empty, and run on defaults.
        with_loops = {loops: arguments(loops) for loops in (1, NODES)}

        def alone(loops, name):
            output = os.path.join(folder, f"one-{loops}.log")
            process = programs.start(
                [tandem, "serve", *with_loops[loops], "--data", os.path.join(folder, f"one-{loops}")], output,
                settings=environment(NO_PROXY="*"))
            return Hub(name, [Node(process, output)])

        self.redis, redis_port = start_redis(programs, folder)
        self.one, self.wide = alone(1, "one node"), alone(NODES, f"one node, {NODES} loops")
        started = [start_node(programs, tandem, folder, place, redis_port, with_loops[1]) for place in range(1, NODES + 1)]
        self.many = Hub(f"{NODES} nodes", [Node(*entry) for entry in started])
        # Sessions of the nodes stay, and all are children of one process.
        session = psql("SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() LIMIT 1")
        self.postmaster = int(_stat(int(session))[1])

    def redis_cpu(self):
        return sum(figures.cpu_seconds(self.redis.pid))

    def postgres_cpu(self):
        """Of all processes of the server, those included that have ended."""
        ticks = sum(int(field) for field in _stat(self.postmaster)[11:15])
        with open(f"/proc/{self.postmaster}/task/{self.postmaster}/children") as file:
            for child in file.read().split():
                try:
                    ticks += sum(int(field) for field in _stat(int(child))[11:13])
                except OSError:
                    continue
        return ticks / figures.TICKS

    def cpu(self, hub):
        """Seconds of the hub's nodes, of Redis and of PostgreSQL so far."""
        return hub.cpu(), self.redis_cpu(), self.postgres_cpu()


def _stat(pid):
    """The fields of a process's `stat` after its name: state, parent, ..."""
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()
