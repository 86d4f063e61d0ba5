"""What became of every pair of event and participant: from the clients' logs, the stops and the gateways' book to numbers.

Surfaces are counted as people notice them. A frame is noticed when the app that read it was on the screen; a push is noticed
always, silent ones never. So a backgrounded app whose socket reads the frame, too, has been told once.
"""

from collections import Counter, defaultdict

DEADLINES = {"critical": 2.0, "notify": 5.0, "sync": 10.0, "both": 0.0}
# Until when a receipt of an app that says nothing of its state is provisional.
PROVISIONAL = {"critical": 25.0, "notify": 40.0, "sync": 40.0, "both": 0.0}
# What somebody who is on the way back is given, and what a replay adds, beyond the deadline.
RETURNING = 15.0
# Seconds after a kill's restart in which people count as on their way back, and a little for what is then under way.
BOOT_GRACE = 30.0
SETTLE = 5.0
# A receipt and a push that cross on the wire; a state that is told and a frame that meet.
CROSSING = 0.35
# The same for a push that one of thousands falls due with: the end of a grace, an event to a big session.
QUEUED = 1.0
# After so many seconds the hub gives a silent socket up (ping_interval and pong_timeout), to within its timer's step.
GIVEN_UP = 24.0


class Intervals:
    """Closed stretches of time."""

    def __init__(self):
        self.items = []
        self.since = None

    def begin(self, time):
        if self.since is None:
            self.since = time

    def finish(self, time):
        if self.since is not None:
            self.items.append((self.since, time))
            self.since = None

    def meets(self, start, end):
        return any(a <= end and b >= start for a, b in self.items)

    def around(self, time):
        """The stretch that holds the time."""
        return next(((a, b) for a, b in self.items if a <= time <= b), None)


# Explanations that are windows of the design; loadtest/README.md tells what they are.
FORGOTTEN = "crash: a silent app's receipt was provisional"
UNSTORED = "crash: the receipt was not stored yet, or not given in time"
PROVISIONAL_END = "provisional: silent app went away after reading"
# What an app that tells no state cannot be spared, whoever the server is.
SILENCE = (FORGOTTEN, PROVISIONAL_END)
# Rows of rescues: apps that left the screen before the event, and said so, or did not.
LEFT, SLIPPED = "left the screen, and said so", "silent, left the screen"
# Those of the silent apps that stay, on the screen, from the first event to the last.
STAYING = ("silent", "browser")
# Receipts are stored within 250 ms; PING and PONG, in the write of their event, take their time before.
STORED_AFTER = 0.25 + CROSSING


class Person:
    def __init__(self, plan):
        self.plan = plan
        self.frames = defaultdict(list)   # n: [(time, visible)]
        self.there = Intervals()          # subscribed
        self.ports = []                   # of the hub of each stretch of these
        self.away = Intervals()           # without a connection, by the app's own doing
        self.hidden = Intervals()
        self.frozen = Intervals()
        self.stopped = Intervals()
        self.ended = []                   # (time, reason)
        self.late = Intervals()           # its client process did not run
        self.away.begin(0.0)


def read_logs(people, clients, end):
    """People by user id, from what their client processes wrote down."""
    facts = Counter()
    oddities = []
    for client in clients:
        stalls = []
        with open(client.log) as file:
            for line in file:
                kind, time, *values = line.rstrip("\n").split("\t")
                time = float(time)
                if kind == "L":
                    stalls.append((time - float(values[0]), time))
                    continue
                person = people[values[0]]
                if kind == "F":
                    person.frames[int(values[1])].append((time, values[3] == "1"))
                elif kind == "S":
                    facts["subscriptions"] += 1
                    if person.there.since is None:
                        person.ports.append(int(values[1]))
                    person.there.begin(time)
                    person.away.finish(time)
                elif kind == "E":
                    facts[f"connections ended: {values[1]}"] += 1
                    person.there.finish(time)
                    person.ended.append((time, values[1]))
                    if values[1] in ("drop", "close"):
                        person.away.begin(time)
                elif kind == "V":
                    (person.hidden.finish if values[1] == "1" else person.hidden.begin)(time)
                elif kind == "Z":
                    (person.frozen.begin if values[1] == "1" else person.frozen.finish)(time)
                elif kind == "X":
                    facts["complaints of the hub"] += 1
                    oddities.append("\t".join(values[1:])[:160])
        for user in client.users:
            people[user].late.items = stalls
            people[user].stopped.items = client.stops
    for person in people.values():
        for intervals in (person.there, person.away, person.hidden, person.frozen):
            intervals.finish(end)
    return facts, oddities


