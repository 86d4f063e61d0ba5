"""What the scripts share: stock clients pointed at a hub on this machine, and waiting for conditions.

The hub and the simulated gateways are named by environment variables: HUB_URL, HUB_PID, HUB_CA and GATEWAYS_URL.
"""

import hashlib
import hmac
import json
import os
import signal
import ssl
import threading
import time
import urllib.parse

import pusher
import pysher
import pysher.channel
import requests
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

HUB_URL = os.environ["HUB_URL"]
HUB_PORT = urllib.parse.urlsplit(HUB_URL).port
# For a hub with TLS: the certificate of the authority that its own leads to.
HUB_CA = os.environ.get("HUB_CA")
APP_ID, KEY, SECRET = "1", "app-key", "app-secret"

# Generous, because the machine that runs this may be busy; nothing waits this long when all is well.
SLOWNESS = int(os.environ.get("TANDEM_TEST_PATIENCE", "1"))
PATIENCE = 60.0 * SLOWNESS
# How long nothing may follow before "exactly one" counts as seen.
QUIET = 0.7

# A script must not outlive its test, whatever it waits for.
signal.alarm(600 * SLOWNESS)

http = requests.Session()
# Nothing on the way between this machine and itself.
http.trust_env = False
http.verify = HUB_CA or True


def finish(**results):
    """Ends a script with its results: one line of JSON."""
    print(json.dumps(results), flush=True)
    # Reader threads of clients may still wait for their servers.
    os._exit(0)


def wait_for(condition, what, timeout=PATIENCE):
    """Returns the first true value of `condition()`."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise SystemExit(f"timed out after {timeout} s: {what}")
        time.sleep(0.02)


def check(condition, *details):
    """Like assert, but also with python -O, and with the values in the message."""
    if not condition:
        raise SystemExit("unexpected: " + " | ".join(repr(detail) for detail in details))


# --- HTTP -----------------------------------------------------------------------------------------------------------


def backend(**changes):
    """The official library of a backend."""
    options = dict(app_id=APP_ID, key=KEY, secret=SECRET, ssl=HUB_CA is not None, host="127.0.0.1", port=HUB_PORT, timeout=10)
    options.update(changes)
    library = pusher.Pusher(**options)
    if HUB_CA:
        # The library trusts the authorities that it brings along.
        library._pusher_client.http.options["verify"] = HUB_CA
    return library


def tls_context():
    if not HUB_CA:
        return None
    context = ssl.create_default_context(cafile=HUB_CA)
    # These clients read in one thread and write in another, which Python's TLS does not guard: a request that is sent while
    # TLS 1.3's session tickets come in is lost now and then. TLS 1.2 sends nothing unasked behind the handshake.
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


def signed_query(method, path, body=b"", params=None, key=KEY, secret=SECRET, **overrides):
    """Query parameters with the Pusher signature; `overrides` replaces or, with None, leaves out what is signed."""
    query = dict(params or {})
    query.update(auth_key=key, auth_timestamp=str(int(time.time())), auth_version="1.0")
    if body:
        query["body_md5"] = hashlib.md5(body).hexdigest()
    for name, value in overrides.items():
        if value is None:
            query.pop(name, None)
        else:
            query[name] = value
    text = "&".join(f"{name}={query[name]}" for name in sorted(query))
    query["auth_signature"] = hmac.new(secret.encode(), f"{method}\n{path}\n{text}".encode(), hashlib.sha256).hexdigest()
    return query


def signed(method, path, body=None, raw=None, params=None, **overrides):
    """A signed request to the hub's HTTP API below /apps/1."""
    path = f"/apps/{APP_ID}{path}"
    data = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
    query = signed_query(method, path, data, params, **overrides)
    return http.request(method, HUB_URL + path, params=query, data=data, headers={"Content-Type": "application/json"}, timeout=PATIENCE)


def expect(response, status=200):
    if response.status_code != status:
        raise SystemExit(f"{response.request.method} {response.request.path_url.split('?')[0]} answered "
                         f"{response.status_code} instead of {status}: {response.text}")
    return response.json()


def create_session(session, join_code, definition="quiz", attributes=None):
    body = {"definition": definition, "join_code": join_code, "attributes": attributes or {}}
    return expect(signed("PUT", f"/sessions/{session}", body))


