"""What a client costs until it is subscribed to a private channel, beside the least that accepting and upgrading costs."""

import os

from callgrind import Counted, compiled
from common.programs import raise_descriptor_limit
from crowd import Crowd, CrowdedHub, build_crowd
from hub_process import Server
from report import Spread

CHANNEL = "private-crowd"
COUNTED_SHORT, COUNTED_LONG = 100, 500
# Who is there already when the second count is taken: what each newcomer costs must not grow with it.
THERE = 3000
COUNTED_WAVE = 20
TIMED, TIMED_ROUNDS = 5000, 7


class CountedHub(Counted, CrowdedHub):
    """The hub, counted."""


def counted(binary, crowd_binary, folder):
    with CountedHub(binary, folder) as hub, Crowd(crowd_binary, hub.port, CHANNEL) as crowd:
        def phase(count):
            crowd.come(count, COUNTED_WAVE)
            return hub.take_profile()

        def per_client():
            phase(COUNTED_WAVE)
            shorter, longer = phase(COUNTED_SHORT), phase(COUNTED_LONG)
            return longer - shorter, COUNTED_LONG - COUNTED_SHORT

        few = per_client()
        phase(THERE)
        many = per_client()
    return few, many


def timed_round(server, crowd):
    """Server CPU microseconds, and clients a second, for clients that come all at once and leave again."""
    before = sum(server.user_and_system_seconds())
    answer = crowd.come(TIMED)
    cpu = (sum(server.user_and_system_seconds()) - before) / TIMED * 1e6
    crowd.tell("drop")
    return cpu, TIMED / answer["seconds"]


def clocked(binary, crowd_binary, folder):
    with CrowdedHub(binary) as hub, Server(compiled("bare_upgrade.c", os.path.join(folder, "bare-upgrade"), "libcrypto")) as bare:
        with Crowd(crowd_binary, hub.port, CHANNEL) as clients, Crowd(crowd_binary, bare.port, CHANNEL, "bare") as upgrades:
            rounds = []
            for index in range(TIMED_ROUNDS + 1):
                pair = timed_round(hub, clients), timed_round(bare, upgrades)
                # The first fills caches and grows buffers.
                if index > 0:
                    rounds.append(pair)
    return {
        "accept_cpu_microseconds": Spread.of(of_hub[0] for of_hub, _ in rounds),
        "bare_upgrade_cpu_microseconds": Spread.of(of_bare[0] for _, of_bare in rounds),
        "accept_cpu_ratio": Spread.of(of_hub[0] / of_bare[0] for of_hub, of_bare in rounds),
        "accept_rate": Spread.of(of_hub[1] for of_hub, _ in rounds),
        "bare_upgrade_rate": Spread.of(of_bare[1] for _, of_bare in rounds),
        "accept_rate_share": Spread.of(of_hub[1] / of_bare[1] for of_hub, of_bare in rounds),
    }


def measure(binary, folder):
    raise_descriptor_limit(TIMED + 200)
    crowd_binary = build_crowd(folder)
    few, many = counted(binary, crowd_binary, os.path.join(folder, "hub"))
    results = {
        "accept_instructions": few[0].total / few[1],
        "accept_instructions_growth": (many[0].total / many[1]) / (few[0].total / few[1]),
    }
    results.update(clocked(binary, crowd_binary, folder))
    return results, {"few": few, "many": many}
