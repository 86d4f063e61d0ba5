import GRDB

/// The tables, and how a database of an older version gets them. A migration that was released is never edited.
enum SQLiteMigrations {
    /// Marks a database file as Tandem's ("TNDM"), so that no other program's file is mistaken for one.
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
        return migrator
    }

    /// STRICT everywhere: a column then holds the type it declares, and reading a row cannot meet another.
    /// AUTOINCREMENT where clients know the number: without it SQLite gives the number of a deleted newest row again.
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

    /// `channel` keeps each channel's last sequence apart from its events: pruning them must not make it count from 1
    /// again, or a client that asks for what came after its last sequence would be told nothing.
    ///
    /// `event.data` is a blob because SQLite's text ends at a NUL character, and the publisher's string may hold one.
    ///
    /// A delivery's key begins with its event: a transaction then writes neighbouring index entries, which a key that
    /// begins with the random nid would scatter. One nid is one event and user, so the key says the same.
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

    /// AUTOINCREMENT, because a row is deleted by its number some time after it has ended: by then the number must not be
    /// another batch's.
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

    /// `snapshot` is a list of recipients, written once and never changed. `snapshot_user` finds the short lists that a user
    /// is on; a long one would cost the commit a row for each of thousands, and there are few of those to look through. It
    /// has no foreign key, since that would need an index of its own: whoever deletes a list deletes its rows.
    ///
    /// `fanout.number` is the position of `FanoutStore.events`, and within a channel in the order of the sequences. App,
    /// channel and expiry are the event's, repeated so that one index answers who missed what. The columns that are read
    /// most stand first: SQLite then leaves the pages of the long ones alone. Those written later begin as empty blobs and
    /// keep their size from the first write on, so that SQLite rewrites only the pages that changed.
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

    /// A long list that is another one with people added at the end holds only those: who joins a session of thousands would
    /// otherwise cost the next event the whole list again. `depth` counts how many rows stand before it.
    private static let lists = """
        ALTER TABLE snapshot ADD COLUMN base INTEGER REFERENCES snapshot (number);
        ALTER TABLE snapshot ADD COLUMN depth INTEGER NOT NULL DEFAULT 0;
        CREATE INDEX snapshot_base ON snapshot (base) WHERE base IS NOT NULL;
        """

    /// `address`: of a push to what a backend named itself, as DirectAddressCoding writes it.
    private static let addresses = """
        ALTER TABLE device ADD COLUMN form TEXT NOT NULL DEFAULT 'token';
        ALTER TABLE device ADD COLUMN timezone TEXT;
        ALTER TABLE device ADD COLUMN app_version TEXT;
        ALTER TABLE device ADD COLUMN refreshed_at INTEGER;
        UPDATE device SET refreshed_at = registered_at;
        ALTER TABLE device ADD COLUMN accepted_at INTEGER;
        ALTER TABLE delivery ADD COLUMN address TEXT;
        """

    /// `delivery.due_at` of what has failed is when it did. `sent_once` has no end: a key means once for ever.
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

    /// `message` is said by several deliveries of its event, as StoredMessage explains. Nothing of what is there is rewritten: rows of
    /// earlier versions keep their text, and `delivery.message` stays NULL where there is none, as the indexes have it.
    private static let messages = """
        CREATE TABLE message (
          number INTEGER PRIMARY KEY,
          event TEXT NOT NULL REFERENCES event (id) ON DELETE CASCADE,
          text TEXT NOT NULL              -- PushMessageCoding, without `nid`
        ) STRICT;
        CREATE INDEX message_event ON message (event);
        ALTER TABLE delivery ADD COLUMN message_number INTEGER;
        """

    /// For `IN` SQLite makes a table of the four words whenever it writes a row: five times for each push, which took as long as the
    /// rest of it.
    private static let openDeliveries = """
        DROP INDEX delivery_open;
        CREATE INDEX delivery_open ON delivery (due_at, state)
          WHERE state = 'due' OR state = 'leased' OR state = 'retry' OR state = 'waiting';
        """

    /// Join codes and device tokens are unique for each app alone. The table `session` is made anew, because SQLite cannot take a
    /// constraint away. `participant.joined_by` and `device.origin` (backend, app, waiting: as `DeviceWriter`) say who wrote a row: what
    /// joins recognise and what they may touch depends on it. A participant of an earlier version whose user id is their number had joined.
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
