"""The HTTP API: signatures, shapes, limits (C23 to C25; docs/protocol.md, 4.4 and 5)."""

import asyncio
import hashlib
import json
import time

from hub import Answer, App, Clock, equal, expect, signed_parameters, signed_target

VECTOR_TIME = 1353088179
EVENT = '{"name":"foo","channels":["project-3"],"data":"{\\"some\\":\\"data\\"}"}'
BATCH = ('{"batch":[{"channel":"a","name":"e","data":"{}"},{"channel":"presence-b","name":"e","data":"{}","info":"user_count"}]}')
# Method, path, body, further parameters, digest (docs/protocol.md, 4.4).
VECTORS = {
    "H1": ("POST", "/apps/3/events", EVENT, {}, "da454824c97ba181a32ccc17a72625ba02771f50b50e1e7430e47a1f3f457e6c"),
    "H2": ("GET", "/apps/3/channels", "", {}, "1cafa6382331c976588eb6bd3925a988e4158402be06c4626d0e97d2981f5382"),
    "H3": ("GET", "/apps/3/channels", "", {"filter_by_prefix": "presence-", "info": "user_count,subscription_count"},
           "ff97d40ab3fbbd15394386a29c12998c33635305357b2e2abd18dc67efe3f87d"),
    "H4": ("GET", "/apps/3/channels", "", {"body_md5": "d41d8cd98f00b204e9800998ecf8427e"},
           "5c3cd75022c4f62c35ad22f6a9cce366c860477a3b7092ca790ecfc17e6af302"),
    "H5": ("POST", "/apps/3/batch_events", BATCH, {}, "792baf2829951e43024ee162641294e99242a031ef3a7ca0a1c5af216924ff5d"),
    "H6": ("POST", "/apps/3/users/12345/terminate_connections", "{}", {}, "01fa634edeb0cae84115307cad5c23f65a46cd286461b1c89637a3b5871a8f0e"),
    "H7": ("POST", "/users/12345/terminate_connections", "{}", {}, "e3c6b279be14c04728803c2f54d90bef57357d2bb2e1b8ae90507149cd3308d7"),
}


async def c23_vectors_and_skew(s):
    """H1 to H7 (docs/protocol.md, 4.4) on a hub whose clock stands at their time; then 599 and 600 seconds off it."""
    folder = s.suite.folder()
    folder.mkdir(parents=True)
    clock = Clock(folder)
    clock.stop_wall(VECTOR_TIME)
    app = s.hub.apps["vectors"]
    hub = await s.own_hub({"vectors": app}, clock=clock)
    listener = await s.client("vectors", hub=hub)
    await listener.subscribe("project-3")
    signed_in = await s.client("vectors", hub=hub)

    def target(method, path, body, params, digest, **changes):
        query = signed_parameters(app, method, path, body, params, timestamp=VECTOR_TIME)
        equal(query["auth_signature"], digest, "this signer")
        query.update(changes)
        return f"{path}?" + "&".join(f"{name}={value}" for name, value in query.items())

    for name, (method, path, text, params, digest) in VECTORS.items():
        body = text.encode()
        if path.endswith("terminate_connections"):
            signed_in = await s.client("vectors", hub=hub)
            await signed_in.sign_in("12345")
        answer = await hub.request(method, target(method, path, body, params, digest), body)
        equal(answer.status, 200, f"{name}: {answer.text}")
        wrong = f"{int(digest[0], 16) ^ 1:x}{digest[1:]}"
        (await hub.request(method, target(method, path, body, params, digest, auth_signature=wrong), body)).refused(401, "Invalid signature")
        if path.endswith("terminate_connections"):
            equal(await signed_in.closed(), 4009, name)
        elif text:
            (await hub.request(method, target(method, path, body, params, digest), body.replace(b"e", b"f", 1))).refused(401, "body_md5")
    await listener.event("foo", "project-3")
    await listener.sync()
    equal(listener.data("foo"), ['{"some":"data"}'])
    method, path, text, params, digest = VECTORS["H1"]
    for offset, status in ((599, 200), (-599, 200), (600, 401), (-600, 401), (86400, 401), (-86400, 401)):
        clock.stop_wall(VECTOR_TIME + offset)
        answer = await hub.request(method, target(method, path, text.encode(), params, digest), text.encode())
        equal(answer.status, status, f"{offset} s: {answer.text}")
        if status == 401:
            answer.refused(401, "Timestamp expired", "within 600s")
    listener.left = True