def join(join_code, name, headers=None, **members):
    body = {"name": name, "email": f"{name.lower()}@example.com", **members}
    return expect(http.post(f"{HUB_URL}/api/scenarios/sessions/{join_code}/join", json=body, headers=headers, timeout=PATIENCE))


def bearer(participant):
    return {"Authorization": f"Bearer {participant['token']}"}


def roster(session):
    """The participants of a session as the backend sees them, by name."""
    answer = expect(signed("GET", f"/sessions/{session}/participants"))
    return {entry["name"]: entry for entry in answer["participants"]}


def authorize(participant, socket_id, channel):
    """What `/pusher/auth` says, as a client library's authorizer gets it."""
    form = {"socket_id": socket_id, "channel_name": channel}
    return expect(http.post(f"{HUB_URL}/pusher/auth", data=form, headers=bearer(participant), timeout=PATIENCE))


def sign_channel(socket_id, channel, channel_data=None, key=KEY, secret=SECRET):
    text = f"{socket_id}:{channel}" + (f":{channel_data}" if channel_data is not None else "")
    return f"{key}:{hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()}"


# --- Clients --------------------------------------------------------------------------------------------------------


class Socket:
    """A WebSocket client that speaks as PusherSwift does: its query, its sub-protocol, nothing else."""

    SWIFT = f"/app/{KEY}?client=pusher-websocket-swift&version=10.1.10&protocol=7"

    def __init__(self, path=SWIFT, subprotocol="pusher-channels-protocol-7", handshake=True, origin=None):
        self.frames = []
        self.close_code = None
        self.close_reason = None
        self._changed = threading.Condition()
        self._socket = connect(
            f"{'wss' if HUB_CA else 'ws'}://127.0.0.1:{HUB_PORT}{path}", ssl=tls_context(), subprotocols=[subprotocol] if subprotocol else None, proxy=None,
            origin=origin, ping_interval=None, max_queue=None, open_timeout=PATIENCE, close_timeout=1)
        self.subprotocol = self._socket.subprotocol
        threading.Thread(target=self._read, daemon=True).start()
        if handshake:
            first = self.next(lambda frame: True, "the first frame")
            check(first["event"] == "pusher:connection_established", first)
            self.handshake = json.loads(first["data"])
            self.socket_id = self.handshake["socket_id"]

    def _read(self):
        try:
            for message in self._socket:
                frame = json.loads(message)
                check(isinstance(frame.get("event"), str) and "data" in frame, frame)
                check(frame.get("channel", "") is not None and frame.get("user_id", "") is not None, frame)
                self.heard(frame)
                with self._changed:
                    self.frames.append(frame)
                    self._changed.notify_all()
        except ConnectionClosed:
            pass
        with self._changed:
            self.close_code = self._socket.close_code
            self.close_reason = self._socket.close_reason
            self._changed.notify_all()

    def heard(self, frame):
        """What a library does by itself, before anybody is told of the frame."""

    def _wait(self, condition, what, timeout):
        with self._changed:
            if not self._changed.wait_for(condition, timeout):
                raise SystemExit(f"timed out after {timeout} s: {what}; frames so far: {self.frames[-5:]}")

    def next(self, matches, what, timeout=PATIENCE):
        """The first frame that matches, whenever it arrived."""
        self._wait(lambda: any(matches(frame) for frame in self.frames), what, timeout)
        return next(frame for frame in self.frames if matches(frame))

    def event(self, name, channel=None, timeout=PATIENCE):
        return self.next(
            lambda frame: frame["event"] == name and channel in (None, frame.get("channel")), f"{name} on {channel}", timeout)

    def all(self, name, channel=None):
        with self._changed:
            return [frame for frame in self.frames if frame["event"] == name and channel in (None, frame.get("channel"))]

    def count(self, name, expected, timeout=PATIENCE):
        self._wait(lambda: sum(frame["event"] == name for frame in self.frames) >= expected, f"{expected} times {name}", timeout)
        return len(self.all(name))

    def closed(self, timeout=PATIENCE):
        """The close frame's code; 1006 when there was none."""
        self._wait(lambda: self.close_code is not None, "the end of the connection", timeout)
        return self.close_code

    def send_raw(self, message):
        self._socket.send(message)

    def send(self, event, data=None, channel=None):
        frame = {"event": event, "data": {} if data is None else data}
        if channel:
            frame["channel"] = channel
        self.send_raw(json.dumps(frame))

    def subscribe(self, channel, user=None, participant=None, wait=True):
        """Subscribes, signed with the app's secret or, for a participant, by the hub's own endpoint."""
        data = {"channel": channel}
        if participant is not None:
            data.update(authorize(participant, self.socket_id, channel))
        elif channel.startswith("presence-"):
            data["channel_data"] = json.dumps({"user_id": user, "user_info": {"name": str(user)}})
            data["auth"] = sign_channel(self.socket_id, channel, data["channel_data"])
        elif channel.startswith("private-"):
            data["auth"] = sign_channel(self.socket_id, channel)
        self.send("pusher:subscribe", data)
        if wait:
            return self.event("pusher_internal:subscription_succeeded", channel)

    def pong(self):
        """Returns when the hub has read everything that was sent before."""
        known = len(self.all("pusher:pong"))
        self.send("pusher:ping")
        self.count("pusher:pong", known + 1)

    def standing_still(self):
        """While it is held nothing that comes is answered, as if the process were stopped."""
        return self._socket.protocol_mutex

    def close(self):
        self._socket.close()

    def drop(self):
        """Ends the TCP connection without a close frame, as a phone that loses its network."""
        import socket as sockets
        self._socket.socket.shutdown(sockets.SHUT_RDWR)