class Judge:
    def __init__(self, people, events, pushes, outages, end):
        self.people, self.events, self.end = people, events, end
        self.outages = outages             # [(killed, ready)]
        self.counts = Counter()
        self.own_pairs = Counter()         # (tells its state, stage): pairs of critical and notify, which can be told twice
        self.duplicates = Counter()        # (tells its state, stage, explanation)
        self.calm_pairs = Counter()        # tells its state: of its pairs those that no crash could touch
        self.calm_twice = Counter()        # tells its state: told twice, no crash anywhere near
        self.staying = 0                   # told twice: silent apps that stay, in the session with replay, outside of crash windows
        self.later = Counter()             # explanation of frames read behind the notification
        self.twice = []                    # (sent, told by the push, explanation, finding or None) of each pair told twice
        self.surplus = Counter()
        self.rescues = defaultdict(list)   # (row, policy): seconds
        self.lost = []                     # (event, user)
        self.findings = []                 # what must not be
        self.pushes = defaultdict(list)
        by_token = {person.plan["device_token"]: user for user, person in people.items()}
        for push in pushes:
            user = by_token.get(push["token"])
            if push["n"] < 0 or user is None:
                self.findings.append(f"a push that belongs to nobody: {push}")
            elif push["status"] != 200:
                self.counts[f"gateway answered {push['status']} {push['reason']}"] += 1
            else:
                self.pushes[push["n"], user].append(push)

    def judge(self):
        for event in self.events:
            for user, person in self.people.items():
                self._pair(event, user, person)

    def in_crash_window(self, start, end):
        """Something of [start, end] was under way when the server was killed, or while people came back to it."""
        return any(killed - CROSSING <= end and start <= ready + BOOT_GRACE + SETTLE for killed, ready in self.outages)

    def _pair(self, event, user, person):
        n, policy = event["n"], event["policy"]
        self.counts["pairs"] += 1
        self.counts[f"pairs of {policy}"] += 1
        frames = sorted(person.frames.get(n, ()))
        pushes = sorted(self.pushes.get((n, user), ()), key=lambda push: push["time"])
        # What was read off the screen is noticed when the app comes back to it.
        patience = self._patience(event, person)
        noticed = [(time, time) if is_visible else (self._back_on_screen(person, time), patience) for time, is_visible in frames]
        visible = sorted(time for time, latest in noticed if time <= latest)
        alerts = [push for push in pushes if push["visible"]]
        if len(frames) > 1:
            self.counts["read more than once on the socket (one event id)"] += 1
        if len({push["nid"] for push in pushes}) > 1:
            self._find(event, user, "pushes of one event under different nids", frames, pushes)
        if len(pushes) > 1:
            self.counts["sent more than once to a gateway (one id)"] += 1
            if len({push["id"] for push in pushes}) > 1:
                self._find(event, user, "pushes of one notification under different ids", frames, pushes)
            if not self.in_crash_window(pushes[0]["time"] - 2, pushes[-1]["time"]):
                self._find(event, user, "sent twice to a gateway without a crash", frames, pushes)
        if policy == "sync":
            if alerts:
                self._find(event, user, "a visible push of a sync event", frames, pushes)
            self.counts["sync: " + ("read" if frames else "pushed silently" if pushes else "neither (state to be fetched)")] += 1
            return
        if policy in ("critical", "notify"):
            self.own_pairs[person.plan["declares"], person.plan["stage"]] += 1
            if not self.in_crash_window(event["sent"], event["sent"] + DEADLINES[policy]):
                self.calm_pairs[person.plan["declares"]] += 1
        if visible and not alerts:
            self.counts["told by the socket"] += 1
            if visible[0] > patience:
                self.counts["told by the socket alone, later than a push would have been"] += 1
                self._find(event, user, "told late", frames, pushes)
        elif alerts and not visible:
            self.counts["told by a notification"] += 1
        elif alerts and visible:
            self.counts["told by both"] += 1
        else:
            self.counts["lost"] += 1
            self.lost.append((event, user))
            self._find(event, user, "LOST", frames, pushes)
            return
        if policy == "both":
            if not alerts:
                self._find(event, user, "no push of a both event", frames, pushes)
            return
        if alerts:
            self._alerted(event, user, person, frames, visible, alerts)

    def told_twice(self, tells, stage=None, of=None, without=()):
        """How many pairs of one kind of app, of both sessions or of one, by all explanations or by one; and their share of its pairs."""
        count = sum(
            number for (its_tells, its_stage, why), number in self.duplicates.items()
            if its_tells == tells and stage in (None, its_stage) and of in (None, why) and why not in without)
        pairs = sum(number for (its_tells, its_stage), number in self.own_pairs.items() if its_tells == tells and stage in (None, its_stage))
        return count, count / pairs if pairs else 0.0

    def calm(self, tells):
        """The share of pairs told twice without a crash anywhere near."""
        return self.calm_twice[tells] / self.calm_pairs[tells] if self.calm_pairs[tells] else 0.0

    def explanations(self, tells):
        counts = Counter()
        for (its_tells, _, why), number in self.duplicates.items():
            if its_tells == tells:
                counts[why] += number
        return counts.most_common()

    @staticmethod
    def _back_on_screen(person, time):
        hidden = person.hidden.around(time)
        return hidden[1] if hidden else time

    def _patience(self, event, person):
        """Until when the hub waits for this person instead of pushing, at the most."""
        base = event["sent"]
        wait = DEADLINES[event["policy"]] if person.plan["declares"] else PROVISIONAL[event["policy"]]
        if person.there.around(base) is None:
            wait = max(wait, RETURNING)
        for killed, ready in self.outages:
            if event["sent"] <= ready + BOOT_GRACE and killed <= base + wait + RETURNING:
                base = max(base, ready)
                wait = max(wait, DEADLINES[event["policy"]]) + RETURNING
        return base + wait + CROSSING

    def _alerted(self, event, user, person, frames, visible, alerts):
        sent, answered, policy = event["sent"], event["answered"], event["policy"]
        alert = alerts[0]["time"]
        crash = self.in_crash_window(sent, alert)
        self._rescue(event, person, frames, alert, crash)
        there = person.there.around(sent - 0.5)
        was_there = there is not None and there[1] >= alert
        looking = not (person.hidden.meets(sent - CROSSING, alert) or person.frozen.meets(sent - CROSSING, alert)
                       or person.stopped.meets(sent - CROSSING, alert) or person.away.meets(sent - CROSSING, alert))
        # Somebody who looked at the app all the time, cut off by nothing but the server.
        if looking and (was_there or crash):
            if crash:
                self.surplus["inside"] += 1
                self.surplus["inside, telling their state"] += person.plan["declares"]
            elif self._starved(person, sent, alert):
                self.surplus["client did not run"] += 1
            else:
                self.surplus["outside"] += 1
                self._find(event, user, "PUSH TO A LIVE USER outside of a crash window", frames, alerts)
        if not visible:
            return
        if visible[0] > alert and not looking:
            # Told by the notification; the app was opened, or came back, after it, and read what it knew by its id.
            self.later[self._why_later(person, sent, alert)] += 1
            return
        why = self._why(event, person, visible[0], alert, crash, looking)
        self.duplicates[person.plan["declares"], person.plan["stage"], why] += 1
        self.calm_twice[person.plan["declares"]] += not crash
        if not crash and not person.plan["stage"] and person.plan["category"] in STAYING:
            self.staying += 1
            self._find(event, user, "told twice: a silent app that stayed, with replay, outside of crash windows", frames, alerts)
        if why == "UNEXPLAINED":
            self._find(event, user, "told on both surfaces, unexplained", frames, alerts)
        self.twice.append((sent, alert, why, self.findings[-1] if why == "UNEXPLAINED" else None))

    def _why_later(self, person, sent, alert):
        for name, intervals in (
            ("its process was stopped", person.stopped), ("it was frozen off the screen", person.frozen),
            ("it was in the background", person.hidden)):
            if intervals.meets(sent - CROSSING, alert):
                return name
        return "it had no connection"

    def _why(self, event, person, read, alert, crash, looking):
        why = self._why_without_crash(event, person, read, alert, looking)
        if crash and not person.plan["declares"] and alert - read > DEADLINES[event["policy"]]:
            return FORGOTTEN
        if not crash or why not in ("UNEXPLAINED", PROVISIONAL_END):
            return why
        if not person.plan["declares"]:
            return FORGOTTEN
        deadline = DEADLINES[event["policy"]]
        for killed, ready in self.outages:
            # Read in the last moments before the kill, or told while the person was still on the way back.
            if killed - STORED_AFTER <= read <= ready and alert >= killed:
                return UNSTORED
            back = min((a for a, _ in person.there.items if a >= killed), default=self.end)
            if event["sent"] <= ready + RETURNING and alert >= killed and back >= max(ready, event["sent"]) + deadline - CROSSING:
                return UNSTORED
        return "UNEXPLAINED"

    def _why_without_crash(self, event, person, read, alert, looking):
        published = event["sent"]
        if alert - published < 2 and (person.there.around(published) is None or person.hidden.around(published)
                                      or person.frozen.around(published) or person.stopped.around(published)):
            return "came back while its notification was under way"
        if not person.plan["declares"] and self._came_back_late(person, published, alert - DEADLINES[event["policy"]] - QUEUED, alert):
            return "came back silent, and its notification waited for its word"
        if read > alert:
            return "client process did not run" if self._starved(person, event["sent"], alert) else "UNEXPLAINED"
        if alert - read < QUEUED:
            return "receipt and push crossed"
        # It was read, and something kept the receipt from counting.
        receipt = read + CROSSING
        if any(read <= time < receipt and not self._server_down(time) for time, _ in person.ended) or person.stopped.meets(read - CROSSING, receipt):
            return "cut off between event and receipt"
        if person.hidden.meets(read - CROSSING, receipt) and person.plan["declares"]:
            return "left the screen as the event came"
        if not person.plan["declares"] and not looking:
            return PROVISIONAL_END
        if self._starved(person, event["sent"], alert):
            return "client process did not run"
        return "UNEXPLAINED"

    @staticmethod
    def _came_back_late(person, published, after, alert):
        """Whether somebody counted as absent at the publish, and came back after it and within a time before the notification."""
        gone = [a + GIVEN_UP for a, b in person.frozen.items + person.stopped.items if a < published < b + 2]
        gone += [a for a, b in person.away.items if a < published < b + 2]
        back = any(max(published, after) <= a <= alert for a, _ in person.there.items)
        return back and person.there.around(published) is None and any(since + RETURNING < published for since in gone)

    def _server_down(self, time):
        return any(killed - CROSSING <= time <= ready + CROSSING for killed, ready in self.outages)

    def _starved(self, person, start, end):
        """The client's process was kept from running for a good part of the deadline: the machine's fault."""
        return any(min(b, end) - max(a, start) > 0.7 for a, b in person.late.items if a < end and b > start)

    def _rescue(self, event, person, frames, alert, crash):
        """How long somebody waited whose socket was dead when the event was published."""
        sent = event["sent"]
        waited = max(0.0, alert - event["answered"])
        if crash:
            return
        stop = person.stopped.around(sent) or person.frozen.around(sent)
        if stop and stop[1] >= alert:
            there = person.there.around(stop[0]) or (0, 0)
            # The log ends a connection when the process reads its end: only after it went on.
            if there[0] < stop[0] - 0.5 and stop[0] < sent - CROSSING:
                row = "stopped, socket open" if sent - stop[0] < GIVEN_UP else "stopped, socket given up"
                self.rescues[row, event["policy"]].append(waited)
        elif person.plan["declares"] and (person.hidden.around(sent) or (sent,))[0] < sent - CROSSING:
            if person.there.around(sent):
                self.rescues[LEFT, event["policy"]].append(waited)
        elif person.plan["category"] == "slipping" and any(not is_visible for _, is_visible in frames):
            self.rescues[SLIPPED, event["policy"]].append(waited)
        elif not person.there.meets(sent - 16, alert):
            self.rescues["absent", event["policy"]].append(waited)

    def _find(self, event, user, what, frames, pushes):
        person = self.people[user]
        start = event["sent"]

        def relative(items):
            return "[" + " ".join(f"{a - start:+.2f}..{b - start:+.2f}" for a, b in items if b > start - 40 and a < start + 50) + "]"

        reads = " ".join(f"{time - start:+.2f}" + ("" if is_visible else " unseen") for time, is_visible in frames)
        sends = " ".join(f"{push['time'] - start:+.2f}" for push in pushes)
        plan = person.plan
        self.findings.append(
            f"{what}: event {event['n']} ({event['policy']}), user {user} ({plan['category']}, {plan['client']}, "
            f"{'stage' if plan['stage'] else 'arena'}{', tells its state' if plan['declares'] else ''}); seconds from the publish: "
            f"answered {event['answered'] - start:+.2f}, read [{reads}], pushed [{sends}], subscribed {relative(person.there.items)}, "
            f"away {relative(person.away.items)}, hidden {relative(person.hidden.items)}, frozen {relative(person.frozen.items)}, "
            f"stopped {relative(person.stopped.items)}, server down {relative(self.outages)}, "
            f"client did not run {relative(person.late.items)}")


def percentile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))] if values else None
