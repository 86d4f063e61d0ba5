"""The answer to "did she get it" over a trail of a million rows, on both stores: how long it takes a person with two steps."""

import contextlib
import copy
import os
import sqlite3
import subprocess
import uuid

import stage
import wire

# Name, people and events: half of the rows are of long recipient lists, half of short ones.
SESSIONS = (("crowd", 2_000, 250), ("class", 100, 5_000))
# Somebody whose push is accepted, somebody whose push fails, and somebody without a device.
ASKED = (("anne", "got it as a notification"), ("fred", "failed with"), ("nora", "no device is registered"))
SECONDS = 1.0


def try_all(world):
    stores = {"SQLite": None}
    if os.environ.get("TANDEM_TEST_POSTGRES"):
        stores["PostgreSQL"] = os.environ["TANDEM_TEST_POSTGRES"]
    else:
        print("  million: PostgreSQL is skipped: Tests/StoreTests/postgres.sh python3 -B Tests/BrowserTests million")
    for store, address in stores.items():
        large = copy.copy(world)
        large.hub = stage.Hub(
            world.programs, world.binaries["tandem"], world.folder, world.hub.channels, world.gateways, name=f"million-{store}")
        if address:
            large.hub.shared = {"TANDEM_STORE": address}
        restart(large)
        for session, people, events in SESSIONS:
            fill(large, session, people)
            event = stage.publish(large, channel=f"presence-stage-{session}")
            states = lambda: stage.call(large, "GET", f"/events/{event}/deliveries", info="summary")["summary"]["states"]
            large.expect(stage.eventually(lambda: not {"awaited", "pushing"} & states().keys(), 60), f"{session} of {store} is settled")
            large.programs.kill(large.hub.process)
            if address:
                repeat_in_postgres(address, event, events - 1)
            else:
                repeat_in_sqlite(os.path.join(large.hub.data, "tandem.db"), event, events - 1)
            restart(large)
        ask(large, store, rows_of(large.hub, address))
        large.programs.kill(large.hub.process)


def restart(large):
    large.hub.start()
    large.caller = wire.Caller(large.hub.port, timeout=60)


def fill(large, session, people):
    """A roster of its own for each session; those who are asked for are on all of them, and have their device, if any."""
    stage.call(large, "PUT", f"/sessions/{session}", {"definition": "stage"})
    for number in range(people - len(ASKED)):
        stage.call(large, "PUT", f"/sessions/{session}/participants/{session}-{number}", {"name": f"Person {number}"})
    for user, _ in ASKED:
        stage.call(large, "PUT", f"/sessions/{session}/participants/{user}", {"name": user.title()})
    for user in ("anne", "fred"):
        token = f"{user}:APA91b{'m' * 120}"
        stage.call(large, "PUT", f"/users/{user}/devices/{user}-phone", {"token": token, "platform": "android"})
        if user == "fred":
            stage.fail_once(large, token)


def repeat_in_sqlite(path, event, copies):
    """Writes the event, its recipients and pushes again, as if it had been published every hundredth of a second."""
    with contextlib.closing(sqlite3.connect(path)) as store, store:
        names = {table: [name for _, name, *_ in store.execute(f"PRAGMA table_info({table})")] for table in ("event", "fanout", "delivery")}
        names["fanout"].remove("number")
        for number in range(1, copies + 1):
            fresh = f"'{uuid.UUID(event[:24] + format(number, '012x'))}'"
            own = {"id": fresh, "event": fresh, "sequence": f"sequence + {number}", **{
                moment: f"{moment} + {10 * number}" for moment in ("committed_at", "expires_at")}}
            for table, columns in names.items():
                values = ", ".join(own.get(column, column) for column in columns)
                key = "id" if table == "event" else "event"
                store.execute(f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM {table} WHERE {key} = ?", (event,))
        store.execute("UPDATE channel SET sequence = sequence + ? WHERE name = (SELECT channel FROM event WHERE id = ?)", (copies, event))


def repeat_in_postgres(address, event, copies):
    """As in SQLite, with the settlements and steps that PostgreSQL keeps apart."""
    psql(address, f"""
        SET search_path = tandem;
        CREATE TEMPORARY VIEW fresh AS SELECT number, left('{event}', 24) || lpad(to_hex(number), 12, '0') AS id, 10 * number AS later
          FROM generate_series(1, {copies}) AS number;
        INSERT INTO event SELECT day, fresh.id, app, channel, sequence + fresh.number, name, data, policy, committed_at + later,
          expires_at + later FROM event CROSS JOIN fresh WHERE event.id = '{event}';
        INSERT INTO fanout (day, event, app, channel, committed_at, expires_at, snapshot, count, is_large, is_open, pushed, notes)
          SELECT day, fresh.id, app, channel, committed_at + later, expires_at + later, snapshot, count, is_large, is_open, pushed, notes
          FROM fanout CROSS JOIN fresh WHERE event = '{event}' ORDER BY fresh.number;
        INSERT INTO settlement (day, fanout, places, is_closed) SELECT settlement.day, twin.number, places, is_closed
          FROM settlement JOIN fanout ON fanout.number = settlement.fanout AND fanout.event = '{event}' CROSS JOIN fresh
          JOIN fanout AS twin ON twin.event = fresh.id ORDER BY settlement.number;
        INSERT INTO push (day, event, user_id, device, nid, app, state, reason, due_at, attempts, message, message_number)
          SELECT day, fresh.id, user_id, device, nid, app, state, reason, due_at + later, attempts, message, message_number
          FROM push CROSS JOIN fresh WHERE event = '{event}';
        INSERT INTO push_step (day, push, state, due_at, attempts, provider_id, outcome, log, is_final)
          SELECT step.day, twin.number, step.state, step.due_at + later, step.attempts, step.provider_id, step.outcome, log, is_final
          FROM push_step AS step JOIN push ON push.number = step.push AND push.event = '{event}' CROSS JOIN fresh
          JOIN push AS twin ON twin.event = fresh.id AND twin.user_id = push.user_id AND twin.device = push.device ORDER BY step.number;
        UPDATE channel SET sequence = sequence + {copies} WHERE name = (SELECT channel FROM event WHERE id = '{event}');""")


def psql(address, text):
    """What the statements print."""
    command = ["psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set", "ON_ERROR_STOP=1", "--dbname", address]
    return subprocess.run([*command, "--command", text], check=True, stdout=subprocess.PIPE, text=True).stdout


def rows_of(hub, address):
    """Recipients of all events of the sessions, as the store counts them."""
    question = "SELECT sum(count) FROM {}fanout WHERE channel IN ('presence-stage-crowd', 'presence-stage-class')"
    if address:
        return int(psql(address, question.format("tandem.")))
    with contextlib.closing(sqlite3.connect(os.path.join(hub.data, "tandem.db"))) as store:
        return store.execute(question.format("")).fetchone()[0]


def ask(large, store, rows):
    large.expect(rows == 1_000_000, f"the trail of {store} has {rows:,} rows")
    page = stage.operator(large, "now")
    for user, answer in ASKED:
        seconds = stage.seconds_to_answer(large, page, user, answer)
        # A time is a promise of a quiet machine: `GATES=1` holds it.
        isHeld = seconds <= SECONDS or not os.environ.get("GATES")
        large.expect(isHeld, f"\"did {user} get it\" over {rows:,} rows of {store} takes {seconds:.2f} s")
    found = stage.call(large, "GET", f"/users/{ASKED[0][0]}/deliveries", limit="100")["events"]
    large.expect(len(found) == 100, f"and the next hundred events are there: {len(found)}")
    page.picture(f"real-million-{store}")
    page.close()
