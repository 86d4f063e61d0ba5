"""The companion of pusher-js: the hub knows which pages are on the screen, and pushes to who has none there."""

import json
import time

import wire

# The state travels over the socket or as a beacon, and is in force when the next event is published.
SETTLE_SECONDS = 1.5
# For so long after its start the hub counts everybody absent as on the way back.
BOOT_SECONDS = 31


def publish(world, channel):
    world.number += 1
    body = json.dumps({"name": "news", "channels": [channel], "data": json.dumps({"n": world.number})}).encode()
    status, answer = world.caller.call(wire.signed("POST", f"/apps/{wire.APP}/events", body))
    assert status == 200, (status, answer)
    return world.number


def told(world, person, tabs, wanted, text):
    """Publishes once: whether it is pushed is as wanted, and a page in front reads it."""
    time.sleep(SETTLE_SECONDS)
    n = publish(world, person["channel"])
    if not wanted:
        tabs[0].wait(f"told.includes({n})")
    is_pushed = n in world.pushes(person["device_token"])
    world.expect(is_pushed == wanted, f"{text}: {'pushed' if wanted else 'read, and not pushed'}")


def try_all(world):
    ana, ben = world.people("companion", "ana", "ben")
    first = world.open(ana)
    told(world, ana, [first], False, "a page in front")
    world.open(ben)
    told(world, ana, [first], True, "a page behind another")
    first.show()
    told(world, ana, [first], False, "the page in front again")
    second = world.open(ana)
    told(world, ana, [second], False, "two pages of a person, one in front")
    second.close()
    first.show()
    told(world, ana, [first], False, "the other one of them, after its sibling was closed")

    push = next(one for one in world.gateways.requests if one["token"] == ana["device_token"])
    world.expect(first.value(f"companion.received({json.dumps(push['nid'])})") is True, "a notification is confirmed by its nid")
    world.expect(first.value("companion.received('00000000000000000000000000000000')") is False, "another id is refused")
    ana["device_token"] = f"ana2:APA91b{'y' * 120}"
    world.expect(first.value(f"companion.pushToken({json.dumps(ana['device_token'])})") is True, "a new push token is registered")
    world.open(ben)
    told(world, ana, [first], True, "the next push goes to the new token")
    first.show()
    first.close()
    time.sleep(max(0, world.started + BOOT_SECONDS - time.monotonic()))
    told(world, ana, [], True, "a page that was closed")
    again = world.open(ana)
    world.expect(again.value("companion.pushToken(null)") is True, "notifications are declined")
    again.close()
    time.sleep(SETTLE_SECONDS)
    n = publish(world, ana["channel"])
    world.expect(n not in world.pushes(ana["device_token"]), "who declined gets no push")
