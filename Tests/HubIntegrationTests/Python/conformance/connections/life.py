"""Slow readers and restarts (C28, C29; docs/protocol.md, 1.7 and 2.11)."""

import asyncio
import re
import signal
import time

from client import SUCCEEDED, Client, Ending, Wire
from hub import App, IS_SLOW_BUILD, PATIENCE, equal, expect
from channels.presence import Roster


async def c28_slow_reader(s):
    """A client that stops reading costs little, is closed with 4100, and is noticed by nobody else."""
    main = s.hub.apps["main"]
    # A reader that is stuck answers no PING either. Silence must not end it first, however long a busy machine takes to fill its queue.
    hub = await s.own_hub({"main": App(main.id, main.key, main.secret, {**main.settings, "ping_interval": "10m"})})
    slow = await Wire.open(hub, receive_buffer=4096)
    try:
        slow.say("pusher:subscribe", {"channel": "c28"})
        expect(SUCCEEDED.encode() in (await slow.frame())[1])
        healthy = [await s.client(hub=hub) for _ in range(2)]
        for client in healthy:
            await client.subscribe("c28")
        before, published = hub.resident_kilobytes(), 0
        batch = {"batch": [{"channel": "c28", "name": "bulk", "data": "x" * 10_000}] * 10}
        # The kernel's own buffers take a few megabytes first.
        while (await hub.get("/channels/c28", info="subscription_count")).json["subscription_count"] > 2:
            expect(published < 5000, "the slow reader is still there")
            equal((await hub.post("/batch_events", batch)).status, 200)
            published += 10
            # They read on, however slowly this process does.
            for client in healthy:
                await client.sync()
        for client in healthy:
            await client.event("bulk", count=published)
            await client.sync()
        # One megabyte waits at most; the rest is what allocators keep, and a sanitizer's keeps far more.
        room = 32 * 1024 * (10 if IS_SLOW_BUILD else 1)
        expect(hub.resident_kilobytes() - before < room, f"{hub.resident_kilobytes() - before} kB more")
        # Whoever reads on finds whole frames and at their end the reason. Here the hub's queue empties into the library, which holds the rest
        # for longer than an ending connection may take otherwise.
        slow.reader._limit = 4096
        for number in range(70):
            await slow.frame()
            await asyncio.sleep(0.3 if number >= 30 else 0)
        slow.reader._limit = 1 << 20
        ending = await Ending.of(slow, timeout=PATIENCE * 2)
        equal((ending.errors, ending.close_code), ([4100], 4100))
    finally:
        await slow.close()


async def c29_restart(s):
    """Two hundred clients are sent away a few at a time, come back to the next process, and see each other."""
    count = 200
    hub = await s.own_hub({"main": s.hub.apps["main"]})
    channels = [f"presence-c29-{number % 4}" for number in range(count)]

    async def join(port_of, number):
        while True:
            try:
                client = await Client.open(port_of)
                break
            except OSError:
                await asyncio.sleep(0.05)
        await client.send(client.subscription(channels[number], user=str(number)))
        await client.event(SUCCEEDED)
        return client

    clients = await asyncio.gather(*(join(hub, number) for number in range(count)))
    began = time.monotonic()
    ending = asyncio.ensure_future(hub.end(signal.SIGTERM))
    equal({await client.closed() for client in clients}, {4200})
    equal({tuple(client.errors()) for client in clients}, {(4200,)})
    equal(await ending, 0)
    expect(time.monotonic() - began < PATIENCE, "the end took too long")
    # By the hub's own clock: a busy machine lets this process see everything at once.
    told = re.search(r"clients=(\d+) milliseconds=(\d+) steps=(\d+) .*clients were told", hub.log.read_text())
    expect(told, "the log does not tell how the clients were sent away")
    clients_told, milliseconds, steps = map(int, told.groups())
    expect(clients_told == count and milliseconds > 250 and steps > 10, told[0])
    again = await s.own_hub({"main": s.hub.apps["main"]}, port=hub.port)
    back = await asyncio.gather(*(join(again, number) for number in range(count)))
    equal(len({client.socket_id for client in back} & {client.socket_id for client in clients}), 0)
    for number, client in enumerate(back):
        everyone = {str(other) for other in range(count) if channels[other] == channels[number]}
        await Roster(client, channels[number]).becomes(everyone)
    for channel in set(channels):
        equal((await again.get(f"/channels/{channel}", info="user_count")).json, {"occupied": True, "user_count": count // 4})
    await asyncio.gather(*(client.finish() for client in back))


async def c29_socket_ids_of_another_life(s):
    """After a restart no socket id names a connection of the process before."""
    hub = await s.own_hub({"main": s.hub.apps["main"]})
    old = await Client.open(hub)
    await hub.end(signal.SIGKILL)
    again = await s.own_hub({"main": s.hub.apps["main"]}, port=hub.port)
    new = await s.client(hub=again)
    await new.subscribe("c29-exclusion")
    expect(new.socket_id != old.socket_id)
    await again.publish("c29-exclusion", "told", socket_id=old.socket_id)
    await new.event("told")
