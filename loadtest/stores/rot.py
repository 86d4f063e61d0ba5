"""Does the store get slow while somebody holds an old snapshot? Paced pushes, with and without such a session."""

import os
import subprocess
import threading
import time

from common.output import Report, say, setting
from world import psql

TARGET, MEMBERS, SESSIONS, THREADS = 2_000, 100, 40, 16
RATE_RATIO_MIN, P99_RATIO_MAX, DEAD_MAX = 0.95, 1.5, 10_000
DEAD = "SELECT relname, n_dead_tup FROM pg_stat_user_tables WHERE schemaname = 'tandem' AND n_dead_tup > 0 ORDER BY n_dead_tup DESC"


class Snapshot:
    """A session that holds a snapshot of now."""

    def __init__(self, address):
        self.process = subprocess.Popen(
            ["psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--dbname", address], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, bufsize=1)
        self.process.stdin.write("BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT 'held ' || count(*) FROM tandem.event;\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline().startswith("held ")

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)


def paced(hub, seconds):
    """Publishes at a steady pace, whatever the answers take; returns pushes settled a second, and milliseconds of all publishes."""
    count, every = int(seconds * TARGET / MEMBERS), MEMBERS / TARGET
    took, lock, place = [], threading.Lock(), [0]
    first, began = hub.accepted, time.monotonic()

    def work():
        while True:
            with lock:
                number = place[0]
                place[0] += 1
            if number >= count:
                return
            due = began + number * every
            time.sleep(max(0, due - time.monotonic()))
            hub.publish(f"room{number % SESSIONS}", number)
            with lock:
                took.append((time.monotonic() - due) * 1000)

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    hub.wait_accepted(first + count * MEMBERS, 300)
    return count * MEMBERS / (time.monotonic() - began), sorted(took)


def measure(world):
    seconds = setting("SECONDS_EACH", 600)
    report = Report(58, 30, 10)
    hub = world.hub("postgres", world.address)
    hub.prepare({f"room{number}": MEMBERS for number in range(SESSIONS)})
    paced(hub, 5)
    found = {}
    for name in ("without", "with"):
        snapshot = Snapshot(world.address) if name == "with" else None
        rate, took = paced(hub, seconds)
        time.sleep(2)
        dead = [(row[0], int(row[1])) for row in psql(world.address, DEAD)]
        if snapshot:
            snapshot.close()
        p99 = took[len(took) * 99 // 100]
        found[name] = rate, p99
        say(f"  {name} a snapshot held for {seconds} s, load {os.getloadavg()[0]:.1f}")
        report.line("pushes accepted and settled a second", f"{rate:,.0f}")
        report.line("publish to answer, ms: p50, p99, longest", f"{took[len(took) // 2]:.0f}, {p99:.0f}, {took[-1]:.0f}")
        total = sum(count for _, count in dead)
        report.line("dead rows of all tables", f"{total:,}", f"<= {DEAD_MAX:,}", total <= DEAD_MAX)
        report.line("  most of them", ", ".join(f"{table} {count:,}" for table, count in dead[:4]))
    ratio = found["with"][0] / found["without"][0]
    report.line("ratio of the rates", f"{ratio:.2f}", f">= {RATE_RATIO_MIN}", ratio >= RATE_RATIO_MIN)
    ratio = found["with"][1] / found["without"][1]
    report.line("ratio of the p99", f"{ratio:.2f}", f"<= {P99_RATIO_MAX}", ratio <= P99_RATIO_MAX)
    return report
