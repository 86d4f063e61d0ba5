#!/usr/bin/env python3
"""Kills and stops processes that share a database, and judges who owns what and what a former owner can still commit.

    Tests/StoreTests/postgres.sh python3 Tests/StoreTests/owners.py direct|pooled STOPS

Needs `psql` and .build/debug/tandem-owner, or the program that OWNER names. `pooled` goes through PgBouncer.

Two processes share the partitions. A third comes. One is killed. Then one is stopped again and again, each time inside a transaction whose
fence has passed: others take its partitions, and it wakes. Every other transaction is a large one, whose time has not run out by then, so
that the process goes on with it. Ends with 1 if an event of a former owner appears after that, if one is
answered and not stored, if one that was seen is gone, or if a takeover needs too many looks. Seconds are printed, looks are judged: a busy
machine is slow at both.
"""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

# Looks, half a second apart: those that decide, one that begins the count, one that sees the result, and some for what happens between.
JOIN_LOOKS, KILL_LOOKS, STOP_LOOKS = 10, 8, 13
PATIENCE = 60
# Transactions take so long that a process is mostly inside one. Only large ones have pushes, and all of these have come by the end.
SLOW = """
CREATE FUNCTION tandem.slow_down() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM pg_sleep(CASE TG_LEVEL WHEN 'ROW' THEN 0.03 ELSE 1 END); RETURN NEW; END $$;
CREATE TRIGGER slow_down BEFORE INSERT ON tandem.event FOR EACH ROW EXECUTE FUNCTION tandem.slow_down();
CREATE TRIGGER slow_down AFTER INSERT ON tandem.push FOR EACH STATEMENT EXECUTE FUNCTION tandem.slow_down();
"""
mistakes = []


def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


def check(is_right, text):
    if not is_right:
        mistakes.append(text)
        print(f"  WRONG: {text}", flush=True)


def sql(text):
    done = subprocess.run(
        ["psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--field-separator", " ", "--dbname", ADDRESS, "--command", text],
        capture_output=True, text=True, check=True)
    return [line.split(" ") for line in done.stdout.splitlines() if line]


def wait(what, condition):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.01)
    sys.exit(f"owners: {what} does not come within {PATIENCE} s")


class Owner:
    """A process; its output is read from a file, so that nobody waits for a reader."""

    def __init__(self, folder, place):
        self.path = folder / f"owner-{place}"
        self.output = open(self.path, "ab")
        self.process = subprocess.Popen(
            [os.environ.get("OWNER", ".build/debug/tandem-owner")], stdout=self.output, stderr=self.output,
            env=dict(os.environ, TANDEM_STORE=ADDRESS))
        self.began = now()

    def lines(self, kind):
        with open(self.path) as file:
            return [line.split() for line in file if line.startswith(kind) and line.endswith("\n")]

    @property
    def last(self):
        """Its number, partitions, beats and failed beats; zeros before the first."""
        lines = self.lines("owns")
        return [int(word) for word in lines[-1][2:]] if lines else [0, 0, 0, 0]

    @property
    def number(self):
        return self.last[0]

    @property
    def owned(self):
        return self.last[1]

    def answered(self, since=0):
        return {line[2] for line in self.lines("answered") if int(line[1]) >= since}

    def failed(self):
        return {line[2] for line in self.lines("failed")}

    def send(self, number):
        self.process.send_signal(number)


def takeover(what, looks_max, owners, done, began):
    """Waits until `done`, and judges it by the looks of those who look."""
    before = [owner.last for owner in owners]
    wait(what, done)
    seconds = (now() - began) / 1000
    after = [owner.last for owner in owners]
    looks = max(new[2] - old[2] for new, old in zip(after, before))
    failed = max(new[3] - old[3] for new, old in zip(after, before))
    print(f"  {what}: {seconds:.1f} s, {looks} looks, {failed} failed", flush=True)
    # A failed look begins all counts anew.
    check(looks <= looks_max * (1 + failed), f"{what} took {looks} looks, at most {looks_max}")


def events():
    return {row[0] for row in sql("SELECT id FROM tandem.event")}


def is_of(event, leases):
    """Whether the event was committed under an epoch before the present one."""
    _, partition, epoch, _ = event.split(":")
    return int(epoch) < leases[int(partition)]


