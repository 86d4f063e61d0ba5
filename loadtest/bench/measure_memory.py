"""Resident bytes of the hub per idle connection with one subscription."""

from hub_process import Hub, raise_descriptor_limit
from workload import Workload, wait_until_steady

CONNECTIONS = 5000
SPARE_DESCRIPTORS = 200
# Come and publish before the first reading, so that what is made once per process is not counted.
WARM_UP = 10
STEADY_KILOBYTES = 64
STEADY_SECONDS = 30


def measure(binary, folder):
    raise_descriptor_limit(CONNECTIONS + SPARE_DESCRIPTORS)
    with Hub(binary) as hub, Workload(hub, WARM_UP, channel="warm-up") as warm_up:
        warm_up.rounds(10, 1)
        before = wait_until_steady(hub.resident_kilobytes, STEADY_KILOBYTES, STEADY_SECONDS)
        with Workload(hub, CONNECTIONS) as load:
            after = wait_until_steady(hub.resident_kilobytes, STEADY_KILOBYTES, STEADY_SECONDS)
            # They are really subscribed: one event reaches all of them.
            load.rounds(1, 1)
    return {"bytes_per_idle_connection": (after - before) * 1024 / CONNECTIONS}
