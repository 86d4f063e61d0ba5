"""A headless Chromium, told what to do through the DevTools protocol over a pair of pipes."""

import base64
import json
import os
import select
import signal
import subprocess
import time

from common.programs import die_with_parent, environment

SECONDS = 60


class Browser:
    def __init__(self, folder):
        (commands, self.to), (self.answers, results) = os.pipe(), os.pipe()
        for descriptor, wanted in ((commands, 3), (results, 4)):
            os.set_inheritable(descriptor, True)

        def prepare():
            die_with_parent()
            first, second = os.dup(commands), os.dup(results)
            os.dup2(first, 3)
            os.dup2(second, 4)

        self.process = subprocess.Popen(
            ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             f"--user-data-dir={os.path.join(folder, 'profile')}", "--remote-debugging-pipe", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=open(os.path.join(folder, "browser.log"), "ab"), stderr=subprocess.STDOUT,
            env=environment(NO_PROXY="*", HOME=folder), start_new_session=True, close_fds=False, preexec_fn=prepare)
        os.close(commands)
        os.close(results)
        self.buffer, self.last = b"", 0

    def say(self, method, session=None, **parameters):
        """One command, and the result that comes back for it."""
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        os.write(self.to, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + SECONDS
        while True:
            while b"\0" in self.buffer:
                text, self.buffer = self.buffer.split(b"\0", 1)
                answer = json.loads(text)
                if answer.get("id") == self.last:
                    if "error" in answer:
                        raise SystemExit(f"browser: {method}: {answer['error']}")
                    return answer["result"]
            if not select.select([self.answers], [], [], max(0, end - time.monotonic()))[0]:
                raise SystemExit(f"browser: the browser has not answered {method} within {SECONDS} s")
            chunk = os.read(self.answers, 1 << 16)
            if not chunk:
                raise SystemExit(f"browser: the browser ended during {method}")
            self.buffer += chunk

    def version(self):
        return self.say("Browser.getVersion")["product"]

    def open(self, url, **more):
        """A new tab in front of the others, and its session."""
        target = self.say("Target.createTarget", url=url, **more)["targetId"]
        return Tab(self, target, self.say("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])

    def end(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


class Tab:
    def __init__(self, browser, target, session):
        self.browser, self.target, self.session = browser, target, session

    def value(self, expression):
        """What the expression comes to, once it is settled."""
        return self.browser.say(
            "Runtime.evaluate", self.session, expression=expression, returnByValue=True, awaitPromise=True)["result"].get("value")

    def wait(self, expression):
        end = time.monotonic() + SECONDS
        while not self.value(expression):
            if time.monotonic() > end:
                raise SystemExit(f"browser: not within {SECONDS} s: {expression}")
            time.sleep(0.05)

    def freeze(self):
        self.browser.say("Page.setWebLifecycleState", self.session, state="frozen")

    def resize(self, width, height, dark=False, scale=1):
        """A window of another size, in CSS pixels, and the colours that the person prefers."""
        self.browser.say(
            "Emulation.setDeviceMetricsOverride", self.session, width=width, height=height, deviceScaleFactor=scale, mobile=False)
        self.browser.say(
            "Emulation.setEmulatedMedia", self.session, features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def picture(self):
        """What the window shows, as the bytes of a PNG."""
        return base64.b64decode(self.browser.say("Page.captureScreenshot", self.session, format="png")["data"])

    def show(self):
        """Brings the tab in front of the others."""
        self.browser.say("Page.bringToFront", self.session)

    def close(self):
        """Closes the tab as a person does, who lets the page say its last word."""
        self.browser.say("Page.close", self.session)