def stop(victim, others, is_large):
    """Stops a process in the middle of a transaction, lets others take over, and wakes it."""
    number = victim.number
    backend = f"pg_stat_activity WHERE application_name = 'tandem {number} writer'"
    for _ in range(20):
        if is_large:
            victim.send(signal.SIGUSR1)
            wait("a large transaction", lambda: sql(
                f"SELECT 1 FROM {backend} AND wait_event = 'PgSleep' AND clock_timestamp() - query_start > '0.1 s'"))
        victim.send(signal.SIGSTOP)
        began = now()
        time.sleep(0.15)
        # A stopped process sends nothing, so that its backend comes to rest.
        while ["active"] in (state := sql(f"SELECT state FROM {backend}")):
            time.sleep(0.05)
        if ["idle", "in", "transaction"] in state:
            break
        victim.send(signal.SIGCONT)
        time.sleep(0.03)
    else:
        sys.exit("owners: the process cannot be stopped inside a transaction")
    what = "a large transaction" if is_large else "a transaction"
    takeover(
        f"one is stopped inside {what}, the others have all", STOP_LOOKS, others, lambda: sum(owner.owned for owner in others) == 64, began)
    leases = {int(row[0]): int(row[1]) for row in sql("SELECT partition, epoch FROM tandem.lease")}
    seen, answered = events(), victim.answered()
    # The successors write in its partitions meanwhile.
    time.sleep(0.5)
    victim.send(signal.SIGCONT)
    beats = victim.last[2]
    wait("a woken one that looks", lambda: victim.last[2] >= beats + 3)
    wait("a woken one that has its part again", lambda: victim.owned >= 21 and victim.number == number)
    stored = events()
    late = {event for event in stored - seen if event.startswith(f"{number}:") and is_of(event, leases)}
    told = {event for event in victim.answered() - answered if is_of(event, leases)}
    check(not late, f"{len(late)} events of a former owner appeared after the takeover: {sorted(late)[:3]}")
    check(not told - seen, f"{len(told - seen)} commits of a former owner were answered after the takeover")
    check(not seen - stored, f"{len(seen - stored)} events are gone that were seen: {sorted(seen - stored)[:3]}")


def main():
    stops = int(sys.argv[2])
    print(f"{sys.argv[1]}: load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    owners = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        try:
            owners = [Owner(folder, place) for place in range(2)]
            takeover("two share the partitions", JOIN_LOOKS, owners, lambda: [o.owned for o in owners] == [32, 32], owners[0].began)
            wait("commits of both", lambda: all(owner.answered() for owner in owners))
            sql(SLOW)
            third = Owner(folder, 2)
            takeover("a third has its part", JOIN_LOOKS, owners, lambda: third.owned >= 21, third.began)
            owners.append(third)
            wait("a server that is up for long enough", lambda: float(
                sql("SELECT extract(epoch FROM clock_timestamp() - pg_postmaster_start_time())")[0][0]) > 6)
            wait("three parts", lambda: sum(owner.owned for owner in owners) == 64)
            killed = owners[0]
            killed.send(signal.SIGKILL)
            began = now()
            killed.process.wait()
            looks = KILL_LOOKS if sys.argv[1] == "direct" else STOP_LOOKS
            takeover(
                "one is killed, the others have all", looks, owners[1:], lambda: sum(owner.owned for owner in owners[1:]) == 64, began)
            owners.append(Owner(folder, 3))
            for place in range(stops):
                wait("three parts", lambda: min(o.owned for o in owners[1:]) >= 21 and sum(o.owned for o in owners[1:]) == 64)
                victim = owners[1 + place % 3]
                stop(victim, [owner for owner in owners[1:] if owner is not victim], place % 2 == 0)
            for owner in owners[1:]:
                owner.send(signal.SIGTERM)
            for owner in owners[1:]:
                check(owner.process.wait(30) == 0, f"a process ends with {owner.process.returncode}")
            stored = events()
            answered = set().union(*(owner.answered() for owner in owners))
            failed = set().union(*(owner.failed() for owner in owners))
            check(not answered - stored, f"{len(answered - stored)} commits were answered and are not stored")
            print(f"  {len(answered)} answered, {len(failed)} failed, of these {len(failed & stored)} stored before a takeover, "
                  f"{stops} stops, {len(mistakes)} mistakes", flush=True)
        finally:
            for owner in owners:
                owner.process.kill()
                owner.process.wait()
    sys.exit(1 if mistakes else 0)


ADDRESS = os.environ["TANDEM_TEST_POSTGRES" if sys.argv[1] == "direct" else "TANDEM_TEST_PGBOUNCER"]
if __name__ == "__main__":
    main()
