"""Takes the pictures of a running `tandem demo` and of the console: python3 -B docs/pictures [demo|console]. Needs Chromium, pngquant."""

import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LOADTEST = os.path.join(os.path.dirname(os.path.dirname(HERE)), "loadtest")
sys.path[1:1] = [LOADTEST, os.path.join(LOADTEST, "one-surface")]

import console
from common.browser import Browser
from common.demo import Demo, Page
from common.workspace import built, workspace

BYTES_MAX = 300_000


def save(name, tab):
    """Keeps what the tab shows, in few enough colours for a repository."""
    path = os.path.join(HERE, f"{name}.png")
    quantised = subprocess.run(["pngquant", "--speed", "1", "--strip", "256", "-"], input=tab.picture(), capture_output=True, check=True)
    with open(path, "wb") as file:
        file.write(quantised.stdout)
    size = os.path.getsize(path)
    print(f"{os.path.relpath(path)}: {size // 1000} KB")
    if size > BYTES_MAX:
        raise SystemExit(f"pictures: {path} has more than {BYTES_MAX} bytes")


def demo(browser, programs, binaries, folder):
    """One question, and a phone in each state."""
    run = Demo(programs, binaries["tandem"], folder)
    page = Page(browser, run.url)
    page.tab.resize(1240, 820, scale=1.6)
    page.say("Emulation.setScrollbarsHidden", hidden=True)
    page.ask()
    page.wait_score(3, 0, 0, 0)
    page.press("ben", "silence")
    page.press("cleo", "hide")
    page.press("cleo-2", "close")
    time.sleep(1)
    page.ask()
    page.wait_verdict("cleo", "Notification")
    page.wait_verdict("ben", "FCM keeps")
    page.tab.wait("document.querySelector('#phone-ben .why').textContent.includes('Push: live, not confirmed')")
    time.sleep(1)
    save("demo", page.tab)
    page.tab.close()
    run.end()


def main():
    wanted = sys.argv[1:] or ["demo", "console"]
    binaries = {name: built(name, "pictures", os.environ.get("BUILD") or "debug") for name in ("tandem", "tandem-gateways")}
    with workspace() as (folder, programs):
        browser = Browser(folder)
        try:
            if "demo" in wanted:
                demo(browser, programs, binaries, folder)
            if "console" in wanted:
                console.take(browser, programs, binaries, folder, save)
        finally:
            browser.end()


main()
