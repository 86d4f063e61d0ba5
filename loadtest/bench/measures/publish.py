"""What a signed publish to a channel without subscribers costs, beside the same bytes at a bare libwebsockets endpoint."""

import contextlib
import os

from callgrind import CallgrindHub, CallgrindServer, compiled
from hub_process import Hub, Server
from measures.instructions import ALLOCATIONS
from publisher import Publisher, request
from report import Spread

CHANNEL = "private-nobody-is-here"
OUTSTANDING = 16

COUNTED_SHORT, COUNTED_LONG = 64, 320
# A round is long against the 10 ms in which the kernel counts CPU time; both servers have theirs in turn.
TIMED_PUBLISHES = 40_000
TIMED_ROUNDS = 5


class Load:
    """Keep-alive connections to one server, each with one request in flight, because no answer of libwebsockets comes
    before the next request behind a body."""

    def __init__(self, server):
        self.server = server
        self.publishers = []

    def publish(self, requests, outstanding, frozen=False):
        """Sends all requests, `outstanding` at a time; `frozen`: these reach the server in one turn of its loop."""
        while len(self.publishers) < outstanding:
            self.publishers.append(Publisher(self.server.port))
        for first in range(0, len(requests), outstanding):
            batch = list(zip(self.publishers, requests[first:first + outstanding]))
            if frozen:
                self.server.freeze()
            try:
                for publisher, bytes_of_request in batch:
                    publisher.send(bytes_of_request)
            finally:
                if frozen:
                    self.server.thaw()
            for publisher, _ in batch:
                publisher.finish()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        for publisher in self.publishers:
            publisher.close()


def requests(count):
    """Fresh ones, since a signature is good for ten minutes. The port in `Host` is nobody's: both get the same bytes."""
    return [request(6001, [CHANNEL], sequence) for sequence in range(count)]


def counted(server, outstanding):
    """The profile of one publish, as the difference of two phases."""
    with Load(server) as load:
        def phase(count):
            load.publish(requests(count), outstanding, frozen=outstanding > 1)
            return server.take_profile()

        phase(outstanding * 2)
        shorter, longer = phase(COUNTED_SHORT), phase(COUNTED_LONG)
        return longer - shorter, COUNTED_LONG - COUNTED_SHORT


def count(hub_binary, bare_binary, folder):
    profiles = {}
    with CallgrindHub(hub_binary, os.path.join(folder, "hub")) as hub:
        profiles["hub"], profiles["hub_16"] = counted(hub, 1), counted(hub, OUTSTANDING)
    with CallgrindServer(bare_binary, os.path.join(folder, "bare")) as bare:
        profiles["bare"], profiles["bare_16"] = counted(bare, 1), counted(bare, OUTSTANDING)
    results = {}
    for suffix in ("", "_16"):
        of_hub, of_bare = (profiles[name + suffix][0].total / profiles[name + suffix][1] for name in ("hub", "bare"))
        results["publish_instructions" + suffix] = of_hub
        results["bare_instructions" + suffix] = of_bare
        results["publish_instruction_ratio" + suffix] = of_hub / of_bare
    profile, publishes = profiles["hub"]
    results["publish_allocations"] = profile.calls_into(ALLOCATIONS) / publishes
    return results, profiles


def timed_round(server, load, requests, outstanding):
    """User CPU microseconds per publish, all threads of the server together."""
    before = server.user_and_system_seconds()[0]
    load.publish(requests, outstanding)
    return (server.user_and_system_seconds()[0] - before) / len(requests) * 1e6


def clocked(hub_binary, bare_binary):
    results = {}
    with contextlib.ExitStack() as stack:
        hub, bare = stack.enter_context(Hub(hub_binary)), stack.enter_context(Server(bare_binary))
        hub_load, bare_load = stack.enter_context(Load(hub)), stack.enter_context(Load(bare))
        for outstanding, suffix in ((1, ""), (OUTSTANDING, "_16")):
            rounds = []
            for index in range(TIMED_ROUNDS + 1):
                batch = requests(TIMED_PUBLISHES)
                pair = [timed_round(hub, hub_load, batch, outstanding), timed_round(bare, bare_load, batch, outstanding)]
                # The first fills caches and grows buffers.
                if index > 0:
                    rounds.append(pair)
            results["publish_user_microseconds" + suffix] = Spread.of(of_hub for of_hub, _ in rounds)
            results["bare_user_microseconds" + suffix] = Spread.of(of_bare for _, of_bare in rounds)
            results["publish_user_cpu_ratio" + suffix] = Spread.of(of_hub / of_bare for of_hub, of_bare in rounds)
    return results


def measure(binary, folder, is_timed=True):
    bare_binary = compiled("bare_endpoint.c", os.path.join(folder, "bare-endpoint"), "libwebsockets")
    results, profiles = count(binary, bare_binary, folder)
    if is_timed:
        results.update(clocked(binary, bare_binary))
    return results, profiles
