"""Signatures of subscriptions and sign-ins, and how a refused one is told (C09 to C11; docs/protocol.md, 2.4 to 2.6 and 4)."""

import functools
import json

from client import SUCCEEDED, public
from hub import App, equal, expect

ZOE, ZOE_ESCAPED = '{"user_id":"10","user_info":{"name":"Zo\u00eb"}}', '{"user_id":"10","user_info":{"name":"Zo\\u00eb"}}'
# Channel, or None for a sign-in; the string of data, or None; the digest for the socket id 1234.1234 (docs/protocol.md, 4.2).
VECTORS = (
    ("private-foobar", None, "58df8b0c36d6982b82c3ecf6b4662e34fe8c25bba48f5369f135bf843651c3a4"),
    ("presence-foobar", '{"user_id":10,"user_info":{"name":"Mr. Channels"}}', "31935e7d86dba64c2a90aed31fdc61869f9b22ba9d8863bba239c03ca481bc80"),
    ("presence-foobar", '{"user_id":10,"user_info":{"name":"Mr. Pusher"}}', "afaed3695da2ffd16931f457e338e6c9f2921fa133ce7dac49f529792be6304c"),
    ("presence-foobar", ZOE, "01929b58470549b26feda16bd5c83f392f22e023661d24e836df880b63d23e0b"),
    ("presence-foobar", ZOE_ESCAPED, "52ac5e42c00816c320ab6ed7246fd3f0f4799dadff8fce94b593c8fab71401f2"),
    ("presence-foobar", None, "71506e66e7fdca106571b8999a849ad34245bc653772e51e0026c1a2475b92ba"),
    ("private-foobar", '{"plan":"pro"}', "13e198d38e73d33a3b523a305eeace3c1d3d9b81830b5c15a561536e501e95eb"),
    ("private-encrypted-foobar", None, "e6a18892d037c5d5e76a2265df4f086ffc38631605530dfd214aa5bff495f533"),
    (None, '{"id":"12345"}', "4708d583dada6a56435fb8bc611c77c359a31eebde13337c16ab43aa6de336ba"),
    (None, '{"id":"12345","watchlist":["7","8"]}', "d0c2a1e65febc0605103bb64f1b39762ad767efec4fc4ebb85be8fad6ed26c6b"),
)
VECTOR_SOCKET = "1234.1234"


def flipped(auth, place):
    """The value with one bit of the digest changed."""
    key, digest = auth.split(":", 1)
    changed = f"{int(digest[place], 16) ^ 1:x}"
    return f"{key}:{digest[:place]}{changed}{digest[place + 1:]}"


async def vector(number, s):
    """The signer of these checks makes the vector; the hub takes the same string for its own socket id, and nothing near it."""
    channel, data, digest = VECTORS[number - 1]
    app, other = s.hub.apps["vectors"], s.hub.apps["main"]
    sign = (lambda signer, socket: signer.user_auth(socket, data)) if channel is None else (lambda signer, socket: signer.auth(socket, channel, data))
    equal(sign(app, VECTOR_SOCKET), f"{app.key}:{digest}", "the vector")
    client, neighbour = await s.clients(2, "vectors")

    def frame(auth):
        if channel is None:
            return {"event": "pusher:signin", "data": {"auth": auth, "user_data": data}}
        return {"event": "pusher:subscribe", "data": {"channel": channel, "auth": auth, **({"channel_data": data} if data else {})}}

    if number == 6:
        await client.sign_in("12345", user_info={"name": "Mr. Channels"})
    good = sign(app, client.socket_id)
    bad = [flipped(good, place) for place in (0, 31, 63)]
    bad += [sign(app, neighbour.socket_id), f"{app.key}:{digest}", sign(other, client.socket_id)]
    # The right signature under another key, and the other app's under this key.
    bad += [f"{other.key}:{good.split(':')[1]}", f"{app.key}:{sign(other, client.socket_id).split(':')[1]}"]
    bad += [good[:-1], good + "0", good.replace(":", ""), ":" + good, good.split(":")[1], app.key + ":", "", "x:y:z"]
    if data is not None:
        # One bit of what is signed.
        bad.append((app.user_auth(client.socket_id, data + " ") if channel is None else app.auth(client.socket_id, channel, data + " ")))
        if channel and channel.startswith("presence-"):
            # Without the data, which says who the member is.
            bad.append(app.auth(client.socket_id, channel))
    for auth in bad:
        if channel is None:
            await client.complained(frame(auth))
        else:
            await client.refused(frame(auth), channel)
    await client.send(frame(good))
    await client.event("pusher:signin_success" if channel is None else SUCCEEDED, channel)
    await client.sync()
    expect(client.close_code is None)


