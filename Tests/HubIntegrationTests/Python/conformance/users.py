"""Users: signing in, events to a user, watchlists, ending a user's connections (C21, C22, C26; docs/protocol.md, 3 and 5.7)."""

import json

from client import SUCCEEDED, WATCHLIST
from hub import App, equal, expect


async def c21_success_echoes_the_string(s):
    """The very string, whatever its spelling, in a string of JSON."""
    for number, user_data in enumerate((
        '{"id":"c21-a"}', '{ "id" : "c21-b", "user_info": {"name": "Zo\u00eb"} , "watchlist": []}',
        '{"id":"c21-c","user_info":{"n":"\\u00eb"},"extra":[1,{"a":null}]}',
    )):
        client = await s.client()
        equal(await client.sign_in(user_data=user_data), user_data)
        frame = client.all("pusher:signin_success")[0]
        equal(set(json.loads(frame["data"])), {"user_data"})
        await client.sync()
        equal(client.errors(), [])


async def c21_data_as_text(s):
    client = await s.client()
    frame = client.signin(client.user_data("c21-text"))
    await client.send({"event": frame["event"], "data": json.dumps(frame["data"])})
    await client.event("pusher:signin_success")


async def c21_what_is_refused(s):
    """Ids that are none, and signatures of others; the connection stays and can still sign in."""
    client, other = await s.clients(2)
    for user_data in ("{}", '{"id":5}', '{"id":""}', '{"id":null}', '{"id":["a"]}', "[]", "no json", '{"id":"' + "x" * 201 + '"}',
                      '{"id":"c21-r","watchlist":"7"}', '{"id":"c21-r","watchlist":[5]}', '{"user_id":"c21-r"}'):
        await client.complained(client.signin(user_data))
    good = client.user_data("c21-refused")
    for auth in (client.app.user_auth(other.socket_id, good), client.app.auth(client.socket_id, "private-x"), client.app.key + ":00", "",
                 s.hub.apps["keys"].user_auth(client.socket_id, good)):
        await client.complained({"event": "pusher:signin", "data": {"auth": auth, "user_data": good}})
    expect(client.close_code is None and not client.all("pusher:signin_success"))
    await client.sign_in("c21-refused")


async def c21_one_user_per_connection(s):
    client = await s.client()
    await client.sign_in("c21-one")
    await client.complained(client.signin(client.user_data("c21-two")))
    await client.sign_in("c21-one")
    await client.subscribe("#server-to-user-c21-one")
    await client.refused({"event": "pusher:subscribe", "data": {"channel": "#server-to-user-c21-two"}}, "#server-to-user-c21-two")


async def c21_server_to_user_is_the_owners(s):
    owner, stranger, nobody = await s.clients(3)
    channel = "#server-to-user-c21-owner"
    frame = {"event": "pusher:subscribe", "data": {"channel": channel, "auth": ""}}
    await owner.refused(frame, channel)
    await owner.sign_in("c21-owner")
    await stranger.sign_in("c21-stranger")
    await stranger.refused(frame, channel)
    await nobody.refused(frame, channel)
    await owner.send(frame)
    equal((await owner.event(SUCCEEDED, channel))["data"], "{}")
    await s.hub.publish(channel, "note", '{"n": 1}')
    equal(await owner.event("note"), {"event": "note", "channel": channel, "data": '{"n": 1}'})
    for client in (stranger, nobody):
        await client.sync()
        equal(client.all("note"), [])
    await owner.complained({"event": "client-x", "channel": channel, "data": 1})
    # Not a channel that people see.
    equal([name for name in (await s.hub.get("/channels")).json["channels"] if name.startswith("#")], [])


