"""The backend library of PyPI, by each of its calls that reach the hub."""

import pusher

import wire
from clients import AsyncPusher
from world import KEY, SECRET, until


class Pusher:
    name, package = "pusher", "pusher"


def check(_, world):
    """The checks that the library passes, each by its name; raises at the first that it does not."""
    library = pusher.Pusher(app_id=wire.APP, key=KEY, secret=SECRET, ssl=False, host="127.0.0.1", port=world.hub.port)
    client = AsyncPusher(world, world.join("backend"))
    client.subscribe("offers", "hello", "first", "second")
    library.trigger("offers", "hello", {"n": "single"})
    until(lambda: {"n": "single"} in client.read, "a triggered event")
    yield "trigger"
    library.trigger_batch([{"channel": "offers", "name": name, "data": {"n": name}} for name in ("first", "second")])
    until(lambda: {"n": "second"} in client.read, "a batch")
    yield "batch"
    if "offers" not in library.channels_info()["channels"] or not library.channel_info("offers")["occupied"]:
        raise AssertionError("the channel is not listed")
    yield "channels"
    socket_id = client.pusher.connection.socket_id
    signed = library.authenticate("presence-room", socket_id, {"user_id": "7", "user_info": {"name": "Ada"}})

    async def authenticate(_):
        return signed

    client.pusher._channel_authenticator = authenticate
    client.subscribe("presence-room", "hello")
    if library.users_info("presence-room") != {"users": [{"id": "7"}]}:
        raise AssertionError("the member is not listed")
    yield "authenticate, users"
    client.end()
