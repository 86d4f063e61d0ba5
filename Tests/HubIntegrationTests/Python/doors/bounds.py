"""What one connection may say to a real hub, and what honest clients say."""

import sys

from tandem_client import *


def flood():
    """Frames of every kind, faster than any client has to; somebody else is served meanwhile."""
    other, closes = Socket(), []
    other.subscribe("news")
    kinds = {
        "pings": lambda socket: socket.send("pusher:ping"), "no JSON": lambda socket: socket.send_raw("{"),
        "binary": lambda socket: socket.send_raw(b"\x00"), "pongs": lambda socket: socket._socket.pong(b"unasked"),
        "fragments": lambda socket: socket._socket.send(iter(["", "", "", "", "", "", "", "", "", "{}"])),
    }
    for name, say in kinds.items():
        socket = Socket()
        try:
            for _ in range(5000):
                say(socket)
        except ConnectionClosed:
            pass
        closes.append([name, socket.closed()])
    backend().trigger("news", "still", {})
    other.event("still", "news")
    other.pong()
    finish(closes=closes, other=other.close_code)


def honest():
    """A client that comes back to 500 channels, and then sends as many client events as it may."""
    socket, other = Socket(), Socket()
    channels = [f"private-{number}" for number in range(500)]
    for channel in channels:
        socket.subscribe(channel, wait=False)
    socket.count("pusher_internal:subscription_succeeded", 500)
    other.subscribe(channels[0])
    for _ in range(3):
        for number in range(10):
            socket.send("client-moved", {"n": number}, channels[0])
        time.sleep(1.1)
    other.count("client-moved", 30)
    finish(close=socket.close_code, errors=len(socket.all("pusher:error")))


globals()[sys.argv[1]]()