async def c21_all_sockets_of_the_user(s):
    """On every loop."""
    clients = await s.clients(5)
    for client in clients:
        await client.sign_in("c21-all")
        await client.subscribe("#server-to-user-c21-all")
    for number in range(5):
        await s.hub.publish("#server-to-user-c21-all", "note", str(number))
    for client in clients:
        await client.event("note", count=5)
        equal(client.data("note"), [str(n) for n in range(5)])
    await clients[0].unsubscribe("#server-to-user-c21-all")
    await clients[0].sync()
    await s.hub.publish("#server-to-user-c21-all", "later", socket_id=clients[1].socket_id)
    await clients[4].event("later")
    for client in clients[:2]:
        await client.sync()
        equal(client.all("later"), [])


async def c21_presence_of_the_signed_in(s):
    """Without channel_data the member is the signed-in user; with it, what it says."""
    client, watcher, stranger = await s.clients(3)
    await watcher.subscribe("presence-c21", user="w")
    await stranger.refused(stranger.subscription("presence-c21"), "presence-c21")
    await client.sign_in("c21-p", user_info={"name": "P"})
    presence = (await client.subscribe("presence-c21"))["presence"]
    equal((sorted(presence["ids"]), presence["hash"]["c21-p"]), (["c21-p", "w"], {"name": "P"}))
    added = await watcher.event("pusher_internal:member_added", "presence-c21")
    equal(json.loads(added["data"]), {"user_id": "c21-p", "user_info": {"name": "P"}})
    equal((await client.subscribe("presence-c21-own", user="other"))["presence"]["ids"], ["other"])
    wrong = {"event": "pusher:subscribe", "data": {"channel": "presence-c21-wrong", "auth": watcher.app.auth(watcher.socket_id, "presence-c21-wrong")}}
    await client.refused(wrong, "presence-c21-wrong")


async def c22_initial_state_and_changes(s):
    """Online is who has a signed-in connection anywhere; told once with the first and once with the last of them."""
    watcher, *friends = await s.clients(5)
    await friends[0].sign_in("c22-friend")
    await watcher.sign_in("c22-w", watchlist=["c22-friend", "c22-away", "c22-nobody"])
    frame = await watcher.event(WATCHLIST)
    equal(set(frame), {"event", "data"})
    await watcher.until(lambda: sum(len(ids) for _, ids in watcher.watched()) >= 3, "the first state")
    first = watcher.watched()
    equal(sorted((name, id) for name, ids in first for id in ids), [("offline", "c22-away"), ("offline", "c22-nobody"), ("online", "c22-friend")])

    def changes():
        return [(name, ids) for name, ids in watcher.watched()[len(first):]]

    for friend in friends[1:]:
        await friend.sign_in("c22-away")
    await watcher.until(lambda: changes() == [("online", ["c22-away"])], "c22-away to be online")
    await friends[1].leave()
    friends[2].drop()
    await friends[0].leave()
    await watcher.until(lambda: ("offline", ["c22-friend"]) in changes(), "c22-friend to be offline")
    expect(("offline", ["c22-away"]) not in changes(), "one socket is left")
    await friends[3].leave()
    await watcher.until(lambda: ("offline", ["c22-away"]) in changes(), "c22-away to be offline")
    equal(len(changes()), 3)
    # Presence alone is not signing in.
    present = await s.client()
    await present.subscribe("presence-c22", user="c22-nobody")
    await present.sync()
    await watcher.sync()
    equal(len(changes()), 3)


async def c22_limit(s):
    """A hundred are watched; of more, the first hundred, and the client is told with 4302."""
    exact = await s.client()
    await exact.sign_in("c22-100", watchlist=[f"c22-n{n}" for n in range(100)])
    await exact.event(WATCHLIST)
    await exact.sync()
    equal(exact.errors(), [])
    client = await s.client()
    await client.sign_in("c22-101", watchlist=[f"c22-n{n}" for n in range(101)])
    await client.event("pusher:error")
    equal(client.errors(), [4302])
    await client.until(lambda: sum(len(ids) for _, ids in client.watched()) >= 100, "the first state")
    inside, outside = await s.clients(2)
    await outside.sign_in("c22-n100")
    await inside.sign_in("c22-n99")
    for watcher in (exact, client):
        await watcher.until(lambda: ("online", ["c22-n99"]) in watcher.watched(), "c22-n99")
    await client.sync()
    expect(all("c22-n100" not in ids for _, ids in client.watched()), client.watched())
    expect(client.close_code is None)


