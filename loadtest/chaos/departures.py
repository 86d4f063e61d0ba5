"""Whether each departure of a member was told exactly once."""

# An absence that is told to nobody, and one that is told in any case.
SHORT_SECONDS, LONG_SECONDS = 2.5, 15.0
# The hub lets a socket go that says nothing; these people's logs do not tell when.
SILENT = ("stopped", "slipping")


class Departures:
    """What webhooks told of one session's members, beside what their apps wrote down."""

    def __init__(self, people, webhooks, faults, channel, start, end):
        self.told, self.removals, self.mistakes = 0, 0, []
        self._start = start
        changes = {}
        for at, name, where, user, _ in webhooks:
            if where == channel and name in ("member_added", "member_removed"):
                changes.setdefault(user, []).append((at, name))
        for user, person in people.items():
            if person.plan["channel"] == channel and person.plan["category"] not in SILENT:
                self._judge(person, user, changes.get(user, []), faults, end)

    def _judge(self, person, user, changes, faults, end):
        self.told += 1
        names = [name for _, name in changes]
        removed = names.count("member_removed")
        self.removals += removed
        stretches = person.there.items
        gaps = [(left, back) for (_, left), (back, _) in zip(stretches, stretches[1:])]
        certain = sum(back - left >= LONG_SECONDS for left, back in gaps)
        possible = sum(back - left >= SHORT_SECONDS for left, back in gaps)
        # Who left for good is told once, if there was time.
        if stretches and stretches[-1][1] < end:
            certain, possible = certain + (stretches[-1][1] < end - LONG_SECONDS), possible + 1
        # A node that stands still, or is alone, takes its people away without their knowing it.
        for begin, over, _, port in faults:
            if over - begin >= 3 and any(ours == port and a <= over and b >= begin for (a, b), ours in zip(stretches, person.ports)):
                possible += 1
        if any(one == two for one, two in zip(names, names[1:])):
            problem = "is told the same twice in a row"
        elif not certain <= removed <= possible:
            problem = f"is told removed {removed} times, and was away {certain} to {possible} times"
        else:
            return
        told = " ".join(f"{name.removeprefix('member_')} {at - self._start:.1f}" for at, name in changes)
        there = " ".join(f"{begin - self._start:.1f}-{end - self._start:.1f}" for begin, end in stretches)
        self.mistakes.append(f"{user} ({person.plan['category']}) {problem}: {told}; subscribed {there}, in seconds of the run")
