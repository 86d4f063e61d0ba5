"""The load: one public channel, its subscribers, and publishes of which a given number wait for the hub at the same time."""

import time

from publisher import Publisher, request
from subscribers import Subscribers

# How long one round may take under valgrind on a busy machine.
ROUND_SECONDS = 120


class Verified:
    """A load that is verified at its end, unless an error ends it."""

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        try:
            if kind is None:
                self.verify()
        finally:
            self.close()


class Workload(Verified):
    """Subscribers and publisher connections of one hub. Every phase ends when all of its deliveries have arrived."""

    def __init__(self, hub, subscribers, channel="bench"):
        self.hub = hub
        self.channel = channel
        self.sequences = []
        self.subscribers = Subscribers(hub.port, subscribers, channel)
        self.publishers = []

    def rounds(self, count, outstanding):
        """`count` times: `outstanding` publishes reach the hub at once, are answered and delivered. Returns the deliveries.

        With several, the hub is stopped while they are sent, so that they are all there when it looks: what it makes of
        them then depends on nothing but itself.
        """
        # Connected when they are needed: the hub ends connections that make no request.
        while len(self.publishers) < outstanding:
            self.publishers.append(Publisher(self.hub.port))
        publishers = self.publishers[:outstanding]
        for _ in range(count):
            requests = [self._next_request() for _ in publishers]
            if outstanding > 1:
                self.hub.freeze()
            try:
                for publisher, bytes_of_request in zip(publishers, requests):
                    publisher.send(bytes_of_request)
            finally:
                if outstanding > 1:
                    self.hub.thaw()
            for publisher in publishers:
                publisher.finish()
            self.subscribers.wait_for(len(self.sequences), ROUND_SECONDS)
        return count * outstanding * len(self.subscribers)

    def verify(self):
        return self.subscribers.verify(self.sequences)

    def _next_request(self):
        self.sequences.append(len(self.sequences))
        return request(self.hub.port, [self.channel], self.sequences[-1])

    def close(self):
        for publisher in self.publishers:
            publisher.close()
        self.subscribers.close()


def wait_until_steady(read, tolerance, seconds):
    """Reads a number until it has kept within `tolerance` for a second; returns it."""
    deadline = time.monotonic() + seconds
    value, since = read(), time.monotonic()
    while time.monotonic() < deadline:
        time.sleep(0.1)
        new = read()
        if abs(new - value) > tolerance:
            value, since = new, time.monotonic()
        elif time.monotonic() - since >= 1:
            return new
    raise SystemExit(f"bench: memory did not settle within {seconds} s")
