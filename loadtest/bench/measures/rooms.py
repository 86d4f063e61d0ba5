"""User instructions per delivery in small rooms beside one big channel, by callgrind, and CPU beside big channels; the deliveries of a publish are as many in both."""

import os

from callgrind import CallgrindHub
from common.programs import raise_descriptor_limit
from hub_process import Hub
from measures.instructions import ALLOCATIONS, RELEASES, RETAINS
from report import Spread
from rooms import Rooms

ROOMS, SIZE = 1000, 10
# Channels in one publish: as many as the hub takes.
WIDTH = 100
ROUNDS_SHORT, ROUNDS_LONG = 50, 200
CPU_ROUNDS, CPU_PUBLISHES = 7, 150
# Publishes go to these by turns, as they do to the rooms: a socket that nobody has touched for ten thousand deliveries is cold, whatever
# channel it is in. The process that holds both sides' sockets has no descriptors for ten.
BIG_CHANNELS = 8


def difference(hub, run):
    """The profile of one publish, on average: of a long phase less a short one."""
    run(5)
    hub.take_profile()
    run(ROUNDS_SHORT)
    shorter = hub.take_profile()
    run(ROUNDS_LONG)
    return hub.take_profile() - shorter


def costs(binary, folder, count, size, width):
    """Profiles of publishes to `width` of `count` rooms, and to as many channels that nobody has."""
    with CallgrindHub(binary, folder) as hub, Rooms(hub, count, size) as load:
        full = difference(hub, lambda rounds: load.rounds(rounds, width))
        empty = difference(hub, lambda rounds: load.empty_rounds(rounds, width))
    return full, empty


def cpu_microseconds(hub, load, width):
    """Server CPU, user and system, per delivery of one round."""
    before = sum(hub.user_and_system_seconds())
    deliveries = load.rounds(CPU_PUBLISHES, width)
    return (sum(hub.user_and_system_seconds()) - before) * 1e6 / deliveries


def cpu(binary):
    """Both hubs by turns within one run; the ratio is of the same round."""
    with Hub(binary) as one, Rooms(one, ROOMS, SIZE) as rooms, Hub(binary) as other, Rooms(other, BIG_CHANNELS, WIDTH * SIZE) as big:
        pairs = [(cpu_microseconds(one, rooms, WIDTH), cpu_microseconds(other, big, 1)) for _ in range(CPU_ROUNDS + 1)][1:]
    return {
        "rooms_cpu_microseconds": Spread.of(pair[0] for pair in pairs),
        "big_cpu_microseconds": Spread.of(pair[1] for pair in pairs),
        "rooms_cpu_ratio": Spread.of(pair[0] / pair[1] for pair in pairs),
    }


def measure(binary, folder, is_timed=True):
    raise_descriptor_limit(ROOMS * (SIZE + 1) + BIG_CHANNELS * WIDTH * SIZE + 200)
    publishes = ROUNDS_LONG - ROUNDS_SHORT
    deliveries = publishes * WIDTH * SIZE
    rooms, nobody = costs(binary, os.path.join(folder, "rooms"), ROOMS, SIZE, WIDTH)
    big, big_nobody = costs(binary, os.path.join(folder, "big"), 1, WIDTH * SIZE, 1)

    in_rooms, in_one = (rooms.total - nobody.total) / deliveries, (big.total - big_nobody.total) / deliveries
    results = {
        "rooms_instructions_per_delivery": rooms.total / deliveries,
        "rooms_ratio": rooms.total / big.total,
        "rooms_instructions_in_fan_out": in_rooms,
        "rooms_fan_out_ratio": in_rooms / in_one,
        "rooms_instructions_per_channel": (nobody.total - big_nobody.total) / publishes / (WIDTH - 1),
        "rooms_instructions_per_publish": nobody.total / publishes,
    }
    for name, functions in (("allocations", ALLOCATIONS), ("retains", RETAINS), ("releases", RELEASES)):
        results[f"rooms_{name}_in_fan_out"] = (rooms.calls_into(functions) - nobody.calls_into(functions)) / deliveries
    if is_timed:
        results.update(cpu(binary))
    return results, {"rooms": (rooms, publishes, deliveries), "empty": (nobody, publishes, 0)}
