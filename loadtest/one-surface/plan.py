"""Who takes part and what everybody does when: all of it drawn from one seed, before anything runs."""

import random

# Parts of a thousand participants.
MIX = [
    ("foreground", 300),   # says so, and stays
    ("silent", 150),       # on the screen and never says anything, as stock clients
    ("browser", 100),      # the same in a browser: answers pusher:ping as well
    ("background", 100),   # says that it leaves the screen; some come back and leave again
    ("absent", 130),       # not there, or gone with a goodbye
    ("stopped", 100),      # its whole process is stopped (SIGSTOP) now and then, socket open
    ("slipping", 40),      # leaves the screen without a word, answers a few seconds more, then is frozen by the system
    ("reconnecting", 80),  # loses its network now and then
]
STAGE_SHARE = 0.2          # of the participants are in the session without replay
SOCKETS_PER_STOPPED = 20
MAIN_PROCESSES = 3
POLICIES = [("alarm", "critical", 46), ("news", "notify", 46), ("refresh", "sync", 4), ("dual", "both", 4)]
KILLS = 3


class Plan:
    """`seconds`: how long it all takes, where it is not the time that the events and three kills need."""

    def __init__(self, seed, participants, events, seconds=None):
        self.seed = seed
        draw = random.Random(seed)
        # A bit over one second for each event, and at least the time that three kills need.
        self.seconds = seconds or max(60.0, events * 1.1)
        self.people = [self._person(draw, index, participants) for index in range(participants)]
        self.events = self._events(draw, events)
        first = self.seconds * 0.38
        self.kills = [first, first + draw.uniform(6, 9), first + draw.uniform(14, 18)]
        if not seconds:
            self._publish_into(self.kills)
        self.processes = self._processes(draw)

    def _person(self, draw, index, count):
        roll, category = draw.uniform(0, sum(part for _, part in MIX)), MIX[-1][0]
        for name, part in MIX:
            if roll < part:
                category = name
                break
            roll -= part
        # On phones half is FCM, half APNs; who sits at a browser has a phone as well.
        ios = index % 2 == 0
        token = f"{draw.getrandbits(256):064x}" if ios else f"fcm{index}:{draw.getrandbits(400):x}"
        declares = {"foreground": True, "background": True}.get(
            category, category in ("stopped", "reconnecting") and draw.random() < 0.75)
        client = "js" if category == "browser" else ("swift" if ios else "java")
        return {
            "index": index, "name": f"Person {index}", "email": f"person{index}@example.com", "category": category, "ios": ios,
            "device_token": token, "declares": declares, "client": client, "stage": draw.random() < STAGE_SHARE,
            "connects": category != "absent" or draw.random() < 0.5,
            "timeline": self._timeline(draw, category),
        }

    def _timeline(self, draw, category):
        end, steps = self.seconds, []
        if category == "background":
            moment = draw.uniform(-3, end * 0.6)
            while moment < end:
                steps.append((moment, "hide"))
                back = moment + draw.uniform(8, 70)
                steps.append((back, "show"))
                moment = back + draw.uniform(8, 40)
        elif category == "absent":
            steps.append((draw.uniform(-4, end * 0.3), "close"))
            if draw.random() < 0.3:
                steps.append((draw.uniform(end * 0.35, end), "connect"))
        elif category == "slipping":
            moment = draw.uniform(2, end * 0.5)
            while moment < end:
                away = draw.uniform(10, 60)
                steps.append((moment, "slip", draw.uniform(1, 6), away))
                moment += away + draw.uniform(15, 40)
        elif category == "reconnecting":
            moment = draw.uniform(1, 25)
            while moment < end:
                away = draw.uniform(0.1, 3) if draw.random() < 0.75 else draw.uniform(3, 25)
                steps.append((moment, "drop", away, draw.random() < 0.5))
                moment += away + draw.uniform(25, 60)
        return steps

    def _events(self, draw, count):
        """Moments with bursts in them; the first comes when the first state changes are through."""
        events, moment = [], 1.0
        pause = (self.seconds - 2) / count
        total = sum(part for _, _, part in POLICIES)
        while len(events) < count:
            burst = draw.choice([1, 1, 1, 1, 2, 4])
            for _ in range(min(burst, count - len(events))):
                roll = draw.uniform(0, total)
                for name, policy, part in POLICIES:
                    if roll < part:
                        break
                    roll -= part
                events.append({"n": len(events), "at": moment, "name": name, "policy": policy})
                moment += draw.uniform(0.01, 0.15)
            moment += draw.uniform(0.4, 1.6) * pause * 1.75 * burst / 1.75
        return events

    def _publish_into(self, kills):
        """A publisher is waiting for its answer when the server dies, and one asks while it is down."""
        waiting = iter(self.events)
        for kill in kills:
            for early in (0.01, -0.05):
                event = next((event for event in waiting if event["at"] > kill - 3), None)
                if event:
                    event["at"] = kill - early

    def _processes(self, draw):
        """Which people share a client process; and when the stoppable ones stop."""
        stopped = [person["index"] for person in self.people if person["category"] == "stopped"]
        others = [person["index"] for person in self.people if person["category"] != "stopped"]
        processes = [{"people": others[part::MAIN_PROCESSES], "stops": []} for part in range(MAIN_PROCESSES)]
        for first in range(0, len(stopped), SOCKETS_PER_STOPPED):
            stops, moment = [], draw.uniform(1.5, self.seconds * 0.2)
            while moment < self.seconds:
                length = draw.choice([draw.uniform(0.5, 4), draw.uniform(6, 15), draw.uniform(15, 35)])
                stops.append((moment, moment + length))
                moment += length + draw.uniform(15, 40)
            processes.append({"people": stopped[first:first + SOCKETS_PER_STOPPED], "stops": stops})
        return [process for process in processes if process["people"]]
