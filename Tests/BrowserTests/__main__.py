"""The hub's pages and companions in a real browser: python3 -B Tests/BrowserTests [PART ...]. Needs Chromium. Settings: BUILD=debug, PUSHER_JS."""

import os
import sys
import time
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
LOADTEST = os.path.join(os.path.dirname(os.path.dirname(HERE)), "loadtest")
sys.path[1:1] = [os.path.join(HERE, "parts"), LOADTEST, os.path.join(LOADTEST, "one-surface")]

import companion
import decide
import deeds
import demo
import doors
import million
import nodes
import programs as surface
import screens
import sights
import stage
import tail
import wire
from common.browser import Browser
from common.site import serve
from common.workspace import built, workspace

PARTS = (screens, companion, doors, sights, deeds, tail, nodes, million, demo)


class World:
    """A hub with simulated gateways, a web server with the pages, and a browser."""

    def __init__(self, folder, programs, binaries):
        self.folder, self.programs, self.binaries = folder, programs, binaries
        self.gateways = surface.Gateways(programs, binaries["tandem-gateways"], folder)
        self.hub = stage.Hub(programs, binaries["tandem"], folder, os.path.join(LOADTEST, "one-surface", "channels"), self.gateways)
        self.hub.start()
        self.started = time.monotonic()
        self.site = serve(os.path.join(HERE, "page.html"), wire.KEY, wire.SECRET)
        self.browser = Browser(folder)
        self.caller, self.failures, self.number, self.console = wire.Caller(self.hub.port, timeout=30), [], 0, None

    def end(self):
        self.browser.end()
        self.site.shutdown()

    def expect(self, holds, text):
        print(f"  {'ok  ' if holds else 'FAIL'}  {text}", flush=True)
        if not holds:
            self.failures.append(text)

    def stage(self):
        """The people of the console's tests, who come when they are needed first."""
        self.console = self.console or stage.People(self)
        return self.console

    def control(self, method, path, body=None):
        """Tells the simulated gateways what to do."""
        urllib.request.urlopen(urllib.request.Request(self.gateways.control + path, body, method=method), timeout=30).close()

    def people(self, session, *names):
        """Who has joined the session, each with a device and a participant token."""
        people = [
            {"name": name, "email": f"{name}@example.com", "ios": False, "device_token": f"{name}:APA91b{'x' * 120}"} for name in names]
        decide.register(self.hub.port, "stage", session, people)
        return people

    def open(self, person):
        """A new tab of the person in front of the others, subscribed."""
        query = urllib.parse.urlencode({
            "key": wire.KEY, "port": self.hub.port, "channel": person["channel"], "user": person["user"], "token": person["token"]})
        tab = self.browser.open(f"http://127.0.0.1:{self.site.server_port}/?{query}")
        tab.wait("window.isSubscribed === true")
        return tab

    def pushes(self, token):
        """Numbers of the events that were pushed to the device token."""
        self.gateways.wait_quiet(10)
        return [push["n"] for push in self.gateways.requests if push["token"] == token]


def starts(folder):
    """Whether Chromium starts here."""
    try:
        browser = Browser(folder)
        try:
            browser.version()
        finally:
            browser.end()
        return True
    except (OSError, SystemExit) as error:
        print(f"browser tests: skipped, because Chromium does not start: {error}")
        return False


def main():
    build = os.environ.get("BUILD") or "debug"
    binaries = {name: built(name, "browser", build) for name in ("tandem", "tandem-gateways")}
    with workspace() as (folder, programs):
        if not starts(folder):
            return 0
        world = World(folder, programs, binaries)
        try:
            print(world.browser.version(), flush=True)
            for part in PARTS:
                if not sys.argv[1:] or part.__name__ in sys.argv[1:]:
                    part.try_all(world)
        finally:
            world.end()
        print(f"{len(world.failures)} failed" + "".join(f"\n  FAILED {text}" for text in world.failures))
        return 1 if world.failures else 0


began = time.monotonic()
code = main()
print(f"{time.monotonic() - began:.0f} s")
sys.exit(code)
