"""What a companion promises, each scenario on real sockets with people of its own: COMPANION= is the program, PLATFORM= its phone's."""

import itertools
import os
import sys

sys.path.insert(1, os.path.dirname(os.path.abspath(__file__)))

from driver import Companion, device_token
from tandem_client import *

NUMBERS = itertools.count(1)
SESSIONS = itertools.count(1)


class World:
    """A session, with who joins it."""

    def __init__(self):
        number = next(SESSIONS)
        self.gateways, self.session, self.code = Gateways(), f"s{number}", f"CODE{number}"
        self.channel = f"presence-board-{self.session}"
        create_session(self.session, self.code, definition="board")

    def join(self, name, token=None, **members):
        """A person with one phone. `token`: of its notifications."""
        token = token or device_token(f"{name}-{self.session}")
        platform = "ios" if len(token) == 64 else "android"
        person = join(self.code, name, device_token=token, device_platform=platform, **members)
        return person | {"device_token": token, "channel": self.channel}

    def publish(self, name="alarm"):
        """One event, as (number, id). `alarm` is critical, `news` waits longer."""
        number = next(NUMBERS)
        event = {"name": name, "channel": self.channel, "data": json.dumps({"n": number})}
        return number, expect(signed("POST", "/events", event))["event_id"]

    def state(self, name, wanted):
        wait_for(lambda: roster(self.session)[name]["app_state"] == wanted, f"{name} to be {wanted}")

    def pushed(self, token):
        """Ids of the events that were pushed to the token."""
        bodies = [request["body"] for request in self.gateways.requests(token) if request["status"] == 200]
        return [body["message"]["data"]["event_id"] if "message" in body else body["event_id"] for body in bodies]

    def nid(self, token, event):
        bodies = [request["body"] for request in self.gateways.requests(token)]
        data = [body["message"]["data"] if "message" in body else body for body in bodies]
        return next(one["nid"] for one in data if one["event_id"] == event)

    def row(self, event, person):
        answer = expect(signed("GET", f"/events/{event}/deliveries", params={"user": person["user_id"]}))
        return answer["deliveries"][0]

    def ended(self, event, person):
        """How the event ended for the person, what was known of them, and whether it was awaited or pushed at once."""
        wait_for(lambda: self.row(event, person)["state"] not in ("awaited", "pushing"), f"the end of {event}")
        row = self.row(event, person)
        return [row["state"], row["known"], row["decision"]]

    def own(self, person):
        """Ids of the events that the person can fetch."""
        answer = expect(http.get(f"{HUB_URL}/me/events", headers=bearer(person), timeout=PATIENCE))
        return [event["event_id"] for event in answer["events"]]


def states():
    """On the screen, off it, back, and after a lost connection without another call."""
    world = World()
    ada = world.join("Ada")
    app = Companion(ada)
    world.state("Ada", "foreground")
    seen = []

    def told():
        number, event = world.publish()
        seen.append(world.ended(event, ada))
        if seen[-1][0] == "confirmed":
            app.read(number)

    told()
    app.call("background")
    world.state("Ada", "background")
    told()
    app.call("foreground")
    world.state("Ada", "foreground")
    told()
    app.call("drop")
    app.subscribed(2)
    world.state("Ada", "foreground")
    told()
    app.call("background")
    app.call("drop")
    app.subscribed(3)
    world.state("Ada", "background")
    told()
    app.leave()
    return dict(seen=seen, pushes=len(world.pushed(ada["device_token"])))


def confirmed():
    """A notification is confirmed by its nid, once it was sent; an invented id is refused."""
    world = World()
    ada, ben = world.join("Ada"), world.join("Ben")
    app, other = Companion(ada), Companion(ben)
    app.call("background")
    other.call("background")
    _, event = world.publish("news")
    states = [world.ended(event, ada)[0], world.ended(event, ben)[0]]
    nid = world.nid(ada["device_token"], event)
    refused = [app.call("received", "0" * 32), other.call("received", nid)]
    taken = app.call("received", nid)
    wait_for(lambda: world.row(event, ada)["confirmed_at"], "the receipt")
    others = world.row(event, ben)["confirmed_at"]
    app.leave()
    other.leave()
    return dict(states=states, taken=taken, refused=refused, others=others)


