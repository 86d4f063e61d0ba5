"""The console's pictures: a quiz of two dozen people on a running hub, one of whom was not told."""

import json
import os
import random
import signal
import time
import urllib.request

import programs as surface
import wire
from decide import wait_subscribed

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PASSWORD = "open-for-pictures"
CHANNEL = "presence-quiz-monday"
NAMES = (
    "ada ben cleo dan eve finn gina hugo ida jack kira leo mia nils olga pia quentin rosa sam tina uwe vera walt yara").split()
# They look at the app; the others have closed it.
OPEN = NAMES[:15]


class Hub(surface.Hub):
    def start(self):
        configuration = surface.CONFIGURATION.replace("PORT", str(self.port)).replace("LOOPS", str(self.loops))
        self.launch(configuration, {**self.gateways.settings, "TANDEM_CONSOLE_PASSWORD": PASSWORD})


class Quiz:
    """The backend of the quiz."""

    def __init__(self, port):
        self.caller, self.number = wire.Caller(port, timeout=30), 0

    def call(self, method, path, **members):
        body = json.dumps(members).encode() if members else b""
        status, answer = self.caller.call(wire.signed(method, f"/apps/{wire.APP}{path}", body))
        if status not in (200, 201, 204):
            raise SystemExit(f"pictures: {method} {path}: {status} {answer}")
        return answer

    def person(self, number, name):
        """Somebody with a phone, as a client process plays them."""
        draw = random.Random(number)
        is_apple = number % 2 == 0
        token = f"{draw.getrandbits(256):064x}" if is_apple else f"{name}:APA91b{draw.getrandbits(480):0120x}"
        path = f"/sessions/monday/participants/{name}"
        self.call("PUT", path, name=name.title())
        self.call("PUT", f"/users/{name}/devices/{name}-phone", token=token, platform="ios" if is_apple else "android")
        return {
            "name": name, "user": name, "token": self.call("POST", f"{path}/token", scope="session")["token"], "device_token": token,
            "channel": CHANNEL, "ios": is_apple, "client": "swift", "declares": True, "signs_in": False, "connects": True,
            "timeline": []}

    def publish(self):
        return self.say("session-started")["event_id"]

    def say(self, name):
        self.number += 1
        # The client processes log the number.
        return self.call("POST", "/events", name=name, channels=[CHANNEL], data=json.dumps({"n": self.number}))


def fault(gateways, token, *faults):
    request = urllib.request.Request(f"{gateways.control}/faults/{token}", json.dumps(faults).encode(), method="PUT")
    urllib.request.urlopen(request, timeout=10).close()


def story(running, binaries, folder):
    """Ada is in a tunnel with a token that is dead, and Walt has removed the app. Returns the backend and the event."""
    gateways = surface.Gateways(running, binaries["tandem-gateways"], folder)
    hub = Hub(running, binaries["tandem"], folder, os.path.join(ROOT, "channels"), gateways)
    hub.start()
    quiz = Quiz(hub.port)
    quiz.call("PUT", "/sessions/monday", definition="quiz", join_code="ABC123")
    people = [quiz.person(number, name) for number, name in enumerate(NAMES)]
    shared = {"ports": hub.ports, "seed": 1, "spread": 0.2}
    tunnel = surface.Client(running, folder, "-ada", {**shared, "people": people[:1]})
    others = surface.Client(running, folder, "-others", {**shared, "people": people[1:len(OPEN)]})
    wait_subscribed([tunnel, others], len(OPEN), 60)
    quiz.publish()
    time.sleep(1)
    fault(gateways, people[0]["device_token"], {"status": 503, "reason": "ServiceUnavailable", "times": 1}, {"status": 410, "reason": "Unregistered"})
    fault(gateways, people[22]["device_token"], {"status": 410, "reason": "Unregistered"})
    tunnel.process.send_signal(signal.SIGSTOP)
    event = quiz.publish()
    gateways.wait_quiet(20, quiet=5)
    return quiz, event


def chat(quiz):
    """Lobby traffic that comes and goes, which nobody is pushed about."""
    draw, end = random.Random(3), time.monotonic() + 24
    while time.monotonic() < end:
        for _ in range(draw.randrange(1, 12)):
            quiz.say("participant-joined")
        time.sleep(draw.uniform(0.1, 0.6))


def take(browser, running, binaries, folder, save):
    quiz, event = story(running, binaries, folder)
    tab = browser.open(f"http://127.0.0.1:{quiz.caller.port}/console/")
    tab.resize(1280, 860, scale=1.5)
    tab.wait("document.querySelector('main.sign input') !== null")
    tab.value(f"(() => {{ document.querySelector('#password').value = {json.dumps(PASSWORD)}; document.querySelector('form button').click(); }})()")
    tab.wait("document.querySelector('main[data-ready]') !== null")
    browser.say("Emulation.setScrollbarsHidden", tab.session, hidden=True)
    places = {"event": f"event/{event}", "person": f"person/ada/{event}", "channel": f"channel/{CHANNEL}", "now": "now"}
    for name, place in places.items():
        tab.value(f"location.hash = '#/{wire.APP}/{place}'")
        if name == "now":
            chat(quiz)
        time.sleep(2)
        tab.wait(f"document.querySelector('main[data-ready={name}]') !== null")
        save(f"console-{name}", tab)
    tab.close()
