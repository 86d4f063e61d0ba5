"""What an operator does in the console of a real hub, click by click, and what comes of it at the hub and at the gateways."""

import json

import stage
from stage import call, eventually


def try_all(world):
    people = world.stage()
    page = stage.operator(world)
    forecast(world, page)
    published(world, page)
    test(world, page, people)
    again(world, page, people)
    letters(world, page, people)
    for what, where in (("event", ("event", stage.publish(world))), ("person", ("person", people.ana["user"]))):
        shared(world, page, what, where)
    forget(world, page, people)
    world.expect(not page.judge()["seen"], f"none of it met an error {page.judge()['seen'] or ''}")
    page.close()


def newest(world):
    return call(world, "GET", "/events", limit=1)["events"][0]["event_id"]


def fill(page, data):
    page.value("document.querySelector('textarea').select()")
    page.type(data)


def forecast(world, page):
    before = newest(world)
    stage.visit(world, page, "try", stage.CHANNEL, "news")
    fill(page, "{\"n\": 1}")
    page.click("Who would get it?")
    page.wait_text("Nothing was stored or sent.")
    body = {"name": "news", "channel": stage.CHANNEL, "data": "{\"n\": 1}", "dry_run": True}
    plan = call(world, "POST", "/events", body)["channels"][stage.CHANNEL]
    shown, wanted = page.rows(2), [[row["user"], row["surface"]] for row in plan["deliveries"]]
    world.expect(shown == wanted, f"Try it says who would get it how, as the API does: {shown}")
    page.picture("real-try")
    world.expect(newest(world) == before, "and publishes nothing")


def published(world, page):
    before = newest(world)
    page.click("Publish", "main button")
    page.click("Cancel", "dialog button")
    page.wait("document.querySelector('dialog') === null")
    world.expect(newest(world) == before, "a publish that is cancelled is none")
    page.click("Publish", "main button")
    page.click("Publish", "dialog button")
    page.click("See who gets it")
    page.wait("document.querySelector('main[data-ready=event]') !== null")
    event = newest(world)
    world.expect(event != before and event in page.value("location.hash"), "a publish leads to its event")


def test(world, page, people):
    stage.visit(world, page, "person", people.ben["user"])
    page.click("Send a test")
    page.click("Send", "dialog button")
    page.wait_text("On its way to 1 device.")
    arrived = lambda: any(one["token"] == people.ben["device_token"] and one["n"] == -1 for one in world.gateways.requests)
    world.expect(eventually(arrived), "a test reaches the person's device")


def state(world, event, user):
    return call(world, "GET", f"/events/{event}/deliveries", user=user)["deliveries"][0]["state"]


def failed(world, person):
    """An event whose push to the person failed."""
    stage.fail_once(world, person["device_token"])
    event = stage.publish(world)
    assert eventually(lambda: state(world, event, person["user"]) == "failed"), "the push did not fail"
    return event


def again(world, page, people):
    event = failed(world, people.ben)
    stage.visit(world, page, "person", people.ben["user"], event)
    page.wait_text("did not get it")
    page.picture("real-person-failed")
    page.click("Resend")
    page.wait_text("1 push is due again.")
    world.expect(eventually(lambda: state(world, event, people.ben["user"]) == "pushed"), "a failed push that is sent again arrives")
    stage.visit(world, page, "person", people.ben["user"], event)
    page.wait_text("got it as a notification")


def letters(world, page, people):
    event = failed(world, people.ben)
    stage.visit(world, page, "letters")
    page.wait_text("INVALID_ARGUMENT")
    page.picture("real-letters")
    page.click("Send again", "main table button")
    page.click("Send again", "dialog button")
    page.wait_text("1 of 1 pushes are due again.")
    world.expect(eventually(lambda: state(world, event, people.ben["user"]) == "pushed"), "the dead letters of a cause are sent again")
    event = failed(world, people.ben)
    stage.visit(world, page, "letters")
    page.click("Dismiss", "main table button")
    page.click("Dismiss", "dialog button")
    page.wait_text("1 pushes are dismissed.")
    left = call(world, "GET", "/dead-letters")["dead_letters"]
    world.expect(not left and state(world, event, people.ben["user"]) == "cancelled", "or dismissed")


def shared(world, page, what, where):
    stage.visit(world, page, *where)
    page.click("Link for an hour")
    page.wait("document.querySelector('dialog input')?.value")
    link = page.value("document.querySelector('dialog input').value")
    if what == "event":
        page.picture("real-link-dialog")
    page.press("Escape")
    page.wait("document.querySelector('dialog') === null")
    guest = stage.stranger(world)
    guest.go(link)
    guest.wait_text("Read only.")
    guest.picture(f"real-link-{what}")
    faults = stage.clean(guest)
    grid = guest.value("document.querySelector('[role=grid]').getAttribute('aria-rowcount')")
    world.expect(int(grid) > 1 and not faults, f"a link to one {what} is read without a password {faults or ''}")
    refused = [stage.status(guest, "GET", path) for path in ("api/session", "api/apps", "api/apps/1/events")]
    world.expect(set(refused) == {401}, f"and opens nothing else: {refused}")
    guest.go(link[:-2])
    guest.wait_text("This link has expired, or is not whole.")
    world.expect(True, "a link that is not whole opens nothing")
    guest.close()


def forget(world, page, people):
    user = people.cleo["user"]
    stage.visit(world, page, "person", user)
    page.click("Forget", "main button")
    page.click("Forget it", "dialog button")
    page.wait_text("The device is forgotten.")
    world.expect(call(world, "GET", f"/users/{user}/devices")["devices"] == [], "a device that is forgotten is gone")
    page.wait_text("No device")
