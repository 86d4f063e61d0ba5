"""The console's pages from a real hub, over an API with as many rows as wanted, every name of which is hostile."""

import datetime
import http.server
import json
import threading
import urllib.parse
import urllib.request

HOSTILE = [
    "<img src=x onerror=\"window.hacked=1\">", "\"><script>window.hacked=1</script>", "javascript:window.hacked=1", "\u202egnp.exe\u0000\u200b",
    "'-window.hacked=1-'", "${window.hacked=1}{{constructor}}", "=HYPERLINK(\"http://evil.example\")", "x" * 190, "ünïcødé-日本語-🙂", " ",
]
EVENT = "4fc5e916-7a51-4b7e-9a3e-0d7c2b1a5e10"
BEGAN = 1_795_600_000.0
STATES = ["confirmed", "confirmed", "confirmed", "pushed", "failed", "undeliverable", "awaited", "cancelled"]


def stamp(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def name(number):
    """A hostile name first, then its number, so that all are different."""
    return HOSTILE[number % len(HOSTILE)] + (f" {number}" if number >= len(HOSTILE) else "")


def event(number=0):
    at = BEGAN - 60 * number
    return {
        "event_id": EVENT if number == 0 else f"{number:08x}-7a51-4b7e-9a3e-0d7c2b1a5e10", "channel": f"presence-{name(number)}", "sequence": number + 1,
        "name": name(number), "policy": "critical", "committed_at": stamp(at), "expires_at": stamp(at + 600)}


def socket(number):
    return {"node": name(number), "loop": number, "device": name(number), "app_state": "unknown", "receipt_age_ms": number}


def push(number, state):
    answers = [{"attempt": 1, "started_at": stamp(BEGAN + 8), "ended_at": stamp(BEGAN + 8.1), "answer": "accepted" if state == "accepted" else f"UNREGISTERED {name(number)}"}]
    return {
        "device": name(number), "purpose": "notification", "state": state, "why": name(number), "due_at": stamp(BEGAN + 8), "attempts": 1, "answers": answers,
        "outcome": answers[0]["answer"], "provider_id": None, "due_ms": 8000, "accepted_ms": 8100 if state == "accepted" else None}


def row(number):
    state = STATES[number % len(STATES)]
    return {
        "user": name(number), "nid": f"{number:032x}", "known": "live", "decision": "await_receipt", "why": name(number), "state": state,
        "confirmed_at": stamp(BEGAN + 0.3) if state == "confirmed" else None, "receipt_ms": 300 if state == "confirmed" else None,
        "outcome": name(number) if state == "undeliverable" else None, "outcome_ms": 2000 if state == "undeliverable" else None,
        "pushes": [push(number, {"pushed": "accepted", "failed": "failed"}[state])] if state in ("pushed", "failed") else []}


class Rows:
    """Answers of the API with `count` rows each."""

    def __init__(self, count):
        self.count = count
        self.rows = [row(number) for number in range(count)]

    def page(self, key, rows, query, usual, **more):
        after, limit = int(query.get("after", 0)), int(query.get("limit", usual))
        return {key: rows[after:after + limit], "next": after + limit if after + limit < len(rows) else None, **more}

    def trail(self, query):
        rows = [one for one in self.rows if query.get("user") in (None, one["user"])]
        states = {}
        for one in self.rows:
            states[one["state"]] = states.get(one["state"], 0) + 1
        bins = [[0, self.count]] if self.count else []
        strip = {"step_ms": 500, "confirmed": bins, "escalated": bins, "accepted": bins}
        return self.page("deliveries", rows, query, 100, event=event(), open=True, recipients=self.count,
                         summary={"states": states, "decisions": {}, "strip": strip})

    def answer(self, path, query, body):
        """What one request gets; `path` is without the app."""
        count = self.count
        match path:
            case ["search"]:
                people = [{"user": name(n), "name": name(n), "email": "u…@example.com", "session": name(n), "role": name(n), "registered": True} for n in range(min(count, 6))]
                return {"q": query["q"], "people": people, "sessions": [], "definitions": [{"definition": "quiz", "channel": "presence-quiz-{session}", "events": [{"name": name(n), "policies": ["critical"]} for n in range(min(count, 6))]}],
                        "channels": [{"channel": "presence-quiz-monday", "definition": "quiz"}], "events": [event(n) for n in range(min(count, 6))]}
            case ["events"]:
                if body is not None:
                    return self.published(body)
                events = [{**event(n), "recipients": count, "open": False, "counts": {"confirmed": 3, "pushed": 2, "failed": 1}} for n in range(min(count, 500))]
                return self.page("events", events, query, 20)
            case ["events", _, "deliveries"]:
                return self.trail(query)
            case ["users", user, "deliveries"]:
                events = [{"position": n, "event": event(n), "open": False, "recipients": count, "delivery": {**self.rows[n], "user": user}} for n in range(min(count, 500))]
                return self.page("events", events, query, 20, user=user)
            case ["users", user]:
                devices = [{"user": user, "device": name(n), "platform": "android", "provider": "fcm", "notifications": True, "has_token": True, "app_version": name(n),
                            "registered_at": stamp(BEGAN), "refreshed_at": stamp(BEGAN)} for n in range(min(count, 50))]
                seats = [{"session": name(n), "definition": "quiz", "channel": f"presence-{name(n)}", "name": name(n), "email": "u…@example.com", "role": name(n), "joined_at": stamp(BEGAN),
                          "present": True, "connections": 1, "app_state": "foreground", "sockets": [socket(n)],
                          "changes": [{"at": stamp(BEGAN - 1), "kind": "opened", "device": name(n)}, {"at": stamp(BEGAN + 2), "kind": "lost", "device": None}]} for n in range(min(count, 50))]
                return {"user": user, "participants": seats, "devices": devices, "more": False}
            case ["channels"]:
                return {"channels": {f"presence-{name(n)}": {"subscription_count": n} for n in range(count)}}
            case ["channels", _]:
                return {"occupied": count > 0, "subscription_count": count, "user_count": count}
            case ["sessions", _, "participants"]:
                return {"participants": [{"id": n, "user": name(n), "name": name(n), "role": name(n), "present": n % 2 == 0, "connections": 1, "app_state": None, "devices": n % 3, "sockets": [socket(n)]} for n in range(count)]}
            case ["live"]:
                first = int(query.get("after", -1)) + 1
                kinds = ("join", "leave", "event", "decision", "receipt", "push")
                items = [] if first == 0 else [
                    {"at": stamp(BEGAN + n), "kind": kinds[n % 6], "channel": f"presence-{name(n)}", "user": name(n), "socket": name(n), "name": name(n), "event_id": EVENT, "policy": "critical", "recipients": 1,
                     "sequence": 1, "decision": "push", "known": "live", "why": name(n), "receipt_ms": 5, "nid": "n", "device": name(n), "state": "accepted", "answer": name(n), "attempt": 1}
                    for n in range(500 * (first - 1), min(500 * first, count))]
                return {"cursor": str(first), "gap": False, "sampled": 0, "node": name(0), "missing": [name(1)], "items": items} if items or first == 0 else None
            case ["dead-letters"]:
                letters = [{"nid": f"{n:032x}", "event_id": EVENT, "user": name(n), "device": name(n), "provider": "fcm", "reason": HOSTILE[n % 3], "attempts": 1, "failed_at": stamp(BEGAN + n)} for n in range(count)]
                return self.page("dead_letters", letters, query, 100)
            case ["dead-letters", _, _]:
                return {"message": {"title": HOSTILE[0], "data": {"a": HOSTILE[1]}}, "answers": [{"attempt": 1, "started_at": stamp(BEGAN), "ended_at": stamp(BEGAN), "answer": HOSTILE[2]}]}
        return {}

    def published(self, body):
        if not body.get("dry_run"):
            return {"event_id": EVENT}
        plans = [{"user": name(n), "known": "live", "decision": "push", "why": name(n), "surface": "push", "wait_ms": 0, "devices": [name(n)]} for n in range(min(self.count, 1000))]
        return {"dry_run": True, "channels": {body["channel"]: {
            "definition": "quiz", "policy": "critical", "recipients": self.count, "expires_in_ms": 600000, "decisions": {"push": self.count}, "deliveries": plans, "more": self.count > 1000}}}


def serve(hub, rows):
    """Serves the hub's own files with their headers, and the rows, on a free port."""

    class Console(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            url = urllib.parse.urlsplit(self.path)
            path = [urllib.parse.unquote(part) for part in url.path.split("/")[1:]]
            query = dict(urllib.parse.parse_qsl(url.query))
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"]))) if self.headers.get("Content-Length") else None
            if path == ["links", "trail"]:
                return self.json(rows.trail(query) if "event" in self.headers["Authorization"] else rows.answer(["users", name(0), "deliveries"], query, None))
            if path[:2] != ["console", "api"]:
                return self.file(url.path)
            match path[2:]:
                case ["session"]:
                    return self.json({"role": "operator", "expires_at": stamp(BEGAN + 40_000)})
                case ["apps"]:
                    return self.json({"apps": [{"id": "1", "enabled": True, "connections": 1}]})
                case ["metrics"] | ["ready"] | ["cluster"] as plain:
                    return self.plain(plain[0])
            self.json(rows.answer(path[4:], query, body))

        do_POST = do_DELETE = do_GET

        def plain(self, what):
            if what == "metrics":
                with urllib.request.urlopen(f"http://127.0.0.1:{hub}/metrics") as answer:
                    return self.send(200, [("Content-Type", "text/plain")], answer.read() if rows.count else b"")
            node = {"node": name(0), "this": True, "address": name(1), "version": name(2), "started_at": stamp(BEGAN), "connections": 1, "partitions": 64, "lag": None}
            self.json({"ready": True} if what == "ready" else {
                "nodes": [node] * min(rows.count, 3) or [node], "complete": True, "definitions_differ": False, "partitions": 64, "partitions_held": 64})

        def file(self, path):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{hub}{path}") as answer:
                    skipped = ("content-length", "connection")
                    self.send(200, [pair for pair in answer.headers.items() if pair[0].lower() not in skipped], answer.read())
            except urllib.error.HTTPError as error:
                self.send(error.code, [], b"")

        def json(self, value):
            if value is None:
                ended.wait(25)
                value = {"cursor": "0", "gap": False, "sampled": 0, "items": []}
            self.send(200, [("Content-Type", "application/json")], json.dumps(value).encode())

        def send(self, status, headers, body):
            self.send_response(status)
            for header in [*headers, ("Content-Length", str(len(body)))]:
                self.send_header(*header)
            try:
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                # The page has gone on.
                self.close_connection = True

        def log_message(self, *arguments):
            pass

    ended = threading.Event()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Console)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
