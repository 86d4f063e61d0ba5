"""Faults of a hub of three nodes, on real processes: what their clients, publishers and webhooks see, by sockets and HTTP alone.

    faults run [CASE…]       runs these cases, or all but the long ones, and says each fact that was judged; exit code 1: one is wrong
    faults list              lists the cases

A name may end with `*`. Needs redis-server, and the environment variables TANDEM (the executable), CHANNELS (its channel definitions)
and TANDEM_TEST_POSTGRES, which Tests/StoreTests/postgres.sh sets. KEEP=1 keeps the logs. PREVIOUS names the executable of the
build before, for `upgrade`.
"""

import asyncio
import contextlib
import fnmatch
import os
import pathlib
import shutil
import sys
import tempfile
import time
import traceback

sys.path.insert(1, str(pathlib.Path(__file__).parents[2] / "HubIntegrationTests" / "Python" / "conformance"))

import nodes
import rolling
import servers
import surface
import upgrade
from hub import Failed
from world import Judge, World

MODULES = (nodes, servers, rolling, upgrade, surface)
# Longer than a test may take that runs with every change.
LONG = {"redis-empty-60", *surface.CASES}
CASE_SECONDS_MAX = 300


def all_cases():
    return {name: case for module in MODULES for name, case in module.CASES.items()}


async def run_case(name, case, folder):
    judge, began = Judge(name), time.monotonic()
    print(f"{name}: {case.__doc__.strip()}", flush=True)
    world = World(folder / name, judge)
    try:
        async with asyncio.timeout(CASE_SECONDS_MAX):
            await world.start(**(await case.prepare(folder / name) if hasattr(case, "prepare") else {}))
            await case(world, judge)
    except (Failed, TimeoutError, Exception) as error:
        lines = [f"{pathlib.Path(frame.filename).name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)]
        judge.fact(False, "the case runs to its end", f"{type(error).__name__}: {error} ({' '.join(lines[-5:])})")
    with contextlib.suppress(Exception):
        await world.end()
    print(f"  {time.monotonic() - began:.1f} s; this process woke {world.pace:.2f} s late at the most", flush=True)
    return judge.mistakes


async def main():
    command, *patterns = sys.argv[1:] or ["list"]
    cases = all_cases()
    if command == "list":
        return [print(f"{name:22}{'(long) ' if name in LONG else ''}{case.__doc__.strip()}") for name, case in cases.items()] and 0
    unknown = [pattern for pattern in patterns if not fnmatch.filter(cases, pattern)]
    if command != "run" or unknown:
        print(f"faults: there is no {unknown[0] if unknown else command}; `faults list` lists the cases", file=sys.stderr)
        return 64
    chosen = [name for name in cases if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)] if patterns else [
        name for name in cases if name not in LONG]
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tandem-faults-"))
    wrong = [name for name in chosen if await run_case(name, cases[name], folder)]
    if os.environ.get("KEEP"):
        print(f"logs are kept in {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{len(chosen)} cases, {len(wrong)} wrong{': ' + ' '.join(wrong) if wrong else ''}")
    return 1 if wrong else 0


sys.exit(asyncio.run(main()))
