"""Several apps with limits of their own on one hub; the configuration is in AppTests.swift."""

import sys

from protocol_bytes import raw_upgrade
from tandem_client import *


def refusal(path, **headers):
    """The code of a refused connection, told by the error and by the close frame."""
    socket = Socket(path, None, handshake=False, **headers)
    code = socket.closed()
    check([frame["data"]["code"] for frame in socket.all("pusher:error")] == [code], socket.frames)
    return code


def limits():
    results = {"disabled": refusal("/app/off-key?protocol=7")}
    first = Socket("/app/small-key?protocol=7")
    results["full"] = refusal("/app/small-key?protocol=7")
    first.close()
    # The place is free again once the hub has noticed.
    other = wait_for(lambda: admitted("/app/small-key?protocol=7"), "a free place")
    results["foreign_origin"] = refusal("/app/origin-key?protocol=7", origin="https://evil.example")
    results["own_origin"] = Socket("/app/origin-key?protocol=7", origin="https://good.example").handshake["activity_timeout"]

    members = [Socket() for _ in range(4)]
    for member, user in zip(members, ("a", "b", "a")):
        member.subscribe("presence-small", user=user)
    members[3].subscribe("presence-small", user="c", wait=False)
    results["presence_limit"] = json.loads(members[3].event("pusher:subscription_error", "presence-small")["data"])["type"]
    results["presence_error"] = members[3].event("pusher:error")["data"]["code"]
    # A place that becomes free is given away.
    members[1].close()
    members[0].event("pusher_internal:member_removed")
    members[3].subscribe("presence-small", user="c")
    members[0].send("client-x", {}, "presence-small")
    results["client_events_off"] = members[0].event("pusher:error")["data"]["code"]

    # The same names in another app are other channels, and its key is no key here.
    here = Socket()
    for socket in (other, here):
        socket.subscribe("news")
    backend().trigger("news", "told", {})
    here.event("told")
    other.pong()
    results["other_app"] = len(other.all("told"))
    results["foreign_key"] = signed("GET", "/channels", key="small-key", secret="small-secret").status_code
    results["own_key"] = http.get(
        f"{HUB_URL}/apps/3/channels", params=signed_query("GET", "/apps/3/channels", key="small-key", secret="small-secret")).status_code
    off = http.get(f"{HUB_URL}/apps/2/channels", params=signed_query("GET", "/apps/2/channels", key="off-key", secret="off-secret"))
    results["disabled_api"] = off.status_code
    finish(**results)


def admitted(path):
    """A connection, or None when it is refused."""
    socket = Socket(path, None, handshake=False)
    first = socket.next(lambda frame: True, "the first frame")
    return socket if first["event"] == "pusher:connection_established" else None


def keep_alive():
    """A peer that answers no PING is dropped with 4201, and its person is gone; one that answers stays."""
    watcher = Socket()
    watcher.subscribe("presence-hall", user="watcher")
    dead = raw_upgrade()
    received = b""
    began = time.monotonic()
    # 4201, as the close frame has it.
    while b"\x10\x69" not in received:
        part = dead.recv(4096)
        check(part, received)
        received += part
    took = time.monotonic() - began
    watcher.pong()
    finish(error=b'"code":4201' in received, ping=b"\x89" in received, took=took,
           alive=watcher.close_code is None)


{f.__name__: f for f in (limits, keep_alive)}[sys.argv[1]]()
