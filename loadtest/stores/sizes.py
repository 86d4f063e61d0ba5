"""What an event, a recipient and a push take in either store, tables and indexes."""

from common.output import Report
from world import psql

EVENTS, LARGE_EVENTS, PEOPLE, PUSHES = 2_000, 20, 10_000, 20_000


def grown(hub, work):
    """By how many bytes the store grows; a stopped hub has written everything."""
    def size():
        hub.stop()
        found = hub.bytes()
        hub.start()
        return found

    before = size()
    work()
    return size() - before


def measure(world):
    report = Report(44, 22, 10)
    for name, address in (("SQLite", None), ("PostgreSQL", world.address)):
        hub = world.hub(name, address)
        hub.prepare({"crowd": PUSHES}, {"one": 1, "quiet": PEOPLE})
        hub.publish("one")
        hub.publish("quiet")

        def pushes():
            target = hub.accepted + PUSHES
            hub.publish("crowd")
            hub.wait_accepted(target, 120)

        event = grown(hub, lambda: [hub.publish("one", number) for number in range(EVENTS)]) / EVENTS
        recipients = grown(hub, lambda: [hub.publish("quiet", number) for number in range(LARGE_EVENTS)])
        push = grown(hub, pushes) / PUSHES
        report.line(f"{name}: bytes of an event", f"{event:,.0f}")
        report.line("  of a recipient", f"{(recipients / LARGE_EVENTS - event) / PEOPLE:,.1f}")
        report.line("  of a push, with its attempt and outcome", f"{push:,.0f}")
        if address:
            for table, size, count in psql(address, """
                SELECT regexp_replace(c.relname, '_[0-9]+$', ''), sum(pg_total_relation_size(c.oid)), sum(c.reltuples)::bigint
                FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = 'tandem'::regnamespace GROUP BY 1 ORDER BY 2 DESC LIMIT 5"""):
                report.line(f"  {table}", f"{int(size) / 1e6:,.1f} MB")
        hub.stop()
    return report
