"""Two loops beside one: what a delivery costs, and how evenly work and connections are split. And publishing during a long fan-out."""

import os
import select
import statistics
import threading
import time

from callgrind import Counted
from common.programs import raise_descriptor_limit
from crowd import WAVE, Crowd, CrowdedHub, TwoLoops, build_crowd
from measures.instructions import OUTSTANDING, ROUNDS_JOINED_LONG, ROUNDS_JOINED_SHORT, ROUNDS_LONG, ROUNDS_SHORT, difference
from publisher import Publisher, request
from report import Spread
from subscribers import DeliveryError
from workload import Workload

SUBSCRIBERS = 1000
TIMED_ROUNDS = 7
TIMED_ALONE = 100
TIMED_TOGETHER = 30
TIMED_BUSY = 3000
CHANNEL = "bench"
FAN_OUT = 10_000
# A publish to all of them every so often; between and during them the other publisher goes on.
FAN_OUTS, FAN_OUT_PAUSE = 30, 0.1


class LoopedWorkload(Workload):
    """Publishes that wait together on different loops may be told in another order on each loop; on one loop everybody gets the same bytes."""

    def verify(self):
        subscribers = self.subscribers
        if sorted(subscribers.leader_sequences) != sorted(self.sequences):
            raise DeliveryError("the events that arrived are not the events that were published")
        everybody = subscribers.by_descriptor.values()
        if len({subscriber.byte_count for subscriber in everybody}) != 1 or len({subscriber.checksum for subscriber in everybody}) > self.hub.loops:
            raise DeliveryError("subscribers of one channel and loop received different bytes")
        return len(self.sequences) * len(subscribers)


class CountedHub(Counted, CrowdedHub):
    """One loop, counted."""


class CountedTwoLoops(Counted, TwoLoops):
    """Two loops, counted."""


def counted(binary, folder):
    rows = {}
    for kind, name in ((CountedHub, "one"), (CountedTwoLoops, "two")):
        with kind(binary, os.path.join(folder, name)) as hub, LoopedWorkload(hub, SUBSCRIBERS) as load:
            alone = difference(hub, load, ROUNDS_SHORT, ROUNDS_LONG)
            joined = difference(hub, load, ROUNDS_JOINED_SHORT, ROUNDS_JOINED_LONG, OUTSTANDING)
            rows[name] = alone[0].total / alone[2], joined[0].total / joined[2]
    return {
        "two_loops_instructions": rows["two"][0], "two_loops_instruction_ratio": rows["two"][0] / rows["one"][0],
        "two_loops_instructions_16": rows["two"][1], "two_loops_instruction_ratio_16": rows["two"][1] / rows["one"][1],
    }


def per_delivery(hub, before, deliveries):
    """CPU of each loop's thread, in microseconds per delivery of all."""
    return [(after - start) / deliveries * 1e6 for start, after in zip(before, hub.loop_cpu_seconds())]


def timed(hub, load, rounds, outstanding):
    """So many publishes at a time; the next ones when all of these are delivered."""
    before = hub.loop_cpu_seconds()
    return per_delivery(hub, before, load.rounds(rounds, outstanding))


def hear(crowd, deliveries):
    """Waits until the crowd has had so many since it was asked last, and returns them: the hub answers before it writes."""
    heard, deadline = 0, time.monotonic() + 30
    while heard < deliveries and time.monotonic() < deadline:
        heard += crowd.tell("say")["messages"]
    if heard != deliveries:
        raise DeliveryError(f"{heard} deliveries arrived, and {deliveries} were published")
    return heard


class Busy:
    """A crowd of subscribers, and publishers that each send their next publish as soon as the last one is answered.

    The busier a loop, the more of them meet in one of its turns: one loop joins more frames here than two, and each delivery costs it less.
    """

    def __init__(self, hub, crowd):
        self.hub, self.crowd = hub, crowd
        crowd.come(SUBSCRIBERS, WAVE)
        self.publishers = [Publisher(hub.port) for _ in range(OUTSTANDING)]
        crowd.tell("say")

    def round(self):
        requests = [request(self.hub.port, [CHANNEL], sequence) for sequence in range(TIMED_BUSY)]
        before = self.hub.loop_cpu_seconds()
        poll = select.epoll()
        for publisher in self.publishers:
            poll.register(publisher.fileno(), select.EPOLLIN)
            publisher.send(requests.pop())
        by_descriptor = {publisher.fileno(): publisher for publisher in self.publishers}
        waiting = len(by_descriptor)
        while waiting:
            for descriptor, _ in poll.poll():
                publisher = by_descriptor[descriptor]
                if not publisher.receive():
                    continue
                if requests:
                    publisher.send(requests.pop())
                else:
                    waiting -= 1
        poll.close()
        return per_delivery(self.hub, before, hear(self.crowd, TIMED_BUSY * SUBSCRIBERS))


