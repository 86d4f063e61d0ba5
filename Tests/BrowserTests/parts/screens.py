"""Each screen of the console with 0, 1 and 10,000 rows, wide and narrow, light and dark; every name in them is hostile."""

import urllib.parse

import rows
from page import Page

PERSON = urllib.parse.quote(rows.name(0), safe="")
SCREENS = {
    "now": ("#/1/now", "Push lanes"), "events": ("#/1/events", "No events yet"), "event": (f"#/1/event/{rows.EVENT}", "no recipients"),
    "people": ("#/1/people", "Who?"), "person": (f"#/1/person/{PERSON}", "Nothing yet"), "channels": ("#/1/channels", "No channel is occupied"),
    "channel": ("#/1/channel/presence-quiz-monday", "roster is empty"), "live": ("#/1/live", "Listening"),
    "letters": ("#/1/letters", "No dead letters"), "try": ("#/1/try/presence-quiz-monday/go", "Try it"), "link": ("#/link/event", "no recipients"),
    "link-person": ("#/link/person", "Nothing yet"),
}
VIEWS = (("wide", 1280, 860, "light"), ("narrow", 360, 740, "dark"))
COUNTS = (0, 1, 10_000)
# Rows that a table of any length may have in the document.
DRAWN_MAX = 200
WHOLE = {"event": 10_001, "channels": 10_001, "channel": 10_001, "live": 10_001, "letters": 10_001, "link": 10_001}


def try_all(world):
    table = rows.Rows(0)
    server = rows.serve(world.hub.port, table)
    try:
        for count in COUNTS:
            table.__init__(count)
            for view, width, height, scheme in VIEWS:
                page = Page(world.browser, width, height, scheme)
                for name in SCREENS:
                    screen(world, page, f"http://127.0.0.1:{server.server_port}/console/", name, count, view)
                page.close()
    finally:
        server.shutdown()


def screen(world, page, root, name, count, view):
    address, empty = SCREENS[name]
    page.go(root + address)
    if name == "try":
        page.click("Who would get it?")
        page.wait_text("Recipients")
    if count == 0:
        page.wait_text(empty)
    elif name in WHOLE:
        page.wait(f"[...document.querySelectorAll('[aria-rowcount]')].some((one) => Number(one.getAttribute('aria-rowcount')) >= {count + 1 if count > 1 else 2})")
    if name in ("event", "channels", "letters") and count > 1:
        scrolled(world, page, name)
    page.picture(f"{name}-{count}-{view}")
    found, strangers = page.judge(), page.strangers()
    faults = [text for holds, text in (
        (not found["seen"], f"errors {found['seen']}"), (not strangers, f"asks {strangers}"), (found["hacked"] is None, "ran foreign code"),
        (not found["images"] and found["scripts"] == 1, f"foreign images {found['images']} or scripts"), (found["wide"] <= 0, f"is {found['wide']} px too wide"),
        (not found["faint"], f"faint text {found['faint']}"), (not found["nameless"], f"controls without a name {found['nameless']}"),
        (found["headings"] == 1 and found["mains"] == 1, f"{found['headings']} headings, {found['mains']} mains"),
        (found["rows"] <= DRAWN_MAX, f"{found['rows']} rows in the document")) if not holds]
    world.expect(not faults, f"{name} with {count} rows, {view}" + "".join(f": {fault}" for fault in faults))


def scrolled(world, page, name):
    """The last of ten thousand rows by one key."""
    page.value("document.querySelector('[role=grid]').focus()")
    page.press("End")
    page.wait("document.querySelector('[role=grid] [aria-rowindex=\"10001\"]') !== null")
    page.press("Home")
    page.wait("document.querySelector('[role=grid] .active[aria-rowindex=\"2\"]') !== null")
