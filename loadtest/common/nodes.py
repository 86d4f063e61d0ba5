"""Redis, and nodes of one hub on it, on this machine alone. PostgreSQL comes from Tests/StoreTests/postgres.sh."""

import os
import socket

from common.programs import environment, wait_for

START_SECONDS = 60


def start_redis(programs, folder):
    """A Redis that writes nothing to disk: its process and its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    output = os.path.join(folder, "redis.log")
    process = programs.start(
        ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--appendonly", "no", "--dir", folder], output)
    wait_for("Ready to accept connections", process, START_SECONDS, "redis-server", output)
    return process, port


def start_node(programs, binary, folder, place, redis, arguments=(), **settings):
    """A node of the hub on this Redis, on a free port: its process and its output. It may still be starting."""
    settings = environment(
        NO_PROXY="*", TANDEM_PORT="0", TANDEM_STORE=os.environ["TANDEM_TEST_POSTGRES"], TANDEM_BACKPLANE=f"redis://127.0.0.1:{redis}",
        TANDEM_DATA=os.path.join(folder, f"node-{place}"), TANDEM_LOOPS="1", **settings)
    output = os.path.join(folder, f"node-{place}.log")
    return programs.start([binary, "serve", *arguments], output, settings=settings), output
