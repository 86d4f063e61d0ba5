"""What the console shows of a real hub: the answer in two steps, the API's numbers, hostile names, and all of it by keyboard."""

import json
import time

import stage
from stage import call

# The text of a file that the page saves.
KEEP = """
  window.saved = null;
  const make = URL.createObjectURL;
  URL.createObjectURL = (blob) => { blob.text().then((text) => { saved = text; }); return make(blob); };
"""
ACTIVE = "document.activeElement.getAttribute('role') === 'grid'"


def try_all(world):
    people = world.stage()
    event = stage.publish(world)
    settled = lambda: call(world, "GET", f"/events/{event}/deliveries", info="summary")["summary"]["states"]
    stage.eventually(lambda: not {"awaited", "pushing"} & settled().keys())
    page = stage.operator(world)
    two_steps(world, page, people)
    numbers(world, page, event)
    keyboard(world, page, people)
    exported(world, page, event)
    page.close()
    for view, size in (("wide", {}), ("narrow", {"width": 360, "height": 740, "scheme": "dark"})):
        page = stage.operator(world, **size)
        every_screen(world, page, people, event, view)
        page.close()


def two_steps(world, page, people):
    """Did she get it? And if nobody could be pushed to when the wait ended, why not."""
    seconds = stage.seconds_to_answer(world, page, "anne", "got it: a receipt came")
    isHers = people.ana["user"] in page.value("location.hash")
    world.expect(isHers, f"\"did she get it\" takes a name and a click, and {seconds:.2f} s of the machine")
    page.picture("real-person")
    row = {"state": "undeliverable", "decision": "await_receipt", "known": "live", "outcome": "no device", "outcome_ms": 2000, "pushes": []}
    found = page.value(f"import('./story.js').then(({{ story }}) => story('nora', {{}}, {json.dumps(row)})[0])")
    wanted = "nora did not get it: the app was on the screen, no receipt came within 2 s, and no device is registered."
    world.expect(found == wanted, f"the answer names the wait and its outcome: {found}")


def numbers(world, page, event):
    """Each number is the API's."""
    stage.visit(world, page, "event", event)
    trail = call(world, "GET", f"/events/{event}/deliveries", info="summary")
    shown = page.pairs(".facts div")
    isSame = (shown["Recipients"], shown["Number"]) == (str(trail["recipients"]), str(trail["event"]["sequence"]))
    world.expect(isSame, f"an event's numbers are the API's: {shown}")
    states = page.pairs("button[aria-pressed]")
    world.expect(states == {state: str(count) for state, count in trail["summary"]["states"].items()}, f"as are its states: {states}")
    wanted = [[row["user"], row["state"], row["known"], row["decision"]] for row in trail["deliveries"]]
    world.expect(page.rows(4) == wanted, f"and its rows: {page.rows(4)}")
    stage.visit(world, page, "channel", stage.CHANNEL)
    page.wait_text("of 5 on the roster are there")
    now = call(world, "GET", f"/channels/{stage.CHANNEL}", info="user_count,subscription_count")
    shown = page.pairs(".facts div")
    isSame = (shown["Users"], shown["Subscriptions"]) == (str(now["user_count"]), str(now["subscription_count"]))
    world.expect(isSame, f"and a channel's: {shown}")


def tab_to(page, holds):
    """Presses Tab until something has the focus."""
    for _ in range(60):
        page.press("Tab")
        if page.value(holds):
            return True
    return False


def keyboard(world, page, people):
    stage.visit(world, page, "events")
    reached = tab_to(page, ACTIVE)
    page.press("ArrowDown", "Enter")
    page.wait("document.querySelector('main[data-ready=event]') !== null")
    reached &= tab_to(page, ACTIVE)
    page.press("End", "Home", "Enter")
    page.wait("document.querySelector('main[data-ready=person]') !== null")
    reached &= tab_to(page, "document.activeElement.textContent === 'Send a test'")
    page.press("Enter")
    page.wait("document.querySelector('dialog[open]') !== null")
    page.press("Escape")
    page.wait("document.querySelector('dialog') === null")
    world.expect(reached, "an event, a person and an action are reached by keyboard alone")
    page.press("/")
    page.type("bert")
    page.wait("document.querySelector('#found [role=option]')?.textContent.includes('bert')")
    page.press("ArrowDown", "ArrowUp", "Enter")
    page.wait(f"location.hash.endsWith('/person/{people.ben['user']}')")
    world.expect(True, "as is a person by search")


def exported(world, page, event):
    """What would be a formula in a spreadsheet is a text in the file."""
    stage.visit(world, page, "event", event)
    page.value(KEEP)
    page.click("CSV")
    page.wait("saved !== null")
    lines = page.value("saved").split("\r\n")
    risky = [cell for line in lines for cell in line.split('","') if cell.lstrip('"')[:1] in ("=", "+", "-", "@")]
    isWhole = len(lines) == 7 and any("'" + stage.DORA in line for line in lines)
    world.expect(isWhole and not risky, f"a CSV file has every recipient, and no formula: {len(lines)} lines {risky or ''}")


def every_screen(world, page, people, event, view):
    screens = {
        "now": ("now",), "events": ("events",), "event": ("event", event), "people": ("people",),
        "person": ("person", people.ana["user"], event),
        "person-hostile": ("person", stage.HOSTILE, event), "person-without": ("person", stage.DORA, event), "channels": ("channels",),
        "channel": ("channel", stage.CHANNEL), "live": ("live",), "letters": ("letters",), "try": ("try", stage.CHANNEL, "news")}
    for name, where in screens.items():
        stage.visit(world, page, *where)
        if name == "people":
            page.wait("document.activeElement.type === 'search'")
            page.type(stage.HOSTILE[:4])
            page.wait("document.querySelector('[role=grid] [aria-rowindex=\"2\"]') !== null")
        if name == "channel":
            page.wait_text("on the roster are there")
        if name == "now":
            time.sleep(4.5)
        page.picture(f"real-{name}-{view}")
        faults = stage.clean(page)
        world.expect(not faults, f"{name} of a real hub, {view}" + "".join(f": {fault}" for fault in faults))
