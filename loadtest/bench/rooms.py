"""Many small channels with subscribers of their own, and publishes that go to some of them at a time."""

from publisher import Publisher, request
from subscribers import Subscribers
from workload import ROUND_SECONDS, Verified


class Rooms(Verified):
    """`count` channels of `size` subscribers each. Every phase ends when all of its deliveries have arrived."""

    def __init__(self, hub, count, size):
        self.hub = hub
        self.size = size
        self.rooms = []
        self.sequences = []
        self.published = 0
        self.publisher = None
        try:
            for number in range(count):
                self.rooms.append(Subscribers(hub.port, size, f"room-{number:04d}"))
                self.sequences.append([])
        except BaseException:
            self.close()
            raise

    def rounds(self, count, width):
        """`count` publishes to `width` rooms each, the next ones every time. Returns the deliveries."""
        for _ in range(count):
            chosen = [(self.published * width + index) % len(self.rooms) for index in range(width)]
            self._publish([self.rooms[number].channels[0] for number in chosen])
            for number in chosen:
                self.sequences[number].append(self.published)
                self.rooms[number].wait_for(len(self.sequences[number]), ROUND_SECONDS)
            self.published += 1
        return count * width * self.size

    def empty_rounds(self, count, width):
        """`count` publishes to `width` channels that nobody has, with names of the same length."""
        for _ in range(count):
            self._publish([f"void-{(self.published * width + index) % 1000:04d}" for index in range(width)])
            self.published += 1

    def _publish(self, channels):
        if self.publisher is None:
            self.publisher = Publisher(self.hub.port)
        self.publisher.ask(request(self.hub.port, channels, self.published))

    def verify(self):
        for room, sequences in zip(self.rooms, self.sequences):
            if sequences:
                room.verify(sequences)

    def close(self):
        if self.publisher is not None:
            self.publisher.close()
        for room in self.rooms:
            room.close()
