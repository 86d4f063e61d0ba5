"""Runs real client libraries against a real hub, and prints what each was seen to do: `make test-libraries`. Settings: BUILD=debug.

PyPI has these; the libraries of other languages come from registries of their own, and docs/clients.md says how each of them was seen.
"""

import importlib.metadata
import logging
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
LOADTEST = os.path.join(os.path.dirname(os.path.dirname(HERE)), "loadtest")
sys.path[1:1] = [LOADTEST, os.path.join(LOADTEST, "one-surface")]

import backend
import clients
from common.workspace import built, workspace
from world import World


def main():
    # asyncpusher logs each attempt that fails.
    logging.disable()
    binary, failed = built("tandem", "test-libraries", os.environ.get("BUILD") or "debug"), []
    with workspace() as (folder, programs):
        world = World(programs, binary, folder)
        for kind, check in [(clients.Pysher, clients.check), (clients.AsyncPusher, clients.check), (backend.Pusher, backend.check)]:
            seen = []
            try:
                for fact in check(kind, world):
                    seen.append(fact)
            except Exception as error:
                failed.append(f"{kind.name}: {type(error).__name__}: {error}")
            print(f"{kind.name} {importlib.metadata.version(kind.package)}: {', '.join(seen) or 'nothing'}", flush=True)
        for text in failed:
            print(f"  FAILED {text}")
    print(f"{len(failed)} failed", flush=True)
    # Threads of the libraries may still wait.
    os._exit(1 if failed else 0)


main()
