"""Companions in raw frames: the tabs of a browser, and those that are old, absent or lie. Whatever they say, each event is told."""

import os
import sys

sys.path.insert(1, os.path.dirname(os.path.abspath(__file__)))

from companions import *
from protocol_bytes import client_frame, raw_session


def frozen(person, *states):
    """An app that says these states and then reads nothing: its socket stays open."""
    socket, socket_id = raw_session()
    subscription = {"channel": person["channel"], **authorize(person, socket_id, person["channel"])}
    frames = [{"event": "pusher:subscribe", "data": subscription}]
    frames += [{"event": "client-app-state", "channel": person["channel"], "data": state} for state in states]
    for frame in frames:
        socket.sendall(client_frame(json.dumps(frame).encode()))
    return socket


def reading(person, *states):
    """An app that says these states and reads."""
    socket = Socket()
    socket.subscribe(person["channel"], participant=person)
    for state in states:
        socket.send("client-app-state", state, person["channel"])
    socket.pong()
    return socket


class Tab(Socket):
    """A page with the companion of pusher-js: says `client=js`, and answers `pusher:ping`."""

    def __init__(self, person, state):
        super().__init__(path=f"/app/{KEY}?protocol=7&client=js&version=8.4.0&flash=false", subprotocol=None)
        self.person = person
        self.subscribe(person["channel"], participant=person)
        self.say(state)

    def say(self, state):
        self.send("client-app-state", {"state": state}, self.person["channel"])
        # The answer comes after the state was read.
        self.send("pusher:ping")

    def heard(self, frame):
        if frame["event"] == "pusher:ping":
            self.send("pusher:pong")


def tabs():
    """One of a person's tabs on the screen is enough, whichever was opened first; with none of them the push leaves at once."""
    world = World()
    ada = world.join("Ada")
    older, newer = Tab(ada, "foreground"), Tab(ada, "background")
    seen = []

    def told(state):
        world.state("Ada", state)
        _, event = world.publish()
        seen.append(world.ended(event, ada))

    told("foreground")
    older.say("background")
    told("background")
    newer.say("foreground")
    told("foreground")
    # Its beacon speaks for all tabs, and the tab that is left speaks up.
    older.close()
    check(put_state(ada, "background") == 200, "the beacon")
    newer.say("foreground")
    told("foreground")
    newer.say("background")
    told("background")
    newer.close()
    world.gateways.settled()
    return dict(seen=seen, pushes=len(world.pushed(ada["device_token"])))


def put_state(person, state):
    return http.put(f"{HUB_URL}/me/state", json={"state": state}, headers=bearer(person), timeout=PATIENCE).status_code


def old():
    """One of an earlier version, with members that nobody knows; one of a later version, with states that nobody knows."""
    world = World()
    ada, ben = world.join("Ada"), world.join("Ben")
    early = reading(ada, {"state": "foreground", "version": 0, "screen": {"name": "home"}})
    late = frozen(ben, {"state": "asleep"}, {"state": 7}, {}, [], "background", None)
    world.state("Ada", "foreground")
    wait_for(lambda: roster(world.session)["Ben"]["present"], "Ben to be present")
    _, event = world.publish()
    early.event("alarm")
    ended = [world.ended(event, person)[0] for person in (ada, ben)]
    state = roster(world.session)["Ben"]["app_state"]
    late.close()
    return dict(ended=ended, state=state)


def absent():
    """A stock app without a companion, which stands still; the same for somebody who has no socket, whatever is said by HTTP."""
    world = World()
    ada, ben = world.join("Ada"), world.join("Ben")
    mute = frozen(ada)
    wait_for(lambda: roster(world.session)["Ada"]["present"], "Ada to be present")
    status = put_state(ben, "foreground")
    _, event = world.publish()
    ended = [world.ended(event, person)[0] for person in (ada, ben)]
    mute.close()
    return dict(ended=ended, status=status, known=world.row(event, ben)["known"].startswith(("absent", "grace")))


def lies():
    """`foreground` and nobody there; `background` on the screen; the word of somebody else, and of nobody."""
    world = World()
    ada, ben, cleo = world.join("Ada"), world.join("Ben"), world.join("Cleo")
    gone = frozen(ada, *[{"state": "foreground"}] * 5)
    shown = reading(ben, {"state": "background"})
    world.state("Ada", "foreground")
    _, event = world.publish()
    frame = shown.event("alarm")
    ended = [world.ended(event, person)[0] for person in (ada, ben, cleo)]
    nid = world.nid(ada["device_token"], event)

    def confirm(**body):
        return http.post(f"{HUB_URL}/me/receipts", json={"status": "received", **body}, headers=bearer(ben), timeout=PATIENCE).status_code

    # Repeated above the pace of one participant: refused, and nothing else is.
    statuses = [confirm(nid=nid), confirm(nid="0" * 32), confirm(event_id=event)]
    flood = {put_state(cleo, "foreground" if number % 2 else "background") for number in range(150)}
    _, after = world.publish()
    ended += [world.ended(after, person)[0] for person in (ada, ben, cleo)]
    gone.close()
    return dict(ended=ended, statuses=statuses, flood=sorted(flood), told=frame["event_id"] == event)


if __name__ == "__main__":
    finish(tabs=tabs(), old=old(), absent=absent(), lies=lies())
