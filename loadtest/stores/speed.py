"""PostgreSQL beside SQLite on the same disk, in turns: deciding, pushes, round trips, and what an idle hub asks."""

import statistics
import threading
import time

from common.output import Report, say, setting
from world import psql

RECIPIENTS = 10_000
DECIDED_RATIO_MAX, SLOW_WAY_MS_MAX, PUSH_RATIO_MIN, ROUND_TRIPS_MAX, IDLE_MAX = 2.0, 250, 0.7, 2.0, 6.0
IDLE_SECONDS, IDLE_WINDOWS = 20, 3
WRITER = 'tandem_postgres_round_trips_total{link="writer"}'
OTHERS = 'tandem_postgres_round_trips_total{link="others"}'


def answered(hub, session):
    """Milliseconds until a publish is answered."""
    began = time.monotonic()
    hub.publish(session)
    return (time.monotonic() - began) * 1000


def settled(hub, session, devices):
    """Pushes a second, from the publish to the last that is accepted and written down."""
    target, began = hub.accepted + devices, time.monotonic()
    hub.publish(session)
    hub.wait_accepted(target, 300)
    return devices / (time.monotonic() - began)


def trips(hub, work):
    """Round trips of the writer, and its transactions, while `work` runs."""
    before = hub.metrics()
    work()
    after = hub.metrics()
    return after[WRITER] - before[WRITER], after["tandem_store_transactions_total"] - before["tandem_store_transactions_total"]


def at_once(hub, session, count):
    """Publishes of so many backends at once."""
    threads = [threading.Thread(target=hub.publish, args=(session, number)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def spread(values, digits=0):
    return f"{statistics.median(values):,.{digits}f} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"


def measure(world):
    rounds, devices = setting("ROUNDS", 3), setting("DEVICES", 100_000)
    report = Report(58, 30, 10)
    hubs = {"SQLite": world.hub("sqlite"), "PostgreSQL": world.hub("postgres", world.address)}
    for hub in hubs.values():
        hub.prepare({"near": RECIPIENTS, "crowd": devices}, {"quiet": RECIPIENTS, "one": 1})
    for session, what in (("quiet", "without a device"), ("near", "with a push each")):
        times = {name: [] for name in hubs}
        for place in range(rounds + 1):
            for name, hub in hubs.items():
                target = hub.accepted + (RECIPIENTS if session == "near" else 0)
                took = answered(hub, session)
                hub.wait_accepted(target, 120)
                # The first round warms up.
                if place:
                    times[name].append(took)
        report.line(f"10,000 recipients {what}, answered: SQLite, ms", spread(times["SQLite"]))
        report.line("  PostgreSQL, ms", spread(times["PostgreSQL"]))
        ratio = statistics.median(times["PostgreSQL"]) / statistics.median(times["SQLite"])
        report.line("  ratio", f"{ratio:.2f}", f"<= {DECIDED_RATIO_MAX}", ratio <= DECIDED_RATIO_MAX)
    rates = {name: [] for name in hubs}
    for _ in range(rounds):
        for name, hub in hubs.items():
            rates[name].append(settled(hub, "crowd", devices))
    report.line(f"{devices:,} pushes accepted and settled, SQLite, a second", spread(rates["SQLite"]))
    report.line("  PostgreSQL, a second", spread(rates["PostgreSQL"]))
    ratio = statistics.median(rates["PostgreSQL"]) / statistics.median(rates["SQLite"])
    report.line("  ratio", f"{ratio:.2f}", f">= {PUSH_RATIO_MIN}", ratio >= PUSH_RATIO_MIN)
    hub = hubs["PostgreSQL"]
    for what, work in (
            ("one publish to one person", lambda: hub.publish("one")),
            ("one publish to 10,000 people", lambda: hub.publish("quiet")),
            ("a batch of 10 publishes", lambda: hub.publish_batch("one", 10)),
            ("64 publishes of 64 backends", lambda: at_once(hub, "one", 64))):
        count, transactions = trips(hub, work)
        most = ROUND_TRIPS_MAX * transactions
        report.line(f"round trips / transactions: {what}", f"{count:.0f} / {transactions:.0f}", "<= 2 each", 0 < count <= most)
    idle(report, hub)
    hub.stop()
    slow = world.hub("slow", world.proxied(1))
    slow.start()
    slow.publish("quiet")
    for session, what in (("quiet", "without a device"), ("near", "with a push each")):
        times = []
        for _ in range(rounds):
            target = slow.accepted + (RECIPIENTS if session == "near" else 0)
            times.append(answered(slow, session))
            slow.wait_accepted(target, 120)
        middle = statistics.median(times)
        report.line(
            f"10,000 recipients {what}, 1 ms each way, ms", spread(times), f"<= {SLOW_WAY_MS_MAX}", middle <= SLOW_WAY_MS_MAX)
    return report


def idle(report, hub):
    """What a hub without clients asks."""
    def transactions():
        return int(psql(hub.address, "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()")[0][0])

    # Counters of the server are about a second late. Its own upkeep after the rounds before counts in some of the windows.
    time.sleep(5)
    windows = []
    for _ in range(IDLE_WINDOWS):
        before, was, began = hub.metrics(), transactions(), time.monotonic()
        time.sleep(IDLE_SECONDS)
        after, now, seconds = hub.metrics(), transactions(), time.monotonic() - began
        trips = (after[WRITER] + after[OTHERS] - before[WRITER] - before[OTHERS]) / seconds
        windows.append(((now - was) / seconds, trips))
    count, trips = min(windows)
    report.line("idle: transactions a second, by the server", f"{count:.1f}", f"<= {IDLE_MAX:.0f}", count <= IDLE_MAX)
    report.line("  round trips a second, by the hub", f"{trips:.1f}")