async def c23_spellings_of_the_query(s):
    """Any order, escaped or not, with the library's own extra parameters."""
    app = s.hub.apps["main"]
    path = "/apps/1/channels"
    params = {"filter_by_prefix": "presence-", "info": "user_count,subscription_count"}
    query = signed_parameters(app, "GET", path, params=params)
    spellings = [list(query.items()), sorted(query.items(), reverse=True),
                 # .NET puts the signature first.
                 [("auth_signature", query["auth_signature"])] + [entry for entry in query.items() if entry[0] != "auth_signature"]]
    for entries in spellings:
        plain = "&".join(f"{name}={value}" for name, value in entries)
        for text in (plain, plain.replace(",", "%2C"), plain.replace(",", "%2c"), plain.replace("-", "%2D"), plain.replace("_", "%5F")):
            answer = await s.hub.request("GET", f"{path}?{text}")
            equal((answer.status, answer.json), (200, answer.json), text)
            equal(set(answer.json), {"channels"}, text)
    # An extra parameter is part of what is signed.
    answer = await s.hub.request("GET", signed_target(app, "GET", path, params={"anything": "a b&c=d"}))
    equal(answer.status, 200, answer.text)
    (await s.hub.request("GET", signed_target(app, "GET", path) + "&anything=else")).refused(401, "Invalid signature", "anything=else")


async def c23_what_is_refused(s):
    body = {"name": "never", "channel": "c23-never", "data": "{}"}
    listener = await s.client()
    await listener.subscribe("c23-never")
    now = int(time.time())
    for words, options in (
        (["auth_key"], {"auth_key": None}), (["auth_key"], {"auth_key": "nobody"}), (["auth_key"], {"auth_key": "keys"}),
        (["Version"], {"auth_version": None}), (["Version"], {"auth_version": "2.0"}), (["Timestamp"], {"auth_timestamp": None}),
        (["Timestamp"], {"auth_timestamp": "soon"}), (["Timestamp expired", "600s"], {"timestamp": now - 610}),
        (["Timestamp expired", "600s"], {"timestamp": now + 620}), (["body_md5"], {"body_md5": None}), (["body_md5"], {"body_md5": "0" * 32}),
        (["body_md5"], {"body_md5": hashlib.md5(b"").hexdigest()}),
    ):
        (await s.hub.post("/events", body, **options)).refused(401, *words)
    main = s.hub.apps["main"]
    # Another app's key is none here, with either secret.
    for app in (s.hub.apps["vectors"], App("1", s.hub.apps["vectors"].key, main.secret)):
        (await s.hub.request("GET", signed_target(app, "GET", "/apps/1/channels"))).refused(401, "auth_key")
    (await s.hub.post("/events", body, app=App("1", main.key, "wrong"))).refused(401, "Invalid signature", "/apps/1/events")
    raw = json.dumps(body).encode()
    target = signed_target(main, "POST", "/apps/1/events", raw)
    # Signed for something else: another method, path, body, or without a signature.
    (await s.hub.request("PUT", target, raw)).refused(401)
    (await s.hub.request("POST", target.replace("/events", "/batch_events"), raw)).refused(401)
    (await s.hub.request("POST", target, raw + b" ")).refused(401)
    (await s.hub.request("POST", "/apps/1/events", raw)).refused(401)
    (await s.hub.request("POST", target.split("&auth_signature")[0], raw)).refused(401)
    (await s.hub.call("GET", "/channels", app=App("99", main.key, main.secret))).refused(404)
    (await s.hub.call("GET", "/channels", app="off")).refused(403)
    equal((await s.hub.post("/events", {**body, "name": "told"}, timestamp=now - 590)).status, 200)
    await listener.event("told")
    equal(listener.all("never"), [])


async def c23_signed_arrays(s):
    """PHP sends `k[0]=…` and signs the values joined; the pusher-signature gem signs `k[]=…`."""
    app = s.hub.apps["main"]
    now = str(int(time.time()))
    fixed = f"auth_key={app.key}&auth_timestamp={now}&auth_version=1.0"
    for signed, sent in ((f"{fixed}&k=a,b", f"{fixed}&k[0]=a&k[1]=b"), (f"{fixed}&k[]=a&k[]=b", f"{fixed}&k[]=a&k[]=b")):
        answer = await s.hub.request("GET", f"/apps/1/channels?{sent}&auth_signature={app.hmac('GET' + chr(10) + '/apps/1/channels' + chr(10) + signed)}")
        equal(answer.status, 200, answer.text)


async def c23_behind_a_proxy(s):
    """With a prefix that the library signed, or one that it did not."""
    app = s.hub.apps["main"]
    for signed, sent in (("/apps/1/channels", "/prefix/apps/1/channels"), ("/prefix/apps/1/channels", "/prefix/apps/1/channels")):
        target = signed_target(app, "GET", signed).replace(signed, sent, 1)
        equal((await s.hub.request("GET", target)).status, 200, sent)


