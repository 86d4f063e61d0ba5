"""One event to 10,000 registered recipients: how long until it is decided, committed and answered, and at what CPU per recipient."""

import json
import os
import queue
import random
import statistics
import threading
import time

import wire
from programs import Client, Hub

ROUNDS = 5
THREADS = 12


def register(port, definition, session, people):
    """Makes the session and has everybody join it, as apps do; fills in user, token and channel."""
    code = f"{session}code"
    body = json.dumps({"definition": definition, "join_code": code}).encode()
    status, answer = wire.Caller(port).call(wire.signed("PUT", f"/apps/{wire.APP}/sessions/{session}", body))
    if status not in (200, 201):
        raise SystemExit(f"one-surface: the session was refused: {status} {answer}")
    waiting, failures = queue.SimpleQueue(), []
    for person in people:
        waiting.put(person)

    def work():
        caller = wire.Caller(port, timeout=30)
        while not failures:
            try:
                person = waiting.get_nowait()
            except queue.Empty:
                break
            body = json.dumps({
                "name": person["name"], "email": person["email"], "device_token": person["device_token"],
                "device_platform": "ios" if person["ios"] else "android"}).encode()
            try:
                status, answer = caller.call(wire.request("POST", f"/api/scenarios/sessions/{code}/join", body))
            except OSError as error:
                status, answer = 0, str(error)
            if status != 200:
                failures.append(f"one-surface: a join was refused: {status} {answer}")
                break
            person.update(user=answer["user_id"], token=answer["token"], channel=answer["channel"])
        caller.close()

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise SystemExit(failures[0])
    return people[0]["channel"]


def measure(programs, binary, folder, channels, gateways, recipients, live, say):
    """Returns (median ms, [ms], user CPU microseconds per recipient, live)."""
    hub = Hub(programs, binary, folder, channels, gateways, name="decide")
    hub.start()
    draw = random.Random(1)
    people = [
        {"name": f"Person {index}", "email": f"p{index}@example.com", "ios": index % 2 == 0, "client": "swift", "declares": True,
         "device_token": f"{draw.getrandbits(256):064x}" if index % 2 == 0 else f"fcm{index}:{draw.getrandbits(400):x}",
         "signs_in": True, "connects": True, "timeline": []} for index in range(recipients)]
    say(f"  {recipients:,} join")
    channel = register(hub.port, "arena", "decide", people)
    client = Client(programs, folder, "-decide", {"ports": hub.ports, "seed": 1, "spread": 3, "people": people[:live]})
    wait_subscribed([client], live, 60)
    publisher = wire.Caller(hub.port, timeout=30)
    times, cpu = [], 0.0
    for number in range(-1, ROUNDS):
        body = json.dumps({"name": "alarm", "channels": [channel], "data": json.dumps({"n": 100_000 + number})}).encode()
        request = wire.signed("POST", f"/apps/{wire.APP}/events", body)
        before, start = hub.cpu(), time.perf_counter()
        status, answer = publisher.call(request)
        elapsed, after = time.perf_counter() - start, hub.cpu()
        if status != 200:
            raise SystemExit(f"one-surface: a publish was refused: {status} {answer}")
        # The first one warms the pages up.
        if number >= 0:
            times.append(elapsed * 1000)
            cpu += after - before
        gateways.wait_quiet(30, quiet=0.7)
    client.finish()
    hub.kill()
    return statistics.median(times), times, cpu / ROUNDS / recipients * 1e6, live


def wait_subscribed(clients, count, seconds):
    """Until so many subscriptions are in the clients' logs."""
    deadline, found = time.monotonic() + seconds, 0
    while time.monotonic() < deadline:
        found = 0
        for client in clients:
            if os.path.exists(client.log):
                with open(client.log) as file:
                    found += sum(line.startswith("S\t") for line in file)
        if found >= count:
            return
        time.sleep(0.3)
    raise SystemExit(f"one-surface: only {found} of {count} clients were subscribed after {seconds} s")
