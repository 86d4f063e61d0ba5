"""The hub that the libraries talk to, and what a backend and an app's auth endpoint do."""

import hashlib
import hmac
import json
import os
import time

import programs as surface
import wire
from common import hub

KEY, SECRET = wire.KEY, wire.SECRET
CHANNEL = "presence-stage-main"
PATIENCE = 60


class Hub(hub.Hub):
    def start(self):
        self.launch(surface.CONFIGURATION.replace("PORT", str(self.port)).replace("LOOPS", "2"), {})


class World:
    def __init__(self, programs, binary, folder):
        self.programs = programs
        self.hub = Hub(programs, binary, folder, "hub", os.path.join(os.path.dirname(os.path.abspath(surface.__file__)), "channels"))
        self.hub.start()
        self.number = 0
        body = json.dumps({"definition": "stage", "join_code": "maincode"}).encode()
        self.request(wire.signed("PUT", f"/apps/{wire.APP}/sessions/main", body))

    def request(self, data):
        caller = wire.Caller(self.hub.port, timeout=30)
        status, answer = caller.call(data)
        caller.close()
        if status != 200:
            raise SystemExit(f"libraries: {status} {answer}")
        return answer

    def join(self, name):
        """A person with a phone, as the hub knows them."""
        body = json.dumps({
            "name": name, "email": f"{name}@example.com", "device_token": f"{name}:APA91b{'x' * 120}", "device_platform": "android"})
        return self.request(wire.request("POST", "/api/scenarios/sessions/maincode/join", body.encode()))

    def authorize(self, person, socket_id, channel):
        """As an app's auth endpoint answers."""
        return self.request(wire.authorisation("/pusher/auth", person["token"], socket_id=socket_id, channel_name=channel))

    def publish(self, channel, name="hello"):
        """The event's data, and its id where it has a policy."""
        self.number += 1
        body = json.dumps({"name": name, "channels": [channel], "data": json.dumps({"n": self.number})}).encode()
        return {"n": self.number}, self.request(wire.signed("POST", f"/apps/{wire.APP}/events", body)).get("event_id")

    def state(self, event, person):
        """How the event ended for the person, once their socket has proven anything."""
        def row():
            answer = self.request(wire.signed("GET", f"/apps/{wire.APP}/events/{event}/deliveries", user=person["user_id"]))
            return answer["deliveries"][0]
        return until(lambda: row()["confirmed_at"] and row()["state"], "a receipt")

    def occupied(self, channel):
        return self.request(wire.signed("GET", f"/apps/{wire.APP}/channels/{channel}"))["occupied"]

    def app_state(self, person):
        answer = self.request(wire.signed("GET", f"/apps/{wire.APP}/sessions/main/participants"))
        return next(entry["app_state"] for entry in answer["participants"] if entry["name"] == person["name"])

    def restart(self):
        """Killed, and started again on the same port."""
        self.programs.kill(self.hub.process)
        self.hub.start()


def sign(text):
    """As a backend signs a subscription."""
    return f"{KEY}:{hmac.new(SECRET.encode(), text.encode(), hashlib.sha256).hexdigest()}"


def until(condition, what, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise TimeoutError(f"waited {seconds} s for {what}")