async def c24_empty_shapes(s):
    """Nothing is `{}` where PHP wants an object, `[]` where Go wants an array."""
    async def body(path, **params):
        answer = await s.hub.get(path, "empty", **params)
        equal(answer.status, 200, answer.text)
        expect("json" in answer.headers["content-type"], answer.headers)
        return answer.text.replace(" ", "")

    equal(await body("/channels"), '{"channels":{}}')
    equal(await body("/channels", filter_by_prefix="presence-", info="user_count"), '{"channels":{}}')
    equal(await body("/channels/presence-c24/users"), '{"users":[]}')
    equal(await body("/channels/c24"), '{"occupied":false}')
    equal(json.loads(await body("/channels/presence-c24", info="user_count")), {"occupied": False, "user_count": 0})
    equal(json.loads(await body("/channels/c24", info="subscription_count")), {"occupied": False, "subscription_count": 0})
    for path, sent in (("/events", {"name": "e", "channel": "c24", "data": "{}"}),
                       ("/batch_events", {"batch": [{"name": "e", "channel": "c24", "data": "{}"}]}),
                       ("/users/nobody/terminate_connections", {})):
        answer = await s.hub.post(path, sent, "empty")
        equal((answer.status, answer.text.strip()), (200, "{}"), path)


async def c24_counts(s):
    channel = "presence-c24"
    for client, user in zip(await s.clients(3), ("a", "a", "b")):
        await client.subscribe(channel, user=user)
        await client.subscribe("c24")
    for path, params, wanted in (
        (f"/channels/{channel}", {"info": "user_count"}, {"occupied": True, "user_count": 2}), (f"/channels/{channel}", {}, {"occupied": True}),
        ("/channels/c24", {"info": "subscription_count"}, {"occupied": True, "subscription_count": 3}),
        ("/channels", {"filter_by_prefix": channel, "info": "user_count"}, {"channels": {channel: {"user_count": 2}}}),
        ("/channels", {"filter_by_prefix": "c24"}, {"channels": {"c24": {}}}),
        (f"/channels/{channel}/users", {}, {"users": [{"id": "a"}, {"id": "b"}]}),
    ):
        answer = (await s.hub.get(path, **params)).json
        if "users" in answer:
            answer["users"].sort(key=lambda user: user["id"])
        equal(answer, wanted, path)
    answer = await s.hub.publish([channel, "c24", "c24-nobody", "presence-c24-nobody"], "e", info="user_count,subscription_count")
    equal(set(answer), {"channels"})
    counts = answer["channels"]
    equal((counts[channel]["user_count"], counts["c24"]["subscription_count"]), (2, 3))
    equal(("user_count" in counts["c24"], counts["presence-c24-nobody"]["user_count"], set(counts)),
          (False, 0, {channel, "c24", "c24-nobody", "presence-c24-nobody"}))
    batch = [{"name": "e", "channel": channel, "data": "{}", "info": "user_count"}, {"name": "e", "channel": "c24", "data": "{}"},
             {"name": "e", "channel": "c24", "data": "{}", "info": "subscription_count"}]
    equal((await s.hub.post("/batch_events", {"batch": batch})).json, {"batch": [{"user_count": 2}, {}, {"subscription_count": 3}]})


async def c24_attributes_that_do_not_apply(s):
    for path, params in (
        ("/channels", {"info": "user_count"}), ("/channels", {"info": "user_count", "filter_by_prefix": "private-"}), ("/channels", {"info": "unheard_of"}),
        ("/channels/c24", {"info": "user_count"}), ("/channels/c24", {"info": "unheard_of"}), ("/channels/c24/users", {}),
        ("/channels/presence-c24/users", {"info": "user_count"}), ("/channels/bad%20name", {}), ("/channels/" + "c" * 201, {}),
    ):
        path = path.replace("%20", " ")
        app = s.hub.apps["main"]
        target = signed_target(app, "GET", f"/apps/1{path}", params=params).replace(" ", "%20")
        (await s.hub.request("GET", target)).refused(400)


async def c24_errors(s):
    """A JSON object with a sentence, whatever went wrong."""
    for method, path, status, word in (
        ("GET", "/batch_events", 405, "POST"), ("PUT", "/events", 405, "POST"), ("DELETE", "/channels", 405, "GET"), ("GET", "/nothing", 404, "/nothing"),
        ("GET", "/channels/c24/nothing", 404, "/users"),
    ):
        (await s.hub.call(method, path)).refused(status, word)
    (await s.hub.request("GET", "/apps/99/channels")).refused(404, "99")


