"""People and their devices, written straight into a hub's store while no hub runs on it.

Registering 100,000 people one by one over HTTP takes minutes and is not what is measured. The rows are those that
`POST …/join` with a device token leaves behind.
"""

import hashlib
import sqlite3
import time

SESSION_SQL = "INSERT INTO participant (app, session, user, name, email, email_key, joined_at) VALUES (?, ?, ?, ?, ?, ?, ?)"
DEVICE_SQL = """
    INSERT INTO device (app, user, id, platform, provider, token, environment, notifications, registered_at, refreshed_at, accepted_at)
    VALUES (?, ?, ?, ?, ?, ?, 'production', 1, ?, ?, ?)
"""


def token(provider, number):
    """What a gateway gives an app: 64 hex digits, or about 160 characters."""
    digest = hashlib.sha256(f"{provider}{number}".encode()).hexdigest()
    return digest if provider == "apns" else f"{digest[:22]}:APA91b{(digest + digest)[:134]}"


def device(app, provider, number, user):
    now = int(time.time() * 1000)
    platform = "ios" if provider == "apns" else "android"
    return (app, user, f"device-{number:08d}", platform, provider, token(provider, number), now, now, now)


def fill(path, app, session, provider, members, others=0):
    """`members` of a session with a device each, spread evenly among `others`, who are in no session."""
    database = sqlite3.connect(path)
    now = int(time.time() * 1000)
    every = (members + others) // members

    def devices():
        for number in range(members + others):
            yield device(app, provider, number, f"{session}-{number}")

    def people():
        for number in range(0, members * every, every):
            yield (app, session, f"{session}-{number}", f"Person {number}", f"{session}{number}@example.com", f"{session}{number}@example.com", now)

    with database:
        database.executemany(SESSION_SQL, people())
        database.executemany(DEVICE_SQL, devices())
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
