"""Three hubs, a Redis between them and a balancer before them, until a signal ends all: see cluster.sh, which brings PostgreSQL."""

import asyncio
import os
import signal
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[1:1] = [os.path.dirname(HERE), os.path.join(ROOT, "Tests/HubIntegrationTests/Python/support")]
from balancer import Balancer  # noqa: E402
from common.nodes import START_SECONDS, start_node, start_redis  # noqa: E402
from common.programs import Programs, fail, wait_for_port  # noqa: E402

TANDEM = os.environ.get("TANDEM", os.path.join(ROOT, ".build/release/tandem"))
NODES = int(os.environ.get("NODES", "3"))
PORT = int(os.environ.get("PORT", "6001"))
# Everything listens on this machine alone.
OPERATOR = {"TANDEM_OPERATOR_KEY": "operator", "TANDEM_OPERATOR_SECRET": "operator-secret-0123"}


def message(nodes, folder):
    url = f"http://127.0.0.1:{PORT}"
    flag = "" if PORT == 6001 else f" --url {url}"
    lines = [f"Tandem is ready at {url}: {NODES} nodes as one hub, app 1 with key app-key and secret app-secret"]
    for place, (process, port, output) in enumerate(nodes, start=1):
        lines.append(f"  node {place}: http://127.0.0.1:{port}, process {process.pid}, log {output}")
    lines += [
        "Each new connection goes to the next node. Try in another terminal:",
        *(f"  export {name}={value}" for name, value in OPERATOR.items()),
        f"  alias tandem={TANDEM}",
        "  # The nodes, and the partitions that each holds:",
        f"  tandem cluster{flag}",
        "  # Reaches subscribers of all nodes:",
        f"  tandem publish{flag} my-channel greeting '{{\"text\":\"hello\"}}'",
        "  # Any node answers for all:",
        f"  tandem api{flag} GET /channels",
        "  # A node dies; the others go on:",
        f"  kill -9 {nodes[-1][0].pid}",
        "Ctrl-C ends everything.",
    ]
    return "\n".join(lines)


async def serve(programs, folder):
    _, redis = start_redis(programs, folder)
    started = [
        start_node(programs, TANDEM, folder, place, redis, TANDEM_CHANNELS=os.path.join(ROOT, "channels"), **OPERATOR)
        for place in range(1, NODES + 1)]
    nodes = [(process, wait_for_port(process, START_SECONDS, "a node", output), output) for process, output in started]
    try:
        balancer = await Balancer([port for _, port, _ in nodes]).start(PORT)
    except OSError as error:
        fail(f"port {PORT} cannot be used ({error.strerror}): end what listens there, or set PORT= to another one")
    print(message(nodes, folder), flush=True)
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    await ended.wait()
    balancer.close()


def main():
    if not os.access(TANDEM, os.X_OK):
        fail(f"{TANDEM} is missing: run `make cluster`")
    programs = Programs()
    # A signal while the programs still start ends them, too.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="tandem-cluster-") as folder:
        try:
            asyncio.run(serve(programs, folder))
        finally:
            programs.end()


main()
