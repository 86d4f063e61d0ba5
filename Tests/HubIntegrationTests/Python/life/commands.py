"""`tandem publish`, `tandem auth` and `tandem api` as scripts use them, with real clients at the other end."""

import subprocess
import sys

from tandem_client import *

TANDEM = os.environ["TANDEM"]


def tandem(*arguments, stdin=None, **environment):
    """Runs a command to its end: exit code, output and errors."""
    run = subprocess.run(
        [TANDEM, *arguments], input=stdin if stdin is None or isinstance(stdin, bytes) else stdin.encode(), capture_output=True,
        env={"PATH": os.environ["PATH"], "TANDEM_URL": HUB_URL} | environment, timeout=PATIENCE,
        **({"stdin": subprocess.DEVNULL} if stdin is None else {}))
    return run.returncode, run.stdout.decode(), run.stderr.decode()


def done(*arguments, **more):
    code, output, errors = tandem(*arguments, **more)
    check(code == 0 and errors == "", arguments, code, errors)
    return json.loads(output)


def refused(*arguments, **more):
    """Exit code and message of a command that fails: one line on standard error, nothing on standard output."""
    code, output, errors = tandem(*arguments, **more)
    check(code != 0 and output == "" and errors.startswith("tandem: ") and errors.count("\n") == 1, arguments, code, output, errors)
    return [code, errors]


def publish():
    news, sport, user = Socket(), Socket(), Socket()
    news.subscribe("news")
    sport.subscribe("sport")
    sport.subscribe("news")
    user.send("pusher:signin", done("auth", user.socket_id, "--user-data", '{"id":"ü/7"}'))
    user.event("pusher:signin_success")
    user.subscribe("#server-to-user-ü/7")

    results = {"plain": done("publish", "news", "plain"), "data": []}
    results["data"].append(news.event("plain")["data"])
    results["several"] = done("publish", "news", "several", "text, no JSON", "--also", "sport", "--also", "nobody", "--info", "subscription_count")
    results["several_seen"] = [len(news.all("several")) or news.count("several", 1), sport.count("several", 2)]
    done("publish", "news", "not-to-sport", "--socket-id", sport.socket_id)
    news.event("not-to-sport")
    sport.pong()
    results["excluded"] = len(sport.all("not-to-sport"))
    piped = '{"text":"ü\\u00fc"} \n'
    done("publish", "news", "piped", "-", stdin=piped)
    results["piped"] = news.event("piped")["data"] == piped
    done("publish", "#server-to-user-ü/7", "direct", "--", "-5")
    results["data"].append(user.event("direct")["data"])
    once = [done("publish", "news", "once", "1", "--idempotency-key", "order 17") for _ in range(2)]
    done("publish", "news", "after", "1")
    news.event("after")
    results["once"] = [once[0] == once[1], len(news.all("once"))]

    results["usage"] = [refused("publish", *arguments) for arguments in (
        ("bad name", "e"), ("a", "e", "--also", ""), ("a", "pusher:e"), ("a", "e" * 201), ("a", ""), ("a", "e", "--info", "users"),
        ("a", "e", "--socket-id", "1"), ("a", "e", "--url", "hub.example.com"), ("a", "e", "--url", "ftp://hub.example.com"))]
    results["usage"].append(refused("publish", "a", "e", "-", stdin=b"\xff"))
    results["configuration"] = refused("publish", "a", "e", TANDEM_URL="nonsense")
    results["failed"] = [
        refused("publish", "a", "e", "--secret", "wrong"), refused("publish", "a", "e", TANDEM_APP_ID="99"),
        refused("publish", "a", "e", "x" * 10241), refused("publish", "a", "e", "--url", "http://127.0.0.1:9/"),
        refused("publish", "news", "other", "2", "--idempotency-key", "order 17")]
    # Where a slash at its end does no harm.
    results["slash"] = done("publish", "news", "slash", TANDEM_URL=HUB_URL + "/")
    finish(**results)


def auth():
    socket = Socket()

    def subscribe(channel, *arguments, **more):
        socket.send("pusher:subscribe", {"channel": channel, **done("auth", socket.socket_id, channel, *arguments, **more)})
        return json.loads(socket.event("pusher_internal:subscription_succeeded", channel)["data"])

    member = '{"user_id":"7","user_info":{"name":"Zoë \\u00eb"}}'
    results = {
        "private": subscribe("private-orders"), "with_data": subscribe("private-plan", '{"plan":"pro"}'),
        "presence": subscribe("presence-room", member), "piped": subscribe("presence-other", "-", stdin=member),
        "encrypted": subscribe("private-encrypted-x", "--encryption-master-key", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="),
        "cache": subscribe("private-cache-x")}
    socket.send("pusher:signin", done("auth", socket.socket_id, "--user-data", '{"id":"7","watchlist":["8"]}'))
    results["signed_in"] = json.loads(json.loads(socket.event("pusher:signin_success")["data"])["user_data"])
    results["as_user"] = subscribe("presence-third", "--signed-in")
    results["usage"] = [refused("auth", *arguments) for arguments in (
        ("nonsense", "private-x"), ("1.1",), ("1.1", "bad name"), ("1.1", "public"), ("1.1", "presence-x"), ("1.1", "presence-x", "{}"),
        ("1.1", "presence-x", "no JSON"), ("1.1", "presence-x", '{"user_id":"%s"}' % ("x" * 1100)), ("1.1", "--user-data", "{}"),
        ("1.1", "--user-data", '{"id":7}'), ("1.1", "private-x", "--user-data", '{"id":"7"}'),
        ("1.1", "private-x", "--encryption-master-key", "AAEC"), ("1.1", "private-encrypted-x", "--encryption-master-key", "AAEC"))]
    finish(**results)


def api():
    many = [f"channel-{number:04}-{'x' * 180}" for number in range(200)]
    socket = Socket()
    for channel in many:
        socket.subscribe(channel, wait=False)
    socket.event("pusher_internal:subscription_succeeded", many[-1])
    listed = done("api", "GET", "/channels", "--query", "filter_by_prefix=channel-")["channels"]
    piped = done("api", "PUT", "/sessions/monday", "-", stdin='{"definition": "quiz", "join_code": "ABC123"}')
    finish(
        all=sorted(listed) == many, piped=piped["channel"], accepted=tandem("api", "POST", "/channels/a/events", "hello", "--query", "name=e"),
        missing=refused("api", "GET", "/sessions/nowhere"), unknown=refused("api", "GET", "/nothing"))


{f.__name__: f for f in (publish, auth, api)}[sys.argv[1]]()
