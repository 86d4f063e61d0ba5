extension PostgresSchema {
    /// `publish` stores an event to be published once the caller's transaction commits. A rolled back one leaves nothing.
    ///
    /// The caller needs the right to execute it, and no right to any table. Ids grow, so that events of one transaction keep their order.
    static let publishing = #"""
        CREATE SEQUENCE tandem.publish_number;

        CREATE FUNCTION tandem.publish(
          app text, channel text, event text, data text, idempotency_key text DEFAULT NULL, deliver_at timestamptz DEFAULT NULL
        ) RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
        DECLARE
          now_ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
          due_ms bigint := coalesce(floor(extract(epoch FROM deliver_at) * 1000), now_ms);
          digits text := lpad(to_hex(now_ms), 12, '0') || '7' || lpad(to_hex(nextval('tandem.publish_number') & 4294967295), 8, '0')
            || lpad(to_hex((random() * 2147483647)::bigint), 11, '0');
          made text := substr(digits, 1, 8) || '-' || substr(digits, 9, 4) || '-' || substr(digits, 13, 4) || '-8' || substr(digits, 18, 3)
            || '-' || substr(digits, 21, 12);
          known text;
        BEGIN
          IF app IS NULL OR app = '' THEN
            RAISE EXCEPTION 'tandem.publish: app is missing' USING ERRCODE = '22023', HINT = 'give the id of the app';
          END IF;
          IF channel IS NULL OR channel !~ '^#?[-a-zA-Z0-9_=@,.;]{1,200}$' THEN
            RAISE EXCEPTION 'tandem.publish: "%" is no channel''s name', left(coalesce(channel, ''), 60) USING ERRCODE = '22023',
              HINT = 'up to 200 letters, digits and _ - = @ , . ;';
          END IF;
          IF event IS NULL OR length(event) NOT BETWEEN 1 AND 200 OR event ~ '^pusher(_internal)?:' THEN
            RAISE EXCEPTION 'tandem.publish: "%" is no event''s name', left(coalesce(event, ''), 60) USING ERRCODE = '22023',
              HINT = 'up to 200 characters, without pusher: in front';
          END IF;
          IF data IS NULL THEN
            RAISE EXCEPTION 'tandem.publish: data is missing' USING ERRCODE = '22023',
              HINT = 'give a text, empty if there is nothing to say';
          END IF;
          IF due_ms > now_ms + 30 * 86400000::bigint THEN
            RAISE EXCEPTION 'tandem.publish: deliver_at is more than 30 days ahead' USING ERRCODE = '22023';
          END IF;
          IF idempotency_key IS NOT NULL THEN
            IF length(idempotency_key) NOT BETWEEN 1 AND 255 THEN
              RAISE EXCEPTION 'tandem.publish: idempotency_key has no or more than 255 characters' USING ERRCODE = '22023';
            END IF;
            -- Two transactions with one key come one after the other.
            PERFORM pg_advisory_xact_lock(hashtextextended('tandem.publish ' || app || ' ' || idempotency_key, 0));
            SELECT s.id INTO known FROM tandem.scheduled s
              WHERE s.app = publish.app AND s.idempotency_key = publish.idempotency_key AND s.created_at > now_ms - 86400000 LIMIT 1;
            IF known IS NOT NULL THEN RETURN known; END IF;
          END IF;
          INSERT INTO tandem.scheduled (id, app, deliver_at, request, idempotency_key, created_at, state)
          VALUES (made, app, due_ms,
            convert_to('{"name":' || to_json(event) || ',"channels":[' || to_json(channel) || '],"data":' || to_json(data) || '}', 'UTF8'),
            idempotency_key, now_ms, 'waiting');
          PERFORM pg_notify('tandem_publish', '');
          RETURN made;
        END $$;
        CREATE INDEX scheduled_key ON tandem.scheduled (app, idempotency_key) WHERE idempotency_key IS NOT NULL;
        REVOKE ALL ON FUNCTION tandem.publish(text, text, text, text, text, timestamptz) FROM PUBLIC;

        """#
}
