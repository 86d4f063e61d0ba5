"""Removed means out: what open sockets get when their people leave a roster, and when a session ends."""

import sys

from tandem_client import *

SESSION, CODE = "monday", "ABC123"
CHANNEL = f"presence-quiz-{SESSION}"
ERROR, SUCCEEDED = "pusher:subscription_error", "pusher_internal:subscription_succeeded"


def delete(path):
    return expect(signed("DELETE", path))


def publish(event):
    backend().trigger(CHANNEL, event, {})


def subscribed(participant):
    socket = Socket()
    socket.subscribe(CHANNEL, participant=participant)
    return socket


def statuses(socket):
    return [json.loads(frame["data"])["status"] for frame in socket.all(ERROR, CHANNEL)]


def removed():
    """Three sockets on two loops stand for Ada; Ben stays, and sees her go."""
    create_session(SESSION, CODE)
    ada, ben = join(CODE, "Ada"), join(CODE, "Ben")
    sockets, other = [subscribed(ada) for _ in range(3)], subscribed(ben)
    publish("before")
    for socket in (*sockets, other):
        socket.event("before", CHANNEL)
    delete(f"/sessions/{SESSION}/participants/{ada['user_id']}")
    publish("after")
    other.event("after", CHANNEL)
    for socket in sockets:
        socket.send("client-hello", {}, CHANNEL)
        socket.pong()
    other.pong()
    gone = other.event("pusher_internal:member_removed", CHANNEL)
    # The signature that was good for this very socket.
    first = sockets[0]
    answer = http.post(
        f"{HUB_URL}/pusher/auth", data={"socket_id": first.socket_id, "channel_name": CHANNEL}, headers=bearer(ada), timeout=PATIENCE)
    data = json.dumps({"user_id": ada["user_id"], "user_info": {"name": "Ada"}})
    first.send("pusher:subscribe", {"channel": CHANNEL, "channel_data": data, "auth": sign_channel(first.socket_id, CHANNEL, data)})
    first.pong()
    refused = statuses(first)
    # Back on the roster, by a new token or by the backend.
    again = join(CODE, "Ada", headers={})
    first.subscribe(CHANNEL, participant=again, wait=False)
    wait_for(lambda: len(first.all(SUCCEEDED, CHANNEL)) == 2, "Ada's return")
    publish("welcome")
    first.event("welcome", CHANNEL)
    finish(
        statuses=[statuses(socket)[:1] for socket in sockets], refused=refused, closed=[socket.close_code for socket in sockets],
        after=[len(socket.all("after")) for socket in sockets], hello=len(other.all("client-hello")), auth=answer.status_code,
        gone=json.loads(gone["data"])["user_id"] == ada["user_id"])


def ended():
    """A session is over, for its people and for a member that its backend let in; a new one of the same name begins."""
    create_session(SESSION, CODE)
    ada = join(CODE, "Ada")
    sockets = [subscribed(ada), Socket()]
    sockets[1].subscribe(CHANNEL, user="on no roster")
    delete(f"/sessions/{SESSION}")
    for socket in sockets:
        socket.event(ERROR, CHANNEL)
    create_session(SESSION, "DEF456")
    newcomer = subscribed(join("DEF456", "Ben"))
    for socket in sockets:
        socket.subscribe(CHANNEL, user="on no roster", wait=False)
    publish("new")
    newcomer.event("new", CHANNEL)
    for socket in sockets:
        socket.pong()
    finish(
        statuses=[statuses(socket) for socket in sockets], new=[len(socket.all("new")) for socket in sockets],
        members=json.loads(newcomer.event(SUCCEEDED, CHANNEL)["data"])["presence"]["count"])


def terminated():
    """Nobody has signed in; a member and the owner of a channel are ended, on whatever loop, and others are not."""
    create_session(SESSION, CODE)
    ada, ben = join(CODE, "Ada"), join(CODE, "Ben")
    sockets, other = [subscribed(ada) for _ in range(3)], subscribed(ben)
    owner, stranger = Socket(), Socket()
    owner.subscribe(f"private-orders-{ada['user_id']}")
    stranger.subscribe(f"private-orders-{ben['user_id']}")
    expect(signed("POST", f"/users/{ada['user_id']}/terminate_connections", {}))
    codes = [socket.closed() for socket in (*sockets, owner)]
    for socket in (other, stranger):
        socket.pong()
    finish(codes=codes, others=[other.close_code, stranger.close_code])


def crowd():
    """More people than an ordinary presence channel takes join a quiz and subscribe."""
    create_session(SESSION, CODE)
    people = [join(CODE, f"P{number}") for number in range(130)]
    sockets = [Socket() for _ in people]
    for socket, participant in zip(sockets, people):
        socket.subscribe(CHANNEL, participant=participant, wait=False)
    for socket in sockets:
        socket.event(SUCCEEDED, CHANNEL)
    publish("hello")
    for socket in sockets:
        socket.event("hello", CHANNEL)
    last = Socket()
    listed = json.loads(last.subscribe(CHANNEL, user="one more")["data"])["presence"]["count"]
    finish(errors=sum(len(socket.all(ERROR)) for socket in sockets), listed=listed)


globals()[sys.argv[1]]()