async def c22_off(s):
    client = await s.client("unwatched")
    await client.sign_in("c22-off", watchlist=["c22-x"])
    other = await s.client("unwatched")
    await other.sign_in("c22-x")
    await other.sync()
    await client.sync()
    equal((client.all(WATCHLIST), client.errors()), ([], []))
    none = await s.client()
    await none.sign_in("c22-none")
    await none.sync()
    equal(none.all(WATCHLIST), [])


async def terminated(s, user, request):
    """Ends a user's connections with `request` and checks whom that meets."""
    signed = await s.clients(4)
    present, stranger = await s.clients(2)
    elsewhere = await s.client("keys")
    for client in (*signed, elsewhere):
        await client.sign_in(user)
        await client.subscribe("presence-ended", user=user)
    await stranger.sign_in(user + "-not")
    await present.subscribe("presence-ended", user=user)
    answer = await request(user)
    equal((answer.status, answer.json), (200, {}), answer.text)
    for client in (*signed, present):
        code = await client.closed()
        equal((client.errors(), code), ([code], code))
        equal(code, 4009)
        expect(client.close_reason, "no reason")
    for client in (stranger, elsewhere):
        await client.sync()
        expect(client.close_code is None)
    # They may come back.
    again = await s.client()
    await again.sign_in(user)
    equal((await request(user + "-nobody")).json, {})


async def c26_terminate(s):
    await terminated(s, "c26", lambda user: s.hub.post(f"/users/{user}/terminate_connections", {}))


async def c26_right_after_the_sign_in(s):
    """Whoever knows of a sign-in can end it, whichever loops the two are on."""
    for number in range(40):
        clients = await s.clients(2)
        for client in clients:
            await client.sign_in(f"c26-quick-{number}")
        equal((await s.hub.post(f"/users/c26-quick-{number}/terminate_connections", {})).status, 200)
        for client in clients:
            equal(await client.closed(), 4009, f"round {number}")


async def c26_terminate_by_the_alias(s):
    """The python library leaves `/apps/{id}` out, and signs that (vector H7); the app is found by its key."""
    from hub import signed_target

    async def request(user):
        path = f"/users/{user}/terminate_connections"
        return await s.hub.request("POST", signed_target(s.hub.apps["main"], "POST", path, b"{}"), b"{}")

    await terminated(s, "c26-alias", request)
    app = App("1", "main-key", "wrong")
    path = "/users/c26/terminate_connections"
    (await s.hub.request("POST", signed_target(app, "POST", path, b"{}"), b"{}")).refused(401, "Invalid signature")
    (await s.hub.request("POST", signed_target(App("1", "nobody", "x"), "POST", path, b"{}"), b"{}")).refused(401, "auth_key")
    (await s.hub.request("POST", path, b"{}")).refused(401)


async def c26_ids_in_paths(s):
    """Percent-encoded or raw, whichever the library signed."""
    from hub import signed_target
    for number, (id, sent, signed) in enumerate((
        ("c26 a", "c26%20a", "c26%20a"), ("c26 b", "c26%20b", "c26 b"), ("c26@x.y", "c26@x.y", "c26@x.y"), ("c26@y.z", "c26%40y.z", "c26%40y.z"),
        ("c26-\u00e9", "c26-%C3%A9", "c26-%C3%A9"),
    )):
        client = await s.client()
        await client.sign_in(id)
        path, wanted = (f"/apps/1/users/{part}/terminate_connections" for part in (signed, sent))
        target = signed_target(s.hub.apps["main"], "POST", path, b"{}").replace(path, wanted)
        answer = await s.hub.request("POST", target, b"{}")
        equal(answer.status, 200, answer.text)
        equal(await client.closed(), 4009, id)
