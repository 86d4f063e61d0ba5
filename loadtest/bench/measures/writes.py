"""Write calls per delivery, as the kernel sees them: strace on all threads."""

from hub_process import Hub
from publisher import Publisher, request
from strace import Traced
from subscribers import Subscribers
from workload import ROUND_SECONDS, Workload

MANY = 1000
ROUNDS = 20
OUTSTANDING = 16
# Channels that each connection is in, and connections, when several channels have events in one turn.
CHANNELS, CONNECTIONS = 10, 200


class CountedHub(Traced, Hub):
    """A hub whose write calls are logged."""

    calls = ("write", "writev", "sendto", "sendmsg")


def per_delivery(hub, load, outstanding):
    load.rounds(2, outstanding)
    before = hub.call_count()
    deliveries = load.rounds(ROUNDS, outstanding)
    calls = hub.call_count() - before
    if not calls:
        raise SystemExit(f"bench: strace saw no write calls; see {hub.log}")
    # Every publish has one answer to its publisher, which is no delivery.
    return (calls - ROUNDS * outstanding) / deliveries


def over_several_channels(hub):
    """Write calls per delivery when all the channels of a connection have an event in the same turn."""
    channels = [f"part-{number}" for number in range(CHANNELS)]
    subscribers, publisher = Subscribers(hub.port, CONNECTIONS, *channels), Publisher(hub.port)
    try:
        sequences = []
        before = hub.call_count()
        for sequence in range(ROUNDS):
            publisher.ask(request(hub.port, channels, sequence))
            sequences += [sequence] * CHANNELS
            subscribers.wait_for(len(sequences), ROUND_SECONDS)
        return (hub.call_count() - before - ROUNDS) / subscribers.verify(sequences)
    finally:
        publisher.close()
        subscribers.close()


def measure(binary, folder):
    with CountedHub(binary, folder) as hub, Workload(hub, MANY) as load:
        results = {
            "writes_per_delivery": per_delivery(hub, load, 1),
            "writes_per_delivery_16": per_delivery(hub, load, OUTSTANDING),
        }
    with CountedHub(binary, folder) as hub:
        results["writes_per_delivery_channels"] = over_several_channels(hub)
    return results
