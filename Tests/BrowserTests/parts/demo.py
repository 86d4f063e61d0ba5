"""`tandem demo`: the four states of a phone and the death of the hub, with the counter as the page shows it."""

import os
import re
import time

import stage
from common.demo import Demo, Page
from page import JUDGE

SETTLE_SECONDS = 0.5


def screens(world, page):
    """Everybody has the app open."""
    page.ask()
    page.wait_score(3, 0, 0, 0)
    verdicts = [page.verdict(phone) for phone in page.PHONES]
    world.expect(all(verdict.startswith("On the screen") for verdict in verdicts), f"four open apps show the question: {verdicts}")
    world.expect(
        all(page.questions(phone)[0] == ["Question 1"] for phone in page.PHONES), "the question is on the four screens, and none was missed")
    world.expect(all(page.notes(phone) == [] for phone in page.PHONES), "no phone rings")
    page.tab.wait("document.querySelector('#phone-ana .tags').textContent.includes('confirmed')")
    world.expect(page.text("#phone-ana .tags") == "liveawait_receiptconfirmed", "the trail stands beside the phone")


def away(world, page):
    """One phone in each state: in the background, closed, in airplane mode; and a second phone of a person."""
    page.press("ana", "hide")
    page.press("ben", "silence")
    page.press("cleo", "hide")
    page.press("cleo-2", "close")
    time.sleep(SETTLE_SECONDS)
    page.ask()
    page.wait_verdict("ana", "Notification")
    page.wait_verdict("cleo", "Notification")
    world.expect(page.notes("ana") == [["Question 2", "shown"]], "a phone in the background gets a notification")
    # The second phone's notification comes through another gateway.
    both = lambda: page.notes("cleo") == page.notes("cleo-2") == [["Question 2", "shown"]]
    world.expect(stage.eventually(both), "so do both phones of a person who is on neither's screen")
    page.wait_verdict("ben", "FCM keeps")
    world.expect(page.notes("ben") == [["Question 2", "kept"]], "a phone in airplane mode has its push at the gateway after the wait")
    world.expect(page.score() == (5, 0, 0, 1), f"five told, one under way: {page.score()}")
    world.expect(page.text("#phone-ana .tags").startswith("bgpush"), f"the trail knew the background: {page.text('#phone-ana .tags')}")
    page.tab.wait("document.querySelector('#phone-ben .why').textContent.includes('Push: live, not confirmed')")
    world.expect(True, "the trail says why the other phone got a push")


def back(world, page):
    """They come back."""
    for phone in ("ana", "ben", "cleo"):
        page.press(phone, "back")
        page.wait_verdict(phone, "Notification, then read")
    world.expect(
        all(page.questions(phone)[0] == ["Question 2", "while you were away"] for phone in ("ana", "ben", "cleo")),
        "who comes back sees what was missed")
    page.tab.wait("document.querySelectorAll('.note:not(.gone)').length === 0")
    world.expect(True, "the notifications are gone, also from the second phone that stayed closed")
    world.expect(page.score() == (6, 0, 0, 0), f"six told: {page.score()}")
    page.ask()
    page.wait_score(9, 0, 0, 0)
    world.expect(page.verdict("cleo-2").startswith("Told on the other phone"), "a closed second phone stays dark while its owner looks at the first")


def killed(world, page):
    """The hub dies, right behind a question and before the next one."""
    page.press("ana", "close")
    page.press("cleo-2", "back")
    time.sleep(SETTLE_SECONDS)
    page.ask()
    page.click("#kill")
    page.tab.wait("document.getElementById('hub').dataset.life === 'down'")
    page.ask()
    page.wait_verdict("ben", "Not sent yet")
    world.expect(page.score()[1:3] == (0, 0), f"nobody counts as missed while the hub is dead: {page.score()}")
    page.click("#restart")
    page.tab.wait("document.getElementById('hub').dataset.life === 'up'")
    page.wait_score(15, 0, 0, 0)
    world.expect(
        sorted(page.notes("ana")) == [["Question 4", "shown"], ["Question 5", "shown"]], f"after the restart the closed phone rings: {page.notes('ana')}")
    world.expect([line[0] for line in page.questions("ben")][:2] == ["Question 5", "Question 4"], "the open ones show both questions")
    page.press("ana", "back")
    page.tab.wait(page.linked(*page.PHONES))


def twice(world, page):
    """The known window: an app without a companion that reads an event and then falls silent."""
    page.ask()
    page.wait_score(18, 0, 0, 0)
    page.press("ben", "hide")
    began = time.monotonic()
    page.wait_verdict("ben", "Told twice")
    told, twice, *others = page.score()
    # Questions that it had read in the seconds before are told again, too.
    world.expect(told == 18 and twice >= 1 and others == [0, 0], f"told twice is counted: {page.score()}, after {time.monotonic() - began:.0f} s")
    world.expect(all(page.verdict(phone).startswith("On the screen") for phone in ("ana", "cleo", "cleo-2")), "and nobody else is told twice")
    page.press("ben", "back")
    page.tab.wait("document.querySelectorAll('#phone-ben .note:not(.gone)').length === 0")


def layout(world, page):
    """No screen is too narrow for the page, no text too faint, no button without a name."""
    for width in (360, 820, 1280, 1920):
        for dark in (False, True):
            page.tab.resize(width, 900, dark)
            found = page.tab.value(JUDGE)
            # A phone's status bar lies over its app's frame, which is no ancestor.
            found["faint"] = [text for text in found["faint"] if not re.fullmatch(r"\s*\d\d:\d\d", text)]
            faults = [(name, found[name]) for name in ("faint", "nameless", "images") if found[name]]
            world.expect(found["wide"] <= 0 and not faults, f"{width} px, {'dark' if dark else 'light'}: {found['wide']} px too wide, {faults}")
    page.tab.resize(1280, 900)


def try_all(world):
    folder = os.path.join(world.folder, "demo")
    os.mkdir(folder)
    began = time.monotonic()
    demo = Demo(world.programs, world.binaries["tandem"], folder)
    print(f"  the demo starts in {time.monotonic() - began:.1f} s", flush=True)
    page = Page(world.browser, demo.url)
    for part in (screens, away, back, killed, twice, layout):
        part(world, page)
    frames = "[window, ...Array.from(window.frames)].flatMap((frame) => frame.seen)"
    world.expect(page.tab.value(frames) == [], f"no error, and no violation of the Content-Security-Policy: {page.tab.value(frames)}")
    code = demo.end()
    page.tab.wait("document.body.classList.contains('over')")
    world.expect(code == 0 and demo.folders() == [], f"Ctrl-C ends it with {code}, its folder is gone, and the page says so")
    page.tab.close()