def token_rotated():
    """The gateway gives the phone another token, and the person gets another participant token."""
    world = World()
    ada = world.join("Ada")
    app = Companion(ada)
    app.call("background")
    first, second = ada["device_token"], device_token(f"rotated-{world.session}")
    _, before = world.publish()
    world.ended(before, ada)
    taken = [app.call("push-token", second)]
    _, after = world.publish()
    world.ended(after, ada)
    # The same e-mail again: a new participant token, and the old one is not needed any more.
    again = world.join("Ada", token=second)
    app.call("bearer", again["token"])
    taken += [app.call("push-token", first), str(again["user_id"] == ada["user_id"]).lower()]
    _, last = world.publish()
    world.ended(last, ada)
    app.call("drop")
    app.subscribed(2)
    app.leave()
    world.gateways.settled()
    return dict(taken=taken, first=world.pushed(first) == [before, last], second=world.pushed(second) == [after])


def permission_withdrawn():
    """The person wants no notifications, and then wants them again; meanwhile the events can be fetched."""
    world = World()
    ada = world.join("Ada")
    app = Companion(ada)
    app.call("background")
    taken = [app.call("push-token")]
    _, declined = world.publish()
    ended = world.ended(declined, ada)[0]
    why = world.row(declined, ada)["decision"]
    app.call("foreground")
    world.state("Ada", "foreground")
    number, shown = world.publish()
    app.read(number)
    app.call("background")
    taken.append(app.call("push-token", ada["device_token"]))
    _, wanted = world.publish()
    world.ended(wanted, ada)
    world.gateways.settled()
    app.leave()
    return dict(
        taken=taken, ended=ended, why=why, pushed=world.pushed(ada["device_token"]) == [wanted],
        fetched=declined in world.own(ada))


def logged_out():
    """With and without a word about notifications: who is logged out is not told on the screen, and misses nothing."""
    world = World()
    ada, ben = world.join("Ada"), world.join("Ben")
    apps = [Companion(ada), Companion(ben)]
    check(apps[0].call("push-token") == "true", "Ada declined")
    for app, name in zip(apps, ("Ada", "Ben")):
        app.call("end")
        world.state(name, "background")
        # Nothing of the screen counts any more.
        app.call("foreground")
        app.call("drop")
        app.subscribed(2)
    time.sleep(QUIET)
    states = [roster(world.session)[name]["app_state"] for name in ("Ada", "Ben")]
    for app in apps:
        app.leave()
    wait_for(lambda: not any(entry["present"] for entry in roster(world.session).values()), "both to be gone")
    _, event = world.publish()
    ended = [world.ended(event, person)[0] for person in (ada, ben)]
    world.gateways.settled()
    return dict(
        states=["foreground" in states, len(states)], ended=ended, fetched=[event in world.own(person) for person in (ada, ben)],
        pushes=[len(world.pushed(person["device_token"])) for person in (ada, ben)])


def another_user():
    """Ada logs out and Ben logs in on the same phone, in this session and in another: its notifications are Ben's from then on."""
    world, elsewhere = World(), World()
    phone = device_token(f"phone-{world.session}")
    ids = {"X-Client-Id": f"3f6c1f0e-7a51-4b7e-9a3e-{hash_of(phone)}"}
    ada = world.join("Ada", token=phone, headers=ids)
    app = Companion(ada)
    app.call("background")
    _, hers = world.publish()
    world.ended(hers, ada)
    app.call("push-token")
    app.call("end")
    app.leave()
    ben = world.join("Ben", token=phone, headers=ids)
    theirs = Companion(ben)
    theirs.call("push-token", phone)
    theirs.call("background")
    _, his = world.publish()
    ended = [world.ended(his, person)[0] for person in (ada, ben)]
    again = elsewhere.join("Ben", token=phone, headers=ids)
    _, there = elsewhere.publish()
    elsewhere.ended(there, again)
    world.gateways.settled()
    theirs.leave()
    return dict(ended=ended, pushed=world.pushed(phone) == [hers, his, there], fetched=[his in world.own(person) for person in (ada, ben)])


def hash_of(text):
    return hashlib.sha256(text.encode()).hexdigest()[:12]


SCENARIOS = [states, confirmed, token_rotated, permission_withdrawn, logged_out, another_user]


if __name__ == "__main__":
    finish(**{scenario.__name__: scenario() for scenario in SCENARIOS if sys.argv[1] in ("all", scenario.__name__)})
