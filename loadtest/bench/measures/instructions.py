"""User instructions, allocations, and retains and releases per delivery and per publish, by callgrind."""

import os

from callgrind import CallgrindHub
from workload import Workload

ALLOCATIONS = {"malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc", "memalign"}
RETAINS = {
    "swift_retain", "swift_retain_n", "swift_bridgeObjectRetain", "swift_bridgeObjectRetain_n", "swift_unknownObjectRetain",
    "swift_unownedRetain", "swift_unownedRetainStrong", "swift_weakLoadStrong"}
RELEASES = {
    "swift_release", "swift_release_n", "swift_bridgeObjectRelease", "swift_bridgeObjectRelease_n",
    "swift_unknownObjectRelease", "swift_unownedRelease"}
LOCKS = {"pthread_mutex_lock", "pthread_mutex_trylock", "pthread_rwlock_rdlock", "pthread_rwlock_wrlock"}

MANY, FEW = 1000, 10
# A fan-out goes out in pieces of so many writes (`FanOut.writesPerPieceMax`): this one in a single piece.
PIECE = 250
ROUNDS_SHORT, ROUNDS_LONG = 50, 250
ROUNDS_JOINED_SHORT, ROUNDS_JOINED_LONG = 4, 20
OUTSTANDING = 16


def difference(hub, workload, short, long, outstanding=1):
    """The profile of `long` rounds less that of `short` ones, with the publishes and deliveries that this is."""
    # What is done once in a process (growing buffers, filling caches) is not part of either.
    workload.rounds(5, outstanding)
    hub.take_profile()
    workload.rounds(short, outstanding)
    shorter = hub.take_profile()
    workload.rounds(long, outstanding)
    longer = hub.take_profile()
    publishes = (long - short) * outstanding
    return longer - shorter, publishes, publishes * len(workload.subscribers)


def solve(many, few):
    """From `calls = a * publishes + b * deliveries` in two runs: (per publish, per delivery)."""
    (calls_many, publishes_many, deliveries_many), (calls_few, publishes_few, deliveries_few) = many, few
    rate_many, rate_few = calls_many / publishes_many, calls_few / publishes_few
    width_many, width_few = deliveries_many / publishes_many, deliveries_few / publishes_few
    per_delivery = (rate_many - rate_few) / (width_many - width_few)
    return rate_few - per_delivery * width_few, per_delivery


def measure(binary, folder):
    with CallgrindHub(binary, os.path.join(folder, "many")) as hub, Workload(hub, MANY) as load:
        alone = difference(hub, load, ROUNDS_SHORT, ROUNDS_LONG)
        joined = difference(hub, load, ROUNDS_JOINED_SHORT, ROUNDS_JOINED_LONG, OUTSTANDING)
    with CallgrindHub(binary, os.path.join(folder, "piece")) as hub, Workload(hub, PIECE) as load:
        piece = difference(hub, load, ROUNDS_SHORT, ROUNDS_LONG)
    with CallgrindHub(binary, os.path.join(folder, "few")) as hub, Workload(hub, FEW) as load:
        few = difference(hub, load, ROUNDS_SHORT, ROUNDS_LONG)

    results = {
        "instructions_per_delivery": alone[0].total / alone[2],
        "instructions_per_delivery_16": joined[0].total / joined[2],
    }
    for name, functions in (
        ("allocations", ALLOCATIONS), ("retains", RETAINS), ("releases", RELEASES), ("pthread_locks", LOCKS),
    ):
        counts = [(profile.calls_into(functions), publishes, deliveries) for profile, publishes, deliveries in (alone, piece, few)]
        per_publish, per_delivery = solve(*counts[1:])
        results[f"{name}_per_publish"], results[f"{name}_per_delivery"] = per_publish, per_delivery
        results[f"{name}_per_piece"] = (counts[0][0] / counts[0][1] - per_publish - MANY * per_delivery) / (MANY / PIECE - 1)
    totals = [(profile.total, publishes, deliveries) for profile, publishes, deliveries in (alone, few)]
    results["instructions_per_publish"], results["instructions_in_fan_out"] = solve(*totals)
    return results, {"alone": alone, "joined": joined, "few": few}