def clocked(binary, crowd_binary):
    results = {}

    def note(rounds, suffix):
        results["one_loop_microseconds" + suffix] = Spread.of(sum(of_one) for of_one, _ in rounds)
        results["two_loops_microseconds" + suffix] = Spread.of(sum(both) for _, both in rounds)
        results["two_loops_cpu_ratio" + suffix] = Spread.of(sum(both) / sum(of_one) for of_one, both in rounds)
        results["two_loops_cpu_split" + suffix] = Spread.of(max(both) * 2 / sum(both) for _, both in rounds)

    # The first round fills caches and grows buffers.
    with CrowdedHub(binary) as one, TwoLoops(binary) as two, LoopedWorkload(one, SUBSCRIBERS) as of_one, LoopedWorkload(two, SUBSCRIBERS) as of_two:
        for suffix, rounds, outstanding in (("", TIMED_ALONE, 1), ("_16", TIMED_TOGETHER, OUTSTANDING)):
            note([(timed(one, of_one, rounds, outstanding), timed(two, of_two, rounds, outstanding)) for _ in range(TIMED_ROUNDS + 1)][1:], suffix)
    with CrowdedHub(binary) as one, TwoLoops(binary) as two, Crowd(crowd_binary, one.port, CHANNEL) as first, Crowd(crowd_binary, two.port, CHANNEL) as second:
        of_one, of_two = Busy(one, first), Busy(two, second)
        note([(of_one.round(), of_two.round()) for _ in range(TIMED_ROUNDS + 1)][1:], "_without_pause")
        # Sixteen publishers and a thousand sockets.
        held = two.loop_connections()
        if len(held) != 2 or sum(held) < SUBSCRIBERS:
            raise SystemExit(f"bench: the loops' connections cannot be counted: {held}")
        results["two_loops_connection_split"] = max(held) * 2 / sum(held)
    return results


def responsive(binary, crowd_binary):
    """Latencies of a publish to nobody, in milliseconds, while another publisher reaches ten thousand, and while it does not."""
    raise_descriptor_limit(FAN_OUT + 200)
    latencies = {True: [], False: []}
    is_busy, is_over = threading.Event(), threading.Event()

    def publish(hub):
        publisher, sequence = Publisher(hub.port), 0
        while not is_over.is_set():
            busy = is_busy.is_set()
            bytes_of_request = request(hub.port, ["nobody-is-here"], sequence)
            sequence += 1
            began = time.monotonic()
            publisher.ask(bytes_of_request)
            latencies[busy].append((time.monotonic() - began) * 1e3)
            time.sleep(0.001)

    with TwoLoops(binary) as hub, Crowd(crowd_binary, hub.port, "everybody") as crowd:
        crowd.come(FAN_OUT, WAVE)
        crowd.tell("say")
        thread = threading.Thread(target=publish, args=(hub,))
        thread.start()
        try:
            time.sleep(FAN_OUTS * FAN_OUT_PAUSE)
            wide = Publisher(hub.port)
            is_busy.set()
            for sequence in range(FAN_OUTS):
                wide.ask(request(hub.port, ["everybody"], sequence))
                time.sleep(FAN_OUT_PAUSE)
            is_busy.clear()
        finally:
            is_over.set()
            thread.join()
        hear(crowd, FAN_OUT * FAN_OUTS)
        hub.kill()
    return {
        f"empty_publish_ms_{name}{suffix}": statistics.quantiles(latencies[busy], n=100)[index]
        for busy, suffix in ((False, "_quiet"), (True, "_fan_out")) for name, index in (("p50", 49), ("p99", 98))
    }


def measure(binary, folder):
    crowd_binary = build_crowd(folder)
    results = counted(binary, folder)
    results.update(clocked(binary, crowd_binary))
    results.update(responsive(binary, crowd_binary))
    return results