async def c25_data_size(s):
    """10240 bytes of the string itself, however it was escaped; 413 beyond."""
    listener = await s.client()
    await listener.subscribe("c25")

    async def publish(data, channel="c25", ascii=True, app="main", path="/events"):
        event = {"name": "sized", "channel": channel, "data": data}
        body = event if path == "/events" else {"batch": [{"name": "sized", "channel": channel, "data": "small"}, event]}
        return await s.hub.post(path, raw=json.dumps(body, ensure_ascii=ascii).encode(), app=app)

    for path in ("/events", "/batch_events"):
        for ascii in (True, False):
            for text in ("x" * 10240, "\u00e9" * 5120, '"' * 10240, "\u0001" * 10240, "\U0001f3af" * 2560):
                equal((await publish(text, ascii=ascii, path=path)).status, 200, text[:5])
                (await publish(text + "x", ascii=ascii, path=path)).refused(413, "10240")
    await listener.sync()
    equal({len(data.encode()) for data in listener.data("sized")}, {10240, 5})
    equal(len(listener.data("sized")), 30)
    equal((await publish("x" * 1024, app="small")).status, 200)
    (await publish("x" * 1025, app="small")).refused(413, "1024")
    # An object counts in its compact form.
    equal((await publish({"a": "x" * 10232})).status, 200)
    equal((await listener.event("sized", count=31))["data"], '{"a":"%s"}' % ("x" * 10232))
    (await publish({"a": "x" * 10233})).refused(413)


async def c25_counts(s):
    listener = await s.client()
    for number in (0, 99, 100):
        await listener.subscribe(f"c25-{number}")
    names = [f"c25-{number}" for number in range(101)]
    await s.hub.publish(names[:100], "hundred")
    (await s.hub.post("/events", {"name": "hundred", "channels": names, "data": "{}"})).refused(400, "100")
    item = {"name": "batched", "channel": "c25-0", "data": "{}"}
    equal((await s.hub.post("/batch_events", {"batch": [item] * 10})).status, 200)
    (await s.hub.post("/batch_events", {"batch": [item] * 11})).refused(400, "10")
    # All or nothing.
    (await s.hub.post("/batch_events", {"batch": [item, {**item, "channel": "bad name"}]})).refused(400)
    await listener.sync()
    equal((len(listener.all("hundred")), len(listener.all("batched"))), (2, 10))
    await s.hub.publish(["c25-0", "c25-0"], "doubled")
    await listener.event("doubled")
    await listener.sync()
    equal(len(listener.all("doubled")), 1)


async def c25_fields(s):
    good = {"name": "e", "channel": "c25-fields", "data": "{}"}
    equal((await s.hub.post("/events", {**good, "name": "n" * 200})).status, 200)
    equal((await s.hub.post("/events", {**good, "channel": "c" * 200, "unknown": {"a": 1}, "params": None})).status, 200)
    for bad in ({"name": "n" * 201}, {"name": ""}, {"name": None}, {"name": 5}, {"name": "pusher:x"}, {"name": "pusher_internal:x"},
                {"channel": "c" * 201}, {"channel": "a b"}, {"channel": ""}, {"channel": 5}, {"channels": []}, {"channels": "c25"}, {"channels": [5]},
                {"channels": ["a", "b c"]}, {"info": "unheard_of"}, {"info": 5}):
        body = {**good, **bad}
        if "channels" in bad:
            del body["channel"]
        answer = await s.hub.post("/events", body)
        equal(answer.status, 400, f"{bad}: {answer.text}")
    for missing in ("name", "channel", "data"):
        (await s.hub.post("/events", {name: value for name, value in good.items() if name != missing})).refused(400)
    for raw in (b"", b"{", b"[]", b"null", b'"text"', b"\xff\xfe", b'{"name":"e","channel":"c","data":' + b"[" * 5000 + b"]" * 5000 + b"}"):
        for path in ("/events", "/batch_events"):
            answer = await s.hub.post(path, raw=raw)
            equal(answer.status, 400, f"{path} {raw[:20]}: {answer.text}")
    (await s.hub.post("/events", raw=b'{"name":"e","channel":"c","data":"' + b"x" * 1_200_000 + b'"}')).refused(413, "bytes")
    for batch in ([], {}, None, "x", [5], [None]):
        answer = await s.hub.post("/batch_events", {"batch": batch})
        equal(answer.status, 400, f"{batch}: {answer.text}")


async def c25_one_connection_for_many_requests(s):
    """Keep-alive, with a refusal among them."""
    reader, writer = await s.hub.connect()
    app = s.hub.apps["main"]
    for number in range(12):
        body = json.dumps({"name": "e", "channel": "c25-alive" if number != 5 else "bad name", "data": "{}"}).encode()
        head = f"POST {signed_target(app, 'POST', '/apps/1/events', body)} HTTP/1.1\r\nHost: hub\r\nContent-Type: application/json; charset=utf-8\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = await asyncio.wait_for(Answer.read(reader), 20)
        equal(answer.status, 400 if number == 5 else 200, answer.text)
    writer.close()
