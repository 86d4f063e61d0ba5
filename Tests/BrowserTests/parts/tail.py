"""The live tail of a real hub: how long from a publish to its pixels, and what its filters do."""

import json
import os
import time

import stage

PUBLISHES, ROUNDS, MILLISECONDS = 40, 3, 300
# When each event was painted for the first time: a frame after its row came into the document.
WATCH = """
  window.painted = {};
  new MutationObserver(() => {
    const found = [...document.querySelectorAll("[role=grid] a[href*='/event/']")].map((one) => one.hash.split("/").pop());
    const fresh = found.filter((id) => !(id in painted));
    if (fresh.length) requestAnimationFrame(() => setTimeout(() => { for (const id of fresh) painted[id] ??= Date.now(); }));
  }).observe(document.body, { childList: true, subtree: true });
"""


def try_all(world):
    people = world.stage()
    page = stage.operator(world, "live")
    page.wait_text("listening")
    page.value(WATCH)
    best = min((measured(world, page) for _ in range(ROUNDS)), key=lambda times: times[1])
    # A time is a promise of a quiet machine: `GATES=1` holds it.
    isHeld = best[1] <= MILLISECONDS or not os.environ.get("GATES")
    world.expect(isHeld, f"from publish to pixel {best[0]:.0f} ms at the median, {best[1]:.0f} ms at p95 of {PUBLISHES}")
    kinds(world, page, people)
    filters(world, page, people)
    world.expect(not stage.clean(page), f"the live tail is well {stage.clean(page) or ''}")
    page.close()


def measured(world, page):
    """Median and 95th percentile in milliseconds."""
    sent = {}
    for number in range(PUBLISHES):
        at = time.time() * 1000
        sent[stage.publish(world)] = at
        # No two come at the same place of the page's questions.
        time.sleep(0.15 + number % 7 * 0.023)
    page.wait(f"{json.dumps(list(sent))}.every((id) => id in painted)")
    painted = page.value("painted")
    times = sorted(painted[event] - at for event, at in sent.items())
    print(f"        {times[len(times) // 2]:.0f} ms, {times[int(len(times) * 0.95) - 1]:.0f} ms", flush=True)
    return times[len(times) // 2], times[int(len(times) * 0.95) - 1]


def kinds(world, page, people):
    """Everything that happens to people is told: who comes, what is decided, read and pushed, and who goes."""
    guest = world.open(people.cleo)
    stage.publish(world)
    kinds = lambda: {row[1] for row in page.rows()}
    stage.eventually(lambda: kinds() >= {"join", "event", "decision", "receipt", "push"})
    guest.close()
    people.page.show()
    world.expect(stage.eventually(lambda: kinds() >= {"join", "leave"}), "joins and leaves are told")
    page.picture("real-live")
    found = kinds()
    world.expect(found >= {"event", "decision", "receipt", "push"}, f"as are events, decisions, receipts and pushes: {sorted(found)}")


def filters(world, page, people):
    user = people.ana["user"]
    page.value("document.querySelector('[aria-label=\"User exactly\"]').focus()")
    page.type(user)
    page.press("Enter", "Tab")
    page.wait_text("Listening")
    time.sleep(0.5)
    stage.publish(world)
    stage.eventually(lambda: len(page.rows()) >= 2)
    world.expect({row[3] for row in page.rows()} == {user}, "a filter leaves one person")
    page.click("decision", "main button")
    time.sleep(0.5)
    before = len(page.rows())
    stage.publish(world)
    isTold = stage.eventually(lambda: len(page.rows()) > before)
    fresh = {row[1] for row in page.rows()[:len(page.rows()) - before]}
    world.expect(isTold and "decision" not in fresh, f"a kind that is switched off is told no more: {fresh}")
    page.click("Pause")
    before = len(page.rows())
    stage.publish(world)
    page.wait_text("Go on (")
    world.expect(len(page.rows()) == before, "a pause holds what comes")
    page.click("Go on")
    world.expect(stage.eventually(lambda: len(page.rows()) > before), "and shows it afterwards")
