"""Holds docs/openapi.yaml against a running hub, from both sides."""

import itertools
import re
import subprocess
import sys
import tempfile
from collections import namedtuple
from http.client import HTTPConnection
from pathlib import Path

import yaml

from tandem_client import *

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[3]
DOCUMENT = ROOT / "docs/openapi.yaml"
METHODS = ("GET", "PUT", "POST", "PATCH", "DELETE")
# As in DocumentTests.swift.
OPERATOR = {"key": "operator", "secret": "operator-secret-0123"}


def operations(document):
    """Every operation as its path and method, with the path's example."""
    for path, item in document["paths"].items():
        parameters = [resolved(document, parameter) for parameter in item["parameters"]] if "parameters" in item else []
        example = path
        for parameter in parameters:
            example = example.replace("{%s}" % parameter["name"], parameter["example"])
        yield path, example, [method.upper() for method in item if method != "parameters"]


def resolved(document, node):
    for name in node["$ref"].removeprefix("#/").split("/") if "$ref" in node else ():
        document = document[name]
    return document if "$ref" in node else node


def references(node):
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"]
        node = list(node.values())
    for child in node if isinstance(node, list) else ():
        yield from references(child)


Answer = namedtuple("Answer", "status_code headers text")
# There are thousands of requests: the session of `requests` takes several times as long for each.
connection = HTTPConnection("127.0.0.1", HUB_PORT, timeout=PATIENCE)


def request(method, path):
    """Any route of the hub, signed where that is done."""
    query = signed_query(method, path) if path.startswith(("/apps/", "/users/")) else {}
    if path.startswith("/operator"):
        query = signed_query(method, path, **OPERATOR)
    connection.request(method, f"{path}?{urllib.parse.urlencode(query)}" if query else path)
    answer = connection.getresponse()
    return Answer(answer.status, answer.headers, answer.read())


def add_app(app):
    body = json.dumps({"id": app}).encode()
    query = signed_query("POST", "/operator/apps", body, **OPERATOR)
    return expect(http.post(HUB_URL + "/operator/apps", params=query, data=body, timeout=PATIENCE), 201)


def is_route(answer):
    if not answer.headers["Content-Type"].startswith("application/json"):
        return True
    error = json.loads(answer.text).get("error", "")
    return not (answer.status_code == 404 and error.startswith(("there is nothing at", "there is no app", "a channel has only")))


def routes():
    """Every documented operation is there, no other is, and the page has what tools need of it."""
    document = yaml.safe_load(DOCUMENT.read_text())
    for reference in set(references(document)):
        resolved(document, {"$ref": reference})
    names = [operation["operationId"] for item in document["paths"].values() for key, operation in item.items() if key != "parameters"]
    check(len(names) == len(set(names)), "an operationId is there twice", names)

    count = 0
    add_app("7")
    for path, example, methods in operations(document):
        for method in METHODS:
            answer = request(method, example)
            check(is_route(answer), "documented, but not there", method, path)
            check((answer.status_code != 405) == (method in methods), "the methods differ", method, path, answer.status_code)
            if answer.status_code == 405:
                allowed = {name.strip() for name in answer.headers["Allow"].split(",")} - {"HEAD"}
                check(allowed == set(methods), "Allow differs", path, allowed, methods)
            count += 1

    # What the server knows is looked for with the words of its own sources, in every place of a path.
    sources = "".join(source.read_text() for source in (ROOT / "Sources/HubAPI").rglob("*.swift"))
    words = sorted(set(re.findall(r'"/?([a-z][a-z_-]*)"', sources)))
    check({"events", "sessions", "me", "terminate_connections", "health"} <= set(words), words)
    shapes = [re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path))) for path in document["paths"]]
    candidates = [f"/{word}" for word in words] + [f"/{first}/x" for first in words]
    candidates += [f"/{first}/{second}" for first, second in itertools.product(WORDS_OF_PARTICIPANTS, words)]
    candidates += [f"/operator/{first}{rest}" for first in words for rest in ("", "/x", "/x/rotate")]
    candidates += ["/apps/1" + rest for word in words for rest in (f"/{word}", f"/{word}/x")]
    candidates += [f"/apps/1/{first}/x/{second}{rest}" for first in WORDS_OF_BACKENDS for second in words for rest in ("", "/x")]
    for path in candidates:
        if path not in PAGES and not any(shape.fullmatch(path) for shape in shapes):
            check(not is_route(request("GET", path)), "there, but not documented", path)
    finish(operations=count, candidates=len(candidates))


# Pages for people are no part of the API: docs/console.md.
PAGES = ("/console",)
# First words of paths that have others behind them.
WORDS_OF_PARTICIPANTS = ("me", "pusher", "app", "api", "users", "games", "links")
WORDS_OF_BACKENDS = ("channels", "users", "sessions", "events", "devices", "connections", "scheduled", "notifications", "dead-letters")


# Publishes that wait, to be cancelled one by one, and apps to be removed.
SCHEDULED = 30
APPS = [str(number) for number in range(700, 730)]


def judged():
    """schemathesis sends what the schemas allow and what they forbid, and compares every answer with the page."""
    create_session("wednesday", "KNOWN1")
    for app in APPS:
        add_app(app)
    with tempfile.NamedTemporaryFile() as statuses:
        ada, ben = join("KNOWN1", "Ada"), join("KNOWN1", "Ben")
        event = {"name": "session-started", "channel": "presence-quiz-wednesday", "data": "{}"}
        later = {"deliver_at": (int(time.time()) + 3600) * 1000}
        published = expect(signed("POST", "/events", event))["event_id"]
        environment = os.environ | {
            "EVENT": published, "LINK_TOKEN": expect(signed("POST", "/links", {"event": published}))["token"],
            "SCHEDULED": " ".join(expect(signed("POST", "/events", event | later))["scheduled_id"] for _ in range(SCHEDULED)),
            "APPS": " ".join(APPS), "PARTICIPANT_TOKEN": ada["token"], "DELETING_TOKEN": ben["token"], "PARTICIPANT": ada["user_id"], "PYTHONPATH": str(HERE), "STATUSES": statuses.name,
            # The order of sets decides what is generated.
            "PYTHONHASHSEED": "0"}
        judge = subprocess.run(
            [Path(sys.executable).parent / "schemathesis", "--config-file", HERE / "schemathesis.toml", "run", DOCUMENT, "--url", HUB_URL],
            capture_output=True, text=True, env=environment, timeout=9 * PATIENCE)
        check(judge.returncode == 0, judge.stdout[-6000:], judge.stderr[-2000:])
        seen = json.load(open(statuses.name))
    for operation, counts in seen.items():
        # A dead letter takes a gateway that refuses, which notifications.py has. A request that is no WebSocket handshake is told so, and that is all the HTTP there is of that path.
        check(counts.keys() & {"200", "201", "202", "426"} or operation.endswith("/dead-letters/{nid}/{device}"), "never succeeded", operation, counts)
    [cases] = re.findall(r"(\d+) generated", judge.stdout)
    finish(cases=int(cases), operations=len(seen))


{f.__name__: f for f in (routes, judged)}[sys.argv[1]]()