def _vector_checks():
    for number in range(1, len(VECTORS) + 1):
        globals()[f"c09_v{number}"] = functools.partial(vector, number)


_vector_checks()


async def c09_several_keys(s):
    """Both keys of an app are good, each with its own secret."""
    first = s.hub.apps["keys"]
    second = App(first.id, "second-key", "second-secret")
    for entry in (first, second):
        for signer in (first, second):
            client = await s.client(entry)
            await client.subscribe("private-c09-keys", signer=signer)
        crossed = App(first.id, first.key, second.secret)
        await client.refused(client.subscription("private-c09-other", signer=crossed), "private-c09-other")
        equal((await s.hub.call("GET", "/channels", app=entry)).status, 200)
    (await s.hub.call("GET", "/channels", app=crossed)).refused(401, "Invalid signature")


async def c09_private_with_channel_data(s):
    """Some SDKs sign the data of a private channel, others attach it unsigned: both are accepted, a wrong one is not."""
    client = await s.client()
    data = '{"plan":"pro"}'
    for number, auth in enumerate((client.app.auth(client.socket_id, "private-c09-0", data), client.app.auth(client.socket_id, "private-c09-1"))):
        await client.send(public(f"private-c09-{number}", auth=auth, channel_data=data))
        await client.event(SUCCEEDED, f"private-c09-{number}")
    wrong = client.app.auth(client.socket_id, "private-c09-2", '{"plan":"free"}')
    await client.refused(public("private-c09-2", auth=wrong, channel_data=data), "private-c09-2")


async def c10_bytes_as_signed(s):
    """The same value in other bytes has another signature: what was received is verified, not what it means."""
    for number, data in enumerate((ZOE, ZOE_ESCAPED)):
        for ascii in (True, False):
            channel = f"presence-c10-{number}-{ascii}"
            client = await s.client("vectors")
            frame = client.subscription(channel, channel_data=data)
            # The outer frame may escape what it likes.
            await client.send(json.dumps(frame, ensure_ascii=ascii))
            presence = json.loads((await client.event(SUCCEEDED, channel))["data"])["presence"]
            equal(presence, {"count": 1, "ids": ["10"], "hash": {"10": {"name": "Zo\u00eb"}}})
            crossed = client.subscription("presence-c10-crossed", channel_data=data)
            crossed["data"]["channel_data"] = (ZOE_ESCAPED, ZOE)[number]
            await client.refused(crossed, "presence-c10-crossed")


async def c11_refused_subscribe(s):
    client = await s.client()
    member = '{"user_id":"1"}'

    def signed(channel, data=None):
        return public(channel, auth=client.app.auth(client.socket_id, channel, data), **({"channel_data": data} if data is not None else {}))

    refused = {
        "private-c11": public("private-c11"), "private-c11-b": public("private-c11-b", auth="main-key:00"),
        "presence-c11": signed("presence-c11"), "presence-c11-b": public("presence-c11-b", auth="main-key:00", channel_data=member),
        "presence-c11-c": signed("presence-c11-c", "no json"), "presence-c11-d": signed("presence-c11-d", "[]"),
        "presence-c11-e": signed("presence-c11-e", "{}"), "presence-c11-f": signed("presence-c11-f", '{"user_id":null}'),
        "presence-c11-g": signed("presence-c11-g", '{"user_id":""}'), "presence-c11-h": signed("presence-c11-h", '{"user_id":{"a":1}}'),
        "presence-c11-i": signed("presence-c11-i", '{"user_id":true}'),
    }
    for channel, frame in refused.items():
        await client.refused(frame, channel)
    # Usable afterwards, also for the very channel.
    for channel in refused:
        await client.subscribe(channel, user="1")
        await s.hub.publish(channel, "told")
        await client.event("told", channel)
