"""Apps that are added, changed and removed while the hub runs, by `tandem apps`, signed requests and SIGHUP."""

import subprocess
import sys

from tandem_client import *

OPERATOR = {"key": os.environ.get("TANDEM_OPERATOR_KEY", "operator"), "secret": os.environ.get("TANDEM_OPERATOR_SECRET", "")}


def tandem(*arguments, command="apps", check_success=True, **environment):
    run = subprocess.run(
        [os.environ["TANDEM"], command, *arguments], capture_output=True, stdin=subprocess.DEVNULL, timeout=PATIENCE, text=True,
        env={"PATH": os.environ["PATH"], "TANDEM_URL": HUB_URL, "TANDEM_OPERATOR_KEY": OPERATOR["key"],
             "TANDEM_OPERATOR_SECRET": OPERATOR["secret"]} | environment)
    if check_success:
        check(run.returncode == 0 and run.stderr == "", arguments, run.returncode, run.stderr)
    return run


def credentials(run):
    """Id, key and secret as the command prints them."""
    values = dict(line.split("=", 1) for line in run.stdout.splitlines() if "=" in line)
    return {"app": values["TANDEM_APP_ID"], "key": values["TANDEM_APP_KEY"], "secret": values["TANDEM_APP_SECRET"]}


def call(method, path, app, body=None):
    data = b"" if body is None else json.dumps(body).encode()
    path = f"/apps/{app['app']}{path}"
    query = signed_query(method, path, data, key=app["key"], secret=app["secret"])
    return http.request(method, HUB_URL + path, params=query, data=data, headers={"Content-Type": "application/json"}, timeout=PATIENCE)


def operate(method, path, body=None, **signer):
    data = b"" if body is None else json.dumps(body).encode()
    query = signed_query(method, path, data, **(OPERATOR | signer))
    return http.request(method, HUB_URL + path, params=query, data=data, timeout=PATIENCE)


def opened(app):
    """A connection with the app's key, or the code that refuses it."""
    socket = Socket(f"/app/{app['key']}?protocol=7", None, handshake=False)
    first = socket.next(lambda frame: True, "the first frame")
    if first["event"] != "pusher:connection_established":
        return socket.closed()
    socket.handshake = json.loads(first["data"])
    return socket


def token_status(socket, token):
    form = {"socket_id": socket.handshake["socket_id"], "channel_name": "presence-quiz-monday"}
    return http.post(f"{HUB_URL}/pusher/auth", data=form, headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE).status_code


def apps():
    path = "/operator/apps"
    results = {"refused": [
        operate("GET", path, key=KEY, secret=SECRET).status_code, operate("GET", path, secret="wrong-secret-012345").status_code,
        http.get(HUB_URL + path, timeout=PATIENCE).status_code, operate("GET", "/operator/nothing").status_code]}

    app = credentials(tandem("add", "max_connections=1"))
    results["secret"] = app["secret"]
    socket = opened(app)
    socket.subscribe("room")
    results["published"] = call("POST", "/events", app, {"name": "told", "channel": "room", "data": "{}"}).status_code
    socket.event("told")
    results["seen"] = len(socket.all("told"))
    results["full"] = opened(app)
    tandem("limit", app["app"], "max_connections=10")
    others = [opened(app) for _ in range(3)]
    results["wider"] = all(not isinstance(other, int) for other in others)
    listed = tandem("list").stdout
    check(app["key"] in listed and app["secret"] not in listed, listed)
    # The first socket and three others.
    [node] = json.loads(tandem("--json", command="cluster").stdout)["nodes"]
    check(node["this"] and node["partition_list"] == "0-63" and node["connections"] == 4, node)
    title, line = tandem(command="cluster").stdout.splitlines()
    check(title.split()[:2] == ["NODE", "ADDRESS"] and HUB_URL.split("//")[1] in line and "answers" in line, title, line)

    # A key that is rotated out goes on for the stated time, and so do the participant tokens that it signed.
    check(call("PUT", "/sessions/monday", app, {"definition": "quiz", "join_code": "MONDAY"}).status_code == 200)
    ann = expect(http.post(f"{HUB_URL}/api/scenarios/sessions/MONDAY/join?app_key={app['key']}",
                           json={"name": "Ann", "email": "ann@example.com"}, timeout=PATIENCE))
    new = credentials(tandem("rotate", app["app"], "--keep", "1h"))
    results["rotated"] = [call("GET", "/channels", app).status_code, call("GET", "/channels", new).status_code]
    token = call("POST", f"/sessions/monday/participants/{ann['user_id']}/token", new, {"scope": "session"}).json()["token"]
    results["tokens"] = [token_status(socket, ann["token"]), token_status(socket, token)]
    tandem("rotate", app["app"], "--keep", "0")
    results["tokens"].append(token_status(socket, ann["token"]))
    newest = credentials(tandem("rotate", app["app"]))

    tandem("disable", app["app"])
    results["disabled"] = [socket.closed(), opened(newest), call("GET", "/channels", newest).status_code]
    tandem("enable", app["app"])
    again = opened(newest)
    results["enabled"] = not isinstance(again, int)

    removal = json.loads(tandem("remove", app["app"], "--yes", "--json").stdout)
    results["remains"] = removal
    results["removed"] = [again.closed(), opened(newest), call("GET", "/channels", newest).status_code]
    results["taken"] = "stays taken" in tandem("add", "--id", app["app"], check_success=False).stderr
    failures = [
        tandem("list", check_success=False, TANDEM_OPERATOR_KEY="", TANDEM_OPERATOR_SECRET=""),
        tandem("limit", "404", "max_connections=1", check_success=False), tandem("limit", "1", "max_connections=1", check_success=False),
        tandem("remove", "1", check_success=False), tandem("add", "nonsense", check_success=False)]
    results["errors"] = [failure.returncode for failure in failures]
    finish(**results)


def reload():
    """The file's apps change: one goes, one comes, one is enabled; then the file is broken."""
    path = os.environ["FILE"]
    text = open(path).read()
    small = {"app": "3", "key": "small-key", "secret": "small-secret"}
    socket, kept = opened(small), Socket()
    changed = text.replace('{ id: "3", key: small-key, secret: small-secret, max_connections: 1 }',
                           '{ id: "9", key: new-key, secret: new-secret-0123456 }').replace("enabled: false", "enabled: true")
    check(changed != text)
    open(path, "w").write(changed)
    os.kill(int(os.environ["HUB_PID"]), signal.SIGHUP)
    results = {"gone": socket.closed()}
    results["added"] = not isinstance(opened({"key": "new-key"}), int)
    results["enabled"] = not isinstance(opened({"key": "off-key"}), int)
    kept.pong()
    results["kept"] = True
    open(path, "w").write("apps: [")
    os.kill(int(os.environ["HUB_PID"]), signal.SIGHUP)
    log = lambda: open(os.environ["HUB_LOG"]).read()
    wait_for(lambda: "apps and push credentials not reloaded" in log(), "the refusal")
    results["broken"] = not isinstance(opened({"key": "new-key"}), int)
    finish(**results)


def closed():
    finish(status=operate("GET", "/operator/apps").status_code)


globals()[sys.argv[1]]()
