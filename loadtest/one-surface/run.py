"""One run: people who join, connect and do what the plan says, events that are published, and what goes wrong meanwhile."""

import json
import threading
import time

import decide
import wire
from common.output import say
from programs import Client

# The longest a push may take after the last event: a silent app's receipt of `notify` is provisional for 40 s.
DRAIN_SECONDS = 46


class Run:
    """`hub` is one hub, or looks like one: clients go to its `ports` in turn."""

    def __init__(self, programs, folder, plan, gateways, hub):
        self.programs, self.folder, self.plan, self.gateways, self.hub = programs, folder, plan, gateways, hub
        self.clients, self.outages, self.failures = [], [], []
        self.user_seconds = 0.0
        self.publish_retries = 0

    def prepare(self):
        self.hub.start()
        arena = [person for person in self.plan.people if not person["stage"]]
        stage = [person for person in self.plan.people if person["stage"]]
        self.targets = []
        if arena:
            self.targets.append(decide.register(self.hub.port, "arena", "main", arena))
        if stage:
            self.targets.append(decide.register(self.hub.port, "stage", "small", stage))
        for person in self.plan.people:
            person["signs_in"] = not person["stage"]
        for number, process in enumerate(self.plan.processes):
            people = [self.plan.people[index] for index in process["people"]]
            client = Client(
                self.programs, self.folder, number,
                {"ports": self.hub.ports, "seed": self.plan.seed * 1000 + number, "spread": 4, "people": people})
            client.plan, client.stops = process, []
            self.clients.append(client)
        expected = sum(person["connects"] for person in self.plan.people)
        decide.wait_subscribed(self.clients, expected, 90)
        return expected

    def perform(self):
        """All that the plan says, from now on; returns when the last push can have been sent."""
        self.start = time.time() + 5
        for client in self.clients:
            client.go(self.start)
        threads = [threading.Thread(target=self._guard, args=(self._stops, client), daemon=True) for client in self.clients if client.plan["stops"]]
        for event in self.plan.events:
            threads.append(threading.Thread(target=self._guard, args=(self._publish, event), daemon=True))
        for thread in threads:
            thread.start()
        self._wait(self.start)
        self.user_seconds -= self.hub.cpu()
        end = self.start + self.plan.seconds
        # In the main thread, because the hub is to end with the thread that starts it.
        agenda = [(self.start + moment, work) for moment, work in self.faults()]
        agenda += [(self.start + self.plan.seconds * part / 5, self._progress) for part in range(1, 5)] + [(end, self._progress)]
        for moment, work in sorted(agenda, key=lambda item: item[0]):
            self._wait(moment)
            work()
        for thread in threads:
            thread.join(timeout=60)
        self.user_seconds += self.hub.cpu()
        if self.failures:
            raise SystemExit(self.failures[0])
        say(f"  waiting {DRAIN_SECONDS} s for what may still be pushed")
        self._wait(time.time() + DRAIN_SECONDS)
        self.gateways.wait_quiet(20)
        self.end = time.time()
        for client in self.clients:
            client.finish()
        self.gateways.poll()

    def faults(self):
        """What goes wrong: seconds from the start, and the work."""
        return [(moment, self._kill) for moment in self.plan.kills]

    def _guard(self, work, *arguments):
        """What fails in a thread, fails the run."""
        try:
            work(*arguments)
        except (Exception, SystemExit) as error:
            self.failures.append(f"one-surface: {work.__name__}: {error!r}")

    @staticmethod
    def _wait(moment):
        while (left := moment - time.time()) > 0:
            time.sleep(min(left, 1.0))

    def _stops(self, client):
        for begin, finish in client.plan["stops"]:
            self._wait(self.start + begin)
            since = client.freeze()
            self._wait(self.start + finish)
            client.stops.append((since, client.thaw()))

    def _kill(self):
        self.user_seconds += self.hub.cpu()
        killed = time.time()
        self.hub.kill()
        self.hub.start()
        self.outages.append((killed, time.time()))
        say(f"  {killed - self.start:5.0f} s: the server was killed (-9), and listens again {self.outages[-1][1] - killed:.2f} s later")

    def _progress(self):
        done = sum("answered" in event for event in self.plan.events)
        say(f"  {time.time() - self.start:5.0f} s: {done} events, {len(self.gateways.requests):,} pushes")

    def _publish(self, event):
        """As a backend publishes: with an Idempotency-Key, and again when there was no answer."""
        self._wait(self.start + event["at"])
        body = json.dumps({"name": event["name"], "channels": self.targets, "data": json.dumps({"n": event["n"]})}).encode()
        headers = [("Idempotency-Key", f"event-{event['n']}")]
        event["sent"], event["tries"] = time.time(), 0
        answers = []
        while time.time() < event["sent"] + 60:
            event["tries"] += 1
            began = time.time()
            caller = wire.Caller(self.hub.ports[(event["n"] + event["tries"]) % len(self.hub.ports)], timeout=15)
            try:
                status, answer = caller.call(wire.signed("POST", f"/apps/{wire.APP}/events", body, headers))
            except OSError:
                status, answer = 0, None
            caller.close()
            answers.append(f"{status} after {time.time() - began:.1f} s by {caller.port}: {answer}")
            if status == 200:
                event["answered"] = time.time()
                event["answer"] = answer
                return
            if status and status not in (409, 503):
                raise SystemExit(f"one-surface: a publish was refused: {status} {answer}")
            time.sleep(0.1)
        self.unanswered(event, f"event {event['n']} got no answer within 60 s: {'; '.join(answers)}")

    def unanswered(self, event, finding):
        raise SystemExit(f"one-surface: {finding}")
