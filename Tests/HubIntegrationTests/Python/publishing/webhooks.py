"""What happens to channels so that webhooks tell of it, and the validation of webhooks as a backend does it."""

import json
import os
import sys

from tandem_client import Socket, backend, check, finish


def visits():
    """Comes and goes: a reload that nobody hears of, a client event, an empty cache, and a last good-bye."""
    ada = Socket()
    ada.subscribe("presence-room", user="ada")
    ada.send("client-wave", {"to": "all"}, "presence-room")
    ada.pong()
    ada.close()
    ada = Socket()
    ada.subscribe("presence-room", user="ada")
    ada.subscribe("cache-news")
    other = Socket()
    other.subscribe("cache-news")
    for socket in (ada, other):
        socket.event("pusher:cache_miss", "cache-news")
    ada.send("client-wave", "text", "presence-room")
    ada.pong()
    ada.close()
    other.close()
    finish(socket_id=ada.socket_id)


def occupy():
    """One channel gets its first subscriber."""
    socket = Socket()
    socket.subscribe("news")
    finish()


def validate():
    """Checks requests as the official library does; WEBHOOKS names a file with what was received."""
    with open(os.environ["WEBHOOKS"]) as file:
        received = json.load(file)
    events = []
    for request in received:
        check(request["content_type"] == "application/json", request["content_type"])
        webhook = backend().validate_webhook(request["key"], request["signature"], request["body"])
        check(webhook is not None, "not valid", request)
        check(backend(secret="another").validate_webhook(request["key"], request["signature"], request["body"]) is None)
        check(isinstance(webhook["time_ms"], int) and 1 <= len(webhook["events"]) <= 20, webhook)
        events += webhook["events"]
    finish(events=events)


{f.__name__: f for f in (visits, occupy, validate)}[sys.argv[1]]()
