import GRDB

/// The tables, and the migrations of older databases. Never edit a released migration.
enum SQLiteMigrations {
    /// Marks a database file as Tandem's ("TNDM"), so that another program's file is recognised.
    static let applicationID: Int32 = 0x544E_444D

    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { db in
            try db.execute(sql: "PRAGMA application_id = \(applicationID)")
            try db.execute(sql: directory)
            try db.execute(sql: outbox)
        }
        migrator.registerMigration("answers") { db in try db.execute(sql: answers) }
        migrator.registerMigration("webhooks") { db in try db.execute(sql: webhooks) }
        migrator.registerMigration("fanouts") { db in try db.execute(sql: fanouts) }
        migrator.registerMigration("scheduled") { db in try db.execute(sql: scheduled) }
        migrator.registerMigration("attempts") { db in try db.execute(sql: "ALTER TABLE delivery ADD COLUMN attempts_log TEXT") }
        migrator.registerMigration("lists") { db in try db.execute(sql: lists) }
        migrator.registerMigration("addresses") { db in try db.execute(sql: addresses) }
        migrator.registerMigration("attendance") { db in
            try db.execute(sql: "CREATE TABLE attendance_mark (id INTEGER PRIMARY KEY CHECK (id = 1), at INTEGER NOT NULL) STRICT")
        }
        migrator.registerMigration("dead letters") { db in try db.execute(sql: deadLetters) }
        migrator.registerMigration("messages") { db in try db.execute(sql: messages) }
        migrator.registerMigration("open deliveries") { db in try db.execute(sql: openDeliveries) }
        migrator.registerMigration("leases") { db in
            try db.execute(sql: "CREATE TABLE lease (number INTEGER PRIMARY KEY, deliveries BLOB NOT NULL) STRICT")
        }
        migrator.registerMigration("owners") { db in
            try db.execute(sql: owners)
            try SecretInstallations.hide(in: db)
        }
        migrator.registerMigration("apps") { db in try db.execute(sql: apps) }
        migrator.registerMigration("search") { db in try db.execute(sql: search) }
        return migrator
    }

    /// STRICT everywhere: a column holds its declared type, so reading meets no other type. AUTOINCREMENT for numbers that clients know:
    /// without it SQLite reuses the number of a deleted newest row.
    private static let directory = """
        CREATE TABLE session (
          number INTEGER PRIMARY KEY AUTOINCREMENT,
          app TEXT NOT NULL,
          id TEXT NOT NULL,
          definition TEXT NOT NULL,
          join_code TEXT UNIQUE,          -- upper case; rows are living sessions, so unique among those
          attributes TEXT NOT NULL,       -- a JSON object
          created_at INTEGER NOT NULL,
          UNIQUE (app, id)
        ) STRICT;

        CREATE TABLE participant (
          number INTEGER PRIMARY KEY AUTOINCREMENT,
          app TEXT NOT NULL,
          session TEXT NOT NULL,
          user TEXT NOT NULL,
          name TEXT NOT NULL,
          email TEXT,                     -- as it was written
          email_key TEXT,                 -- lower case, by Unicode's rules: SQLite's lower() knows ASCII only
          role TEXT,
          device TEXT,                    -- the device id of a join that recognises by device
          joined_at INTEGER NOT NULL,
          UNIQUE (app, session, user),
          FOREIGN KEY (app, session) REFERENCES session (app, id) ON DELETE CASCADE
        ) STRICT;
        CREATE UNIQUE INDEX participant_email ON participant (app, session, email_key) WHERE email_key IS NOT NULL;
        CREATE UNIQUE INDEX participant_device ON participant (app, session, device) WHERE device IS NOT NULL;
        CREATE INDEX participant_user ON participant (app, user);

        CREATE TABLE device (
          app TEXT NOT NULL,
          user TEXT NOT NULL,
          id TEXT NOT NULL,
          platform TEXT NOT NULL,
          provider TEXT NOT NULL,
          token TEXT,
          environment TEXT NOT NULL,
          locale TEXT,
          notifications INTEGER NOT NULL,
          registered_at INTEGER NOT NULL,
          PRIMARY KEY (app, user, id)
        ) STRICT;
        CREATE UNIQUE INDEX device_token ON device (provider, token) WHERE token IS NOT NULL;
        CREATE INDEX device_id ON device (app, id);
        """

    /// `channel` keeps each channel's last sequence apart from the events. Otherwise pruning would restart it at 1, and a client that asks
    /// for later events would get none.
    ///
    /// `event.data` is a blob because SQLite's text ends at a NUL character, which a publisher's string may contain.
    ///
    /// A delivery's key begins with its event, so a transaction writes neighbouring index entries. A key that begins with the random nid
    /// would scatter them. One nid stands for one event and user, so the key is equivalent.
    private static let outbox = """
        CREATE TABLE channel (
          app TEXT NOT NULL,
          name TEXT NOT NULL,
          sequence INTEGER NOT NULL,
          PRIMARY KEY (app, name)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE event (
          id TEXT NOT NULL PRIMARY KEY,
          app TEXT NOT NULL,
          channel TEXT NOT NULL,
          sequence INTEGER NOT NULL,
          name TEXT NOT NULL,
          data BLOB NOT NULL,
          policy TEXT NOT NULL,
          committed_at INTEGER NOT NULL,
          expires_at INTEGER NOT NULL,
          UNIQUE (app, channel, sequence)
        ) STRICT;
        CREATE INDEX event_committed ON event (committed_at);

        CREATE TABLE delivery (
          event TEXT NOT NULL REFERENCES event (id) ON DELETE CASCADE,
          user TEXT NOT NULL,
          device TEXT NOT NULL,
          nid TEXT NOT NULL,
          app TEXT NOT NULL,
          state TEXT NOT NULL,
          reason TEXT NOT NULL,
          due_at INTEGER NOT NULL,
          attempts INTEGER NOT NULL,
          message TEXT,                   -- PushMessageCoding
          provider_id TEXT,
          outcome TEXT,
          PRIMARY KEY (event, user, device)
        ) STRICT;
        CREATE INDEX delivery_open ON delivery (due_at, state) WHERE state IN ('waiting', 'due', 'leased', 'retry');
        """

    /// `body` is a blob, as `event.data` is. Not WITHOUT ROWID: rows with long bodies would make its tree deep.
    private static let answers = """
        CREATE TABLE answer (
          app TEXT NOT NULL,
          key TEXT NOT NULL,
          request_digest BLOB NOT NULL,
          status INTEGER NOT NULL,
          content_type TEXT NOT NULL,
          body BLOB NOT NULL,
          answered_at INTEGER NOT NULL,
          UNIQUE (app, key)
        ) STRICT;
        CREATE INDEX answer_answered ON answer (answered_at);
        """

    /// AUTOINCREMENT, because a row is deleted by its number some time after it has ended. The number must not name another batch by then.
    private static let webhooks = """
        CREATE TABLE webhook (
          number INTEGER PRIMARY KEY AUTOINCREMENT,
          app TEXT NOT NULL,
          url TEXT NOT NULL,
          key TEXT NOT NULL,
          signature TEXT NOT NULL,
          time_ms INTEGER NOT NULL,
          body BLOB NOT NULL              -- as it is sent and was signed
        ) STRICT;
        """

    /// `snapshot` is a list of recipients, written once and never changed. `snapshot_user` finds the short lists of a user. A long list
    /// would cost the commit thousands of rows, and there are few long lists to search. `snapshot_user` has no foreign key, which would
    /// need an index of its own: the code that deletes a list deletes its rows.
    ///
    /// `fanout.number` is the position of `RecipientStore.events`; within a channel it follows the sequences. App, channel and expiry
    /// repeat the event's, so that one index answers who missed what. The most-read columns come first, so SQLite leaves the pages of
    /// the long ones alone. Columns written later begin as empty blobs and keep their size from the first write on, so that SQLite
    /// rewrites only changed pages.
    private static let fanouts = """
        CREATE TABLE snapshot (
          number INTEGER PRIMARY KEY AUTOINCREMENT,
          key BLOB NOT NULL UNIQUE,
          count INTEGER NOT NULL,
          users BLOB NOT NULL             -- RecipientSnapshot.encoded, without that of its base
        ) STRICT;

        CREATE TABLE snapshot_user (
          user TEXT NOT NULL,
          snapshot INTEGER NOT NULL,
          PRIMARY KEY (user, snapshot)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE fanout (
          number INTEGER PRIMARY KEY AUTOINCREMENT,
          event TEXT NOT NULL UNIQUE REFERENCES event (id) ON DELETE CASCADE,
          app TEXT NOT NULL,
          channel TEXT NOT NULL,
          committed_at INTEGER NOT NULL,
          expires_at INTEGER NOT NULL,
          snapshot INTEGER NOT NULL REFERENCES snapshot (number),
          count INTEGER NOT NULL,
          is_large INTEGER NOT NULL,      -- its list is not in snapshot_user
          is_open INTEGER NOT NULL,
          confirmed BLOB NOT NULL,        -- PlaceSet
          pushed BLOB NOT NULL,           -- PlaceSet
          received BLOB NOT NULL,         -- ReceiptTimes
          notes BLOB NOT NULL             -- NoteCoding
        ) STRICT;
        CREATE INDEX fanout_open ON fanout (number) WHERE is_open = 1;
        CREATE INDEX fanout_living ON fanout (app, channel, expires_at);
        CREATE INDEX fanout_snapshot ON fanout (snapshot);
        CREATE INDEX fanout_large ON fanout (app, number) WHERE is_large = 1;
        """

    private static let scheduled = """
        CREATE TABLE scheduled (
          id TEXT NOT NULL PRIMARY KEY,
          app TEXT NOT NULL,
          deliver_at INTEGER NOT NULL,
          request BLOB NOT NULL,
          idempotency_key TEXT,
          created_at INTEGER NOT NULL,
          state TEXT NOT NULL,
          ended_at INTEGER,
          outcome TEXT
        ) STRICT;
        CREATE INDEX scheduled_due ON scheduled (deliver_at, id) WHERE state = 'waiting';
        CREATE INDEX scheduled_app ON scheduled (app, deliver_at, id) WHERE state = 'waiting';
        CREATE INDEX scheduled_failed ON scheduled (app, ended_at) WHERE state = 'failed';
        CREATE INDEX scheduled_ended ON scheduled (ended_at) WHERE ended_at IS NOT NULL;
        """

    /// A long list that extends another one holds only the added people. Otherwise each person who joins a session of thousands would cost
    /// the next event the whole list again. `depth` counts the base rows.
    private static let lists = """
        ALTER TABLE snapshot ADD COLUMN base INTEGER REFERENCES snapshot (number);
        ALTER TABLE snapshot ADD COLUMN depth INTEGER NOT NULL DEFAULT 0;
        CREATE INDEX snapshot_base ON snapshot (base) WHERE base IS NOT NULL;
        """

    /// `address`: the target of a push that a backend addressed directly, in the form of `DirectAddressCoding`.
    private static let addresses = """
        ALTER TABLE device ADD COLUMN form TEXT NOT NULL DEFAULT 'token';
        ALTER TABLE device ADD COLUMN timezone TEXT;
        ALTER TABLE device ADD COLUMN app_version TEXT;
        ALTER TABLE device ADD COLUMN refreshed_at INTEGER;
        UPDATE device SET refreshed_at = registered_at;
        ALTER TABLE device ADD COLUMN accepted_at INTEGER;
        ALTER TABLE delivery ADD COLUMN address TEXT;
        """

    /// `delivery.due_at` of a failed push is its time of failure. `sent_once` has no expiry: a key means once for ever.
    private static let deadLetters = """
        CREATE INDEX delivery_failed ON delivery (app, due_at) WHERE state = 'failed' AND message IS NOT NULL;
        CREATE INDEX delivery_failed_nid ON delivery (nid, device) WHERE state = 'failed' AND message IS NOT NULL;
        CREATE INDEX device_refreshed ON device (refreshed_at);
        CREATE TABLE sent_once (
          app TEXT NOT NULL,
          key TEXT NOT NULL,
          user TEXT NOT NULL,
          PRIMARY KEY (app, key, user)
        ) STRICT, WITHOUT ROWID;
        """

    /// `message` holds a text shared by several deliveries of its event (`StoredMessage`). Existing rows are not rewritten: rows of earlier
    /// versions keep their text. `delivery.message` stays NULL for deliveries without one, as the indexes expect.
    private static let messages = """
        CREATE TABLE message (
          number INTEGER PRIMARY KEY,
          event TEXT NOT NULL REFERENCES event (id) ON DELETE CASCADE,
          text TEXT NOT NULL              -- PushMessageCoding, without `nid`
        ) STRICT;
        CREATE INDEX message_event ON message (event);
        ALTER TABLE delivery ADD COLUMN message_number INTEGER;
        """

    /// Replaces `IN`, for which SQLite builds a table of the four words on every write: five times per push, as much time as the rest.
    private static let openDeliveries = """
        DROP INDEX delivery_open;
        CREATE INDEX delivery_open ON delivery (due_at, state)
          WHERE state = 'due' OR state = 'leased' OR state = 'retry' OR state = 'waiting';
        """

    /// Apps that were added while the hub ran (`AppRecord`). A removed app keeps its row.
    private static let apps = """
        CREATE TABLE app (
          id TEXT PRIMARY KEY,
          keys TEXT NOT NULL,             -- a JSON array, secrets included
          settings TEXT NOT NULL,         -- a JSON object
          revision INTEGER NOT NULL UNIQUE,
          created_at INTEGER NOT NULL,
          removed_at INTEGER
        ) STRICT, WITHOUT ROWID;
        """

    /// For the newest events of an app, by name, and for people by name. `event_app` grows at its end, because the time does.
    private static let search = """
        CREATE INDEX event_app ON event (app, committed_at, name);
        CREATE INDEX participant_name ON participant (app, name COLLATE NOCASE);
        """

    /// Join codes and device tokens are unique per app. The table `session` is rebuilt, because SQLite cannot drop a constraint.
    /// `participant.joined_by` and `device.origin` (backend, app, waiting: `DeviceWriter`) name the writer of a row, which limits what
    /// joins recognise and may change. A participant of an earlier version whose user id equals the number had joined.
    private static let owners = """
        CREATE TABLE session_of_app (
          number INTEGER PRIMARY KEY AUTOINCREMENT,
          app TEXT NOT NULL,
          id TEXT NOT NULL,
          definition TEXT NOT NULL,
          join_code TEXT,                 -- upper case; rows are living sessions, so unique among those
          attributes TEXT NOT NULL,       -- a JSON object
          created_at INTEGER NOT NULL,
          UNIQUE (app, id)
        ) STRICT;
        INSERT INTO session_of_app SELECT number, app, id, definition, join_code, attributes, created_at FROM session;
        DELETE FROM sqlite_sequence WHERE name = 'session_of_app';
        INSERT INTO sqlite_sequence (name, seq) SELECT 'session_of_app', seq FROM sqlite_sequence WHERE name = 'session';
        DROP TABLE session;
        ALTER TABLE session_of_app RENAME TO session;
        CREATE UNIQUE INDEX session_code ON session (join_code, app) WHERE join_code IS NOT NULL;

        ALTER TABLE participant ADD COLUMN joined_by TEXT;
        UPDATE participant SET joined_by = CASE WHEN device IS NULL THEN 'email' ELSE 'device' END WHERE user = CAST(number AS TEXT);
        UPDATE participant SET email_key = NULL WHERE joined_by = 'device';

        ALTER TABLE device ADD COLUMN origin TEXT NOT NULL DEFAULT 'backend';
        UPDATE device SET origin = 'app' WHERE EXISTS (
          SELECT 1 FROM participant WHERE participant.app = device.app AND participant.user = device.user AND joined_by IS NOT NULL);
        UPDATE device SET origin = 'waiting' WHERE user GLOB 'client:*';
        CREATE INDEX device_waiting ON device (app, refreshed_at) WHERE origin = 'waiting';
        DROP INDEX device_token;
        CREATE INDEX device_token ON device (token, app, provider) WHERE token IS NOT NULL;
        """
}
