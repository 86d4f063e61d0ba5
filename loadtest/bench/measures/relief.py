"""How long giving memory back holds a loop up, when a crowd with TLS leaves at once."""

import os
import re
import time

from callgrind import compiled
from common.programs import raise_descriptor_limit, text
from crowd import WAVE, Crowd, SecureHub, build_crowd

CLIENTS = 15_000
# By then the hub has trimmed for the last time.
LEFT_SECONDS = 4
TRIM = re.compile(r"^trim (\S+) (\S+) (\d+) (\d+)$", re.MULTILINE)


class TimedHub(SecureHub):
    """Says how long each trim took. One loop, so that one arena has all."""

    def __init__(self, binary, clock):
        super().__init__(binary, environment={"LD_PRELOAD": clock})

    def trims(self):
        """Milliseconds on the clock, milliseconds of CPU, and kilobytes given back, of each trim so far."""
        return [
            (float(wall), float(cpu), int(before) - int(after)) for wall, cpu, before, after in TRIM.findall(text(self.output_path))]


def measure(binary, folder):
    raise_descriptor_limit(CLIENTS + 200)
    crowd_binary = build_crowd(folder)
    clock = compiled("trim_clock.c", os.path.join(folder, "trim-clock.so"), "openssl", options=("-shared", "-fPIC"))
    with TimedHub(binary, clock) as hub:
        with Crowd(crowd_binary, hub.port, "private-idle", "tls") as crowd:
            crowd.come(CLIENTS, WAVE)
            came = len(hub.trims())
        time.sleep(LEFT_SECONDS)
        trims = hub.trims()[came:]
        hub.kill()
    if not trims:
        raise SystemExit("bench: nothing was given back after a crowd had left")
    return {
        "relief_ms_max": max(wall for wall, _, _ in trims), "relief_cpu_ms_max": max(cpu for _, cpu, _ in trims),
        "relief_cpu_ms": sum(cpu for _, cpu, _ in trims), "relief_trims": len(trims),
        "relief_megabytes": sum(given for _, _, given in trims) / 1024,
    }
