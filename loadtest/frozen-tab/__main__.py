"""A visible, a hidden and a frozen tab of a real browser beside a real hub: see loadtest/README.md. Settings: BUILD, EVENTS, PUSHER_JS."""

import json
import os
import sys
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.dirname(HERE), os.path.join(os.path.dirname(HERE), "one-surface")]

import decide
import wire
from common.browser import Browser
from common.site import serve
from common.workspace import built, workspace
from programs import Gateways, Hub

# What an app that says nothing of its state is asked at the latest, and some seconds more.
PROOF_SECONDS = 28
FROZEN_MAX = 2.5
FROZEN_EVENTS = 3
NAMES = ("frozen", "hidden", "visible", "absent")


def publish(caller, channel, n):
    """Returns when it was sent."""
    body = json.dumps({"name": "alarm", "channels": [channel], "data": json.dumps({"n": n})}).encode()
    sent = time.time()
    status, answer = caller.call(wire.signed("POST", f"/apps/{wire.APP}/events", body))
    if status != 200:
        raise SystemExit(f"frozen-tab: a publish was refused: {status} {answer}")
    return sent


def run(programs, folder, binaries, events):
    gateways = Gateways(programs, binaries["tandem-gateways"], folder)
    hub = Hub(programs, binaries["tandem"], folder, os.path.join(os.path.dirname(HERE), "one-surface", "channels"), gateways)
    hub.start()
    people = {
        name: {"name": name, "email": f"{name}@example.com", "ios": False, "device_token": f"{name}:APA91b{'x' * 120}"} for name in NAMES}
    channel = decide.register(hub.port, "stage", "tabs", list(people.values()))
    site = serve(os.path.join(HERE, "page.html"), wire.KEY, wire.SECRET)
    browser = Browser(folder)
    try:
        tabs = {}
        # Each new tab hides the ones before.
        for name in NAMES[:3]:
            query = urllib.parse.urlencode({"key": wire.KEY, "port": hub.port, "channel": channel, "user": people[name]["user"]})
            tabs[name] = browser.open(f"http://127.0.0.1:{site.server_port}/?{query}")
            tabs[name].wait("typeof isSubscribed === 'boolean' && isSubscribed")
        seen = {name: tab.value("document.visibilityState") for name, tab in tabs.items()}
        print(f"{browser.version()}, pusher-js: {tabs['visible'].value('Pusher.VERSION')}; tabs: {seen}")

        def pushes(name):
            gateways.wait_quiet(10)
            return [push for push in gateways.requests if push["token"] == people[name]["device_token"]]

        caller, failures = wire.Caller(hub.port, timeout=30), []

        def expect(holds, text):
            print(f"  {'ok  ' if holds else 'FAIL'}  {text}", flush=True)
            if not holds:
                failures.append(text)

        expect(seen == {"frozen": "hidden", "hidden": "hidden", "visible": "visible"}, "the browser hides what is behind")
        for n in range(1, events + 1):
            publish(caller, channel, n)
            time.sleep(0.1)
        time.sleep(PROOF_SECONDS)
        for name, tab in tabs.items():
            told, sent = tab.value("told.length"), len(pushes(name))
            text = f"{seen[name]} tab that runs: {events} critical events, {told} told by the socket, {sent} by push"
            expect(told == events and sent == 0, text)
        expect(len(pushes("absent")) == events, f"nobody there: {len(pushes('absent'))} told by push")

        tabs["frozen"].freeze()
        published = {}
        for n in range(events + 1, events + FROZEN_EVENTS + 1):
            published[n] = publish(caller, channel, n)
            time.sleep(1)
        time.sleep(PROOF_SECONDS)
        delays = {push["n"]: push["time"] - published[push["n"]] for push in pushes("frozen")}
        text = ", ".join(f"{delay:.2f}" for _, delay in sorted(delays.items()))
        expect(
            sorted(delays) == sorted(published) and len(pushes("frozen")) == FROZEN_EVENTS and max(delays.values()) <= FROZEN_MAX,
            f"frozen tab: {FROZEN_EVENTS} critical events, pushed after {text or 'never'} s; at most {FROZEN_MAX} s")
        for name in ("hidden", "visible"):
            told, sent = tabs[name].value("told.length"), len(pushes(name))
            expect(told == events + FROZEN_EVENTS and sent == 0, f"{name} tab meanwhile: {told} told by the socket, {sent} by push")
        return 1 if failures else 0
    finally:
        browser.end()
        site.shutdown()


def main():
    build = os.environ.get("BUILD") or "release"
    binaries = {name: built(name, "frozen-tab", build) for name in ("tandem", "tandem-gateways")}
    with workspace() as (folder, programs):
        return run(programs, folder, binaries, int(os.environ.get("EVENTS") or 100))


sys.exit(main())
