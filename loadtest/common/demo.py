"""`tandem demo` as a child process, and its page in a browser, driven as a visitor drives it."""

import json
import os
import signal

from common.programs import environment, wait_for

# Before the page's own scripts run, in its frames as well.
WATCH = """
  window.seen = [];
  document.addEventListener("securitypolicyviolation", (event) => seen.push(`policy: ${event.violatedDirective} ${event.blockedURI}`));
  addEventListener("error", (event) => seen.push(`error: ${event.message}`));
  addEventListener("unhandledrejection", (event) => seen.push(`rejection: ${event.reason}`));
"""


class Demo:
    """One run of the demo. Its temporary folder is made in `folder`."""

    def __init__(self, programs, binary, folder):
        self.programs, self.folder = programs, folder
        output = os.path.join(folder, "demo.log")
        self.process = programs.start([binary, "demo", "--no-open"], output, settings=environment(TMPDIR=folder))
        self.url = wait_for(r"http://127\.0\.0\.1:\d+/[0-9a-f]+/", self.process, 60, "tandem demo", output)[0]

    def folders(self):
        """The temporary folders that are still there."""
        return [name for name in os.listdir(self.folder) if name.startswith("tandem-demo-")]

    def end(self, number=signal.SIGINT):
        """Ends the demo by a signal; returns its exit code."""
        self.process.send_signal(number)
        return self.process.wait(20)


class Page:
    """The demo's page in a tab."""

    PHONES = ("ana", "ben", "cleo", "cleo-2")

    def __init__(self, browser, url):
        self.tab = browser.open("about:blank")
        self.say = lambda method, **parameters: browser.say(method, self.tab.session, **parameters)
        self.say("Page.enable")
        self.say("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        self.say("Page.navigate", url=url)
        self.tab.wait("document.querySelectorAll('.phone').length === 4")
        self.tab.wait(self.linked(*self.PHONES))

    @staticmethod
    def linked(*phones):
        """Holds once the apps of these phones are connected."""
        links = [f"document.querySelector('#phone-{phone} iframe')?.contentDocument?.querySelector('#link')?.className" for phone in phones]
        return "[" + ", ".join(links) + "].every((link) => link === 'on')"

    def click(self, selector):
        self.tab.value(f"document.querySelector({json.dumps(selector)}).click()")

    def ask(self):
        self.click("#ask")

    def press(self, phone, button):
        """One of a phone's buttons: hide, close, silence or back. Comes back when the phone has done it."""
        self.click(f"#phone-{phone} [data-do={button}]")
        self.tab.wait(f"[...document.querySelectorAll('#phone-{phone} button')].some((button) => !button.disabled)")

    def text(self, selector):
        return self.tab.value(f"document.querySelector({json.dumps(selector)})?.textContent ?? null")

    def verdict(self, phone):
        return self.text(f"#phone-{phone} .verdict")

    def notes(self, phone):
        """The notifications that a phone shows, and those that its gateway keeps, as they are drawn."""
        return self.tab.value(
            f"[...document.querySelectorAll('#phone-{phone} .note:not(.gone)')].map((note) => [note.children[0].textContent, "
            "note.classList.contains('kept') ? 'kept' : 'shown'])")

    def questions(self, phone):
        """The questions on the screen of a phone's app, the newest first."""
        return self.tab.value(
            f"[...(document.querySelector('#phone-{phone} iframe')?.contentDocument?.querySelectorAll('article small') ?? [])]"
            ".map((line) => [...line.children].map((part) => part.textContent))")

    def score(self):
        """(told, told twice, missed, under way), as the page shows them."""
        return tuple(int(self.text(f"#{name}")) for name in ("told", "twice", "missed", "way"))

    def wait_score(self, *score):
        """Until the page shows this score."""
        names = ("told", "twice", "missed", "way")
        shown = [f"document.getElementById('{name}').textContent === '{number}'" for name, number in zip(names, score)]
        self.tab.wait(" && ".join(shown))

    def wait_verdict(self, phone, beginning):
        self.tab.wait(f"document.querySelector('#phone-{phone} .verdict').textContent.startsWith({json.dumps(beginning)})")