class PysherClient(pysher.Pusher):
    """Pysher as it is, connected, with one addition: whoever authorizes decides about `channel_data`.

    Stock Pysher drops the `channel_data` of an authorization and sends its own spelling of `user_data`, which matches a
    signature only by chance.
    """

    def __init__(self, **options):
        # Data by channel and event, from the first frame on: what arrives before anything is bound, Pysher drops.
        self.seen = {}
        super().__init__(KEY, secure=HUB_CA is not None, custom_host="127.0.0.1", port=HUB_PORT, **options)
        self.connect()
        wait_for(lambda: self.connection.state == "connected", "Pysher to connect")

    def _connection_handler(self, event_name, data, channel_name):
        self.seen.setdefault((channel_name, event_name), []).append(data)
        super()._connection_handler(event_name, data, channel_name)

    def subscribe_authorized(self, channel, participant):
        self.channels[channel] = pysher.channel.Channel(channel, self.connection)
        answer = authorize(participant, self.connection.socket_id, channel)
        self.connection.send_event("pusher:subscribe", {"channel": channel, **answer})
        self.subscribed(channel)
        return self.channels[channel]

    def subscribed(self, channel):
        """What the hub acknowledged the subscription with, once it has."""
        key = (channel, "pusher_internal:subscription_succeeded")
        wait_for(lambda: self.seen.get(key), f"Pysher's subscription of {channel}")
        return self.seen[key]

    def leave(self):
        """Closes the connection, without Pysher's wait for its own thread, which sleeps on the closed socket."""
        self.disconnect(timeout=0.1)

    @staticmethod
    def record(channel, name):
        """A list that fills with the data of an event, as an app's handler gets it."""
        received = []
        channel.bind(name, received.append)
        return received


# --- Gateways -------------------------------------------------------------------------------------------------------


class Gateways:
    """The simulated FCM and APNs ends."""

    def __init__(self):
        self.url = os.environ["GATEWAYS_URL"]

    def requests(self, token=None, provider=None):
        params = {name: value for name, value in [("token", token), ("provider", provider)] if value}
        return [r for r in http.get(f"{self.url}/requests", params=params, timeout=PATIENCE).json() if r["provider"] != "oauth"]

    def fault(self, token, *faults):
        http.put(f"{self.url}/faults/{token}", json=list(faults), timeout=PATIENCE).raise_for_status()

    def clear_faults(self):
        http.delete(f"{self.url}/faults", timeout=PATIENCE).raise_for_status()

    def pushes(self, token, count, timeout=PATIENCE):
        """The requests for a token once there are that many."""
        return wait_for(
            lambda: found if len(found := self.requests(token)) >= count else None, f"{count} pushes to {token[:24]}", timeout)

    def settled(self, *tokens):
        """All requests, after a quiet period in which none came."""
        known = None
        while known is None or known != len(self.requests()):
            known = len(self.requests())
            time.sleep(QUIET)
        return {token: self.requests(token) for token in tokens}


def apns_token(digit):
    return digit * 64


def fcm_token(name):
    return f"{name}:APA91b" + "x" * 120
