"""SIGHUP: what a running hub takes up anew, and that nobody is disconnected by it."""

import shutil
import socket as sockets
import sys

from tandem_client import *


def log():
    return open(os.environ["HUB_LOG"]).read()


def hang_up(line):
    """Sends SIGHUP, and returns when the hub has logged `line` once more."""
    known = log().count(line)
    os.kill(int(os.environ["HUB_PID"]), signal.SIGHUP)
    wait_for(lambda: log().count(line) > known, line)


def served_certificate():
    """The certificate that a new connection is shown, in DER."""
    context = ssl.create_default_context(cafile=HUB_CA)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with sockets.create_connection(("127.0.0.1", HUB_PORT), timeout=PATIENCE) as plain:
        with context.wrap_socket(plain) as connection:
            return connection.getpeercert(binary_form=True)


def certificate():
    """A renewed certificate, then files that are no good, on a hub with open connections."""
    paths = {name: os.environ[name] for name in ("CERT", "KEY", "NEW_CERT", "NEW_KEY", "NEW_CA")}
    open_sockets = [Socket() for _ in range(4)]
    for socket in open_sockets:
        socket.subscribe("news")
    first = served_certificate()
    shutil.copy(paths["NEW_CERT"], paths["CERT"])
    # Half done: the key is still the former one's.
    hang_up("TLS certificate not reloaded")
    half = served_certificate()
    shutil.copy(paths["NEW_KEY"], paths["KEY"])
    hang_up("TLS certificate reloaded")
    second = served_certificate()
    for name, damage in (("CERT", lambda path: open(path, "w").write("nonsense")), ("KEY", os.remove)):
        damage(paths[name])
        hang_up("TLS certificate not reloaded")
    kept = served_certificate()
    http.verify = paths["NEW_CA"]
    expect(signed("POST", "/events", {"name": "after", "channel": "news", "data": "{}"}))
    for socket in open_sockets:
        socket.event("after", "news")
        socket.pong()
    finish(
        half=half == first, renewed=second != first, kept=kept == second, open=[socket.close_code for socket in open_sockets],
        verified=http.get(f"{HUB_URL}/health", timeout=PATIENCE).status_code)


DEFINITION = """channel: presence-game-{session}
roles: [%s]
events:
  question: { to: hider, policy: realtime_only }
  move: { to: all, policy: sync }
"""


def definitions():
    """A definition that appears, changes, is broken and goes, under open channels."""
    path = os.path.join(os.environ["CHANNELS"], "game.yaml")

    def write(text):
        with open(path, "w") as file:
            file.write(text)

    def publish(name):
        return expect(signed("POST", "/events", {"name": name, "channel": "presence-game-1", "data": "{}"}))

    hider, seeker = Socket(), Socket()
    hider.subscribe("presence-game-1", user="h")
    seeker.subscribe("presence-game-1", user="s")
    publish("question")
    seeker.event("question")

    def told():
        for socket in (hider, seeker):
            socket.pong()
        return [len(socket.all("question")) for socket in (hider, seeker)]

    results = {"undefined": told()}
    write(DEFINITION % "hider, seeker")
    hang_up("channel definitions reloaded")
    expect(signed("PUT", "/sessions/1", {"definition": "game", "join_code": "GAME01"}))
    for user, role in (("h", "hider"), ("s", "seeker")):
        expect(signed("PUT", f"/sessions/1/participants/{user}", {"name": user, "email": f"{user}@example.com", "role": role}))
    publish("question")
    hider.count("question", 2)
    results["defined"] = told()
    results["present"] = {name: entry["present"] for name, entry in roster("1").items()}
    # The same roles, numbered the other way round.
    write(DEFINITION % "seeker, hider")
    hang_up("channel definitions reloaded")
    publish("question")
    hider.count("question", 3)
    results["renumbered"] = told()
    write("channel: nonsense: at all\n")
    hang_up("channel definitions not reloaded")
    publish("question")
    hider.count("question", 4)
    results["broken"] = told()
    os.remove(path)
    hang_up("channel definitions reloaded")
    publish("question")
    seeker.count("question", 2)
    results["gone"] = told()
    finish(**results, open=[socket.close_code for socket in (hider, seeker)])


def push():
    """Other push credentials in the configuration file, then ones that cannot be used, and a file that cannot be read."""
    token = fcm_token("rotation")
    old, new = Gateways(), Gateways()
    new.url = os.environ["NEW_GATEWAYS_URL"]
    create_session("s", "ROTATE")
    join("ROTATE", "Ben", device_token=token, device_platform="android")

    def told(gateways, count):
        backend().trigger("presence-quiz-s", "session-started", {})
        gateways.pushes(token, count)
        return [len(old.requests(token)), len(new.requests(token))]

    def write(text):
        with open(os.environ["CONFIG"], "w") as file:
            file.write(text)

    results = {"first": told(old, 1)}
    write(os.environ["NEW_CONFIG"])
    hang_up("push credentials reloaded")
    results["rotated"] = told(new, 1)
    write(os.environ["BAD_CONFIG"])
    hang_up("push credentials not reloaded")
    results["kept"] = told(new, 2)
    write("push: [")
    hang_up("push credentials not reloaded")
    results["typo"] = told(new, 3)
    finish(**results)


{f.__name__: f for f in (certificate, definitions, push)}[sys.argv[1]]()
