import HubDefinitions
import HubYAML
import Testing

/// Mistakes of one definition.
func definitionMistakes(_ text: String, file: String = "game.yaml") -> [String] {
    do throws(YAMLError) {
        _ = try DefinitionSet.load([(file, text)])
        return []
    } catch {
        return error.mistakes.map(\.description)
    }
}

/// Texts that are no definition, and the sentences that say so.
extension DefinitionTests {
    static let mistakes: [(String, [String])] = [
        (
            "channel: presence-g-{session}\nreplay: yes\nquiet_hours: { from: 22, to: \"24:00\", timezone: Europe/Berlim }\nevents: {}",
            [
                "game.yaml:2: replay: expected true or false, found the text \"yes\"",
                "game.yaml:3: quiet_hours.from: expected a time of the day such as \"22:00\", found \"22\"",
                "game.yaml:3: quiet_hours.to: expected a time of the day such as \"22:00\", found \"24:00\"",
                "game.yaml:3: quiet_hours.timezone: this machine knows no time zone \"Europe/Berlim\"; write a name of the time zone database, such as Europe/Berlin",
            ]
        ),
        (
            "channel: presence-g-{session}\nmembers_max: 0\nevents: {}",
            ["game.yaml:2: members_max: expected a whole number from 1 to 100000, found the number 0"]
        ),
        (
            "channel: private-g-{session}\nmembers_max: 10\nevents: {}",
            ["game.yaml:2: members_max: only presence- channels have members; leave it out, or begin the channel with presence-"]
        ),
        (
            "channel: presence-g-{session}\nquiet_hours: { form: \"22:00\", to: \"22:00\" }\nevents: {}",
            [
                "game.yaml:2: unknown key \"form\" in quiet_hours; did you mean \"from\"? known keys: from, to, timezone",
                "game.yaml:2: quiet_hours has no from: write from: \"22:00\"",
                "game.yaml:2: quiet_hours has no timezone: write the one of most recipients, such as timezone: Europe/Berlin",
            ]
        ),
        (
            "channel: presence-g-{session}\nquiet_hours: { from: \"22:00\", to: \"22:00\", timezone: UTC }\nevents: {}",
            ["game.yaml:2: quiet_hours: from and to are the same; quiet hours end some time of the day"]
        ),
        (
            "channel: presence-g-{session}\nalerts: { burst: 0, every: 2d, per_day: -1, max: 1 }\nevents: {}",
            [
                "game.yaml:2: alerts.burst: expected a whole number from 1 to 1000, found the number 0",
                "game.yaml:2: alerts.every: at most 1d; to allow few alerts a day, write per_day:",
                "game.yaml:2: alerts.per_day: expected a whole number from 0, found the number -1",
                "game.yaml:2: unknown key \"max\" in alerts; known keys: burst, every, per_day",
            ]
        ),
        ("", ["game.yaml:1: the file is empty; write channel: and events:"]),
        ("events: {}", ["game.yaml:1: the file has no channel: write channel: presence-NAME-{session}"]),
        ("channel: presence-g-{session}", ["game.yaml:1: the file has no events: list its events, each with to: and policy:"]),
        ("[1]", ["game.yaml:1: the file: expected a map, found a list"]),
        (
            "channel: 'presence-{room}'\nevents: {}",
            ["game.yaml:1: channel \"presence-{room}\": unknown placeholder {room}; the placeholders are {session} and {user}"]
        ),
        (
            "channel: presence-g-{session}\nevent: {}\nevents: {}",
            [
                "game.yaml:2: unknown key \"event\" in the file; did you mean \"events\"? known keys: channel, roles, join, suppress_scope, clear_siblings, replay, members_max, quiet_hours, alerts, android_channels, events"
            ]
        ),
        (
            "channel: presence-g-{session}\nroles: [a, a, all]\nevents: {}",
            [
                "game.yaml:2: the role \"a\" stands twice in roles",
                "game.yaml:2: a role cannot be called \"all\": that word means somebody else in to:",
            ]
        ),
        (
            "channel: presence-g-{session}\nroles: [hider]\njoin: { identity: mail, role: hidder }\nsuppress_scope: all\nevents: {}",
            [
                "game.yaml:3: join.identity cannot be \"mail\"; did you mean \"email\"? it is one of: email, device",
                "game.yaml:3: join.role: unknown role \"hidder\"; did you mean \"hider\"? roles: hider",
                "game.yaml:4: suppress_scope cannot be \"all\"; it is one of: participant, device",
            ]
        ),
        (
            "channel: presence-g-{session}\nclear_siblings: maybe\nevents: {}",
            ["game.yaml:2: clear_siblings: expected true or false, found the text \"maybe\""]
        ),
        (
            "channel: presence-g-{session}\nsuppress_scope: device\nclear_siblings: true\nevents: {}",
            ["game.yaml:3: clear_siblings: with suppress_scope: device each device stands for itself; leave one of the two out"]
        ),
        (
            event("to: all", "policy: notfy"),
            [
                "game.yaml:6: event \"e\".policy cannot be \"notfy\"; did you mean \"notify\"? it is one of: realtime_only, sync, notify, critical, both, push_only"
            ]
        ),
        (
            event("to: hidder", "policy: sync"),
            ["game.yaml:5: event \"e\".to: unknown role \"hidder\"; did you mean \"hider\"? roles: hider, seeker"]
        ),
        (event("to: [hider, x]", "policy: sync"), ["game.yaml:5: event \"e\".to: unknown role \"x\"; roles: hider, seeker"]),
        (event("to: []", "policy: sync"), ["game.yaml:5: event \"e\".to names nobody; write all, a role or \"{user}\""]),
        (
            event("to: {user}", "policy: sync"),
            ["game.yaml:5: event \"e\".to: expected all, a role or \"{user}\" in quotes, found a map"]
        ),
        (event("to: \"{user}\"", "policy: sync"), ["game.yaml:5: event \"e\".to: the channel's name has no {user}"]),
        (event("policy: sync"), ["game.yaml:5: event \"e\" has no to: write to: all, to: ROLE or to: \"{user}\""]),
        (
            event("to: all"),
            ["game.yaml:5: event \"e\" has no policy: write one of realtime_only, sync, notify, critical, both, push_only"]
        ),
        (
            event("to: all", "policy: notify"),
            [
                "game.yaml:5: event \"e\" has no notification: the policy notify shows one; write notification: { title: …, body: … }"
            ]
        ),
        (
            event("to: all", "policy: critical", "notification: { title: T }"),
            ["game.yaml:7: event \"e\".notification has no body: a visible notification needs a body"]
        ),
        (
            event("to: all", "policy: push_only", "notification: { body: B, titel: T }"),
            [
                "game.yaml:7: event \"e\".notification has no title: a visible notification needs a title",
                "game.yaml:7: unknown key \"titel\" in event \"e\".notification; did you mean \"title\"? known keys: title, subtitle, body, image",
            ]
        ),
        (
            event("to: all", "policy: sync", shown),
            [
                "game.yaml:7: event \"e\".notification would never be shown: the policy sync makes no visible push; remove it or choose notify or critical"
            ]
        ),
        (
            event("to: all", "policy: realtime_only", shown),
            [
                "game.yaml:7: event \"e\".notification would never be shown: the policy realtime_only makes no visible push; remove it or choose notify or critical"
            ]
        ),
        (
            event("to: all", "policy: sync", "ttl: 5"),
            ["game.yaml:7: event \"e\".ttl: expected a duration such as 250ms, 15s, 5m, 2h or 3d, found the number 5"]
        ),
        (event("to: all", "policy: sync", "ttl: 29d"), ["game.yaml:7: event \"e\".ttl: a notification is kept for 5s to 28d"]),
        (event("to: all", "policy: sync", "ttl: 1s"), ["game.yaml:7: event \"e\".ttl: a notification is kept for 5s to 28d"]),
        (
            event("to: all", "policy: sync", "data: { from: x, google.y: 1, nid: 1 }"),
            [
                "game.yaml:7: event \"e\".data cannot have \"from\": FCM keeps this name for itself; rename it",
                "game.yaml:7: event \"e\".data cannot have \"google.y\": FCM keeps this name for itself; rename it",
                "game.yaml:7: event \"e\".data cannot have \"nid\": the hub adds a member of this name itself; rename it",
            ]
        ),
        (event("to: all", "policy: sync", "data: [1]"), ["game.yaml:7: event \"e\".data: expected a map, found a list"]),
        (
            event("to: all", "policy: notify", "android: { chanel_id: g }", shown),
            [
                "game.yaml:7: unknown key \"chanel_id\" in event \"e\".android; did you mean \"channel_id\"? known keys: priority, notification, ttl, collapse_key, restricted_package_name, data, fcm_options, direct_boot_ok, bandwidth_constrained_ok, restricted_satellite_ok, title, body, icon, color, sound, tag, click_action, body_loc_key, body_loc_args, title_loc_key, title_loc_args, channel_id, ticker, sticky, event_time, local_only, notification_priority, default_sound, default_vibrate_timings, default_light_settings, vibrate_timings, visibility, notification_count, light_settings, image, bypass_proxy_notification, proxy"
            ]
        ),
        (
            event("to: all", "policy: notify", "android: { priority: urgent, color: red }", shown),
            [
                "game.yaml:7: event \"e\".android.priority: expected one of HIGH, NORMAL, found the text \"urgent\"",
                "game.yaml:7: event \"e\".android.color: expected a colour such as \"#4CAF50\", found the text \"red\"",
            ]
        ),
        (
            event(
                "to: all", "policy: notify",
                "apns: { content-available: maybe, interruption-level: now, badge: -1, relevance-score: 2 }", shown),
            [
                "game.yaml:7: event \"e\".apns.content-available: expected 0 or 1, found the text \"maybe\"",
                "game.yaml:7: event \"e\".apns.interruption-level: expected one of passive, active, time-sensitive, critical, found the text \"now\"",
                "game.yaml:7: event \"e\".apns.badge: expected a whole number from 0, found the number -1",
                "game.yaml:7: event \"e\".apns.relevance-score: expected a number from 0 to 1, found the number 2",
            ]
        ),
        (
            event("to: all", "policy: notify", "apns: { alert: { subtitel: x, loc-args: [1] } }", shown),
            [
                "game.yaml:7: event \"e\".apns.alert.loc-args[0]: expected text, found the number 1",
                "game.yaml:7: event \"e\".apns.payload.aps.alert.loc-args: fills in the text that loc-key names; write loc-key too",
                "game.yaml:7: unknown key \"subtitel\" in event \"e\".apns.alert; did you mean \"subtitle\"? known keys: title, body, subtitle, launch-image, title-loc-key, title-loc-args, subtitle-loc-key, subtitle-loc-args, loc-key, loc-args",
            ]
        ),
        (
            event("to: all", "policy: realtime_only", "data: {a: 1}", "group: g"),
            [
                "game.yaml:7: event \"e\".data would never be used: the policy realtime_only makes no push; remove it",
                "game.yaml:8: event \"e\".group would never be used: the policy realtime_only makes no push; remove it",
            ]
        ),
        (
            event("to: all", "policy: notify", "android: { sound: x, notification: { sound: y } }", shown),
            ["game.yaml:7: event \"e\".android.sound: stands also in android.notification, which means the same; keep one of them"]
        ),
        (
            event("to: all", "policy: sync", "apns: { sound: x }"),
            ["game.yaml:7: event \"e\".apns would never be used: a silent push carries data: only; remove it"]
        ),
        (
            event("variants: []"),
            ["game.yaml:5: event \"e\".variants is empty; write at least one, or to: and policy: without variants"]
        ),
        (
            event("variants:", "  - { to: all, policy: sync }", "  - { to: hider, policy: sync }"),
            ["game.yaml:7: no recipient ever gets here: the variant in line 6 is for all and has no when:; put it last"]
        ),
        (
            event("variants:", "  - { wen: {a: 1}, to: all, policy: sync }"),
            [
                "game.yaml:6: unknown key \"wen\" in event \"e\", variant 1; did you mean \"when\"? known keys: when, to, policy, kind, ttl, group, notification, locales, data, apns, android, android_v2, webpush, fcm_options, live_activity"
            ]
        ),
        (
            event("variants:", "  - { when: {a: [1]}, to: all, policy: sync }"),
            [
                "game.yaml:6: event \"e\", variant 1.when: expected a member of the data and one value for it, such as phase: endgame"
            ]
        ),
        (
            event("when: {a: 1}", "to: all", "policy: sync"),
            [
                "game.yaml:5: unknown key \"when\" in event \"e\"; known keys: to, policy, kind, ttl, group, notification, locales, data, apns, android, android_v2, webpush, fcm_options, live_activity, fields, variants"
            ]
        ),
        (
            event(shown, "variants:", "  - { to: all, policy: sync }"),
            ["game.yaml:5: event \"e\".notification would never be shown: no variant's policy makes visible pushes; remove it"]
        ),
        (
            event("to: all", "to: all"),
            ["game.yaml:5: duplicate key \"to\": it stands here and again in the same map; keep one of them"]
        ),
        (
            "channel: presence-g-{session}\nevents:\n  pusher:x: { to: all, policy: sync }\n  client-x: { to: all, policy: sync }",
            [
                "game.yaml:3: event \"pusher:x\" cannot be published by a backend: names that begin with pusher: belong to the protocol; rename it",
                "game.yaml:4: event \"client-x\" cannot be published by a backend: names that begin with client- belong to the protocol; rename it",
            ]
        ),
        (
            event(
                "to: all", "policy: notify", "notification: { title: \"{{upper(x)}}\", body: \"{{session.joincode}}\" }",
                "group: \"{{#a}}\""),
            [
                "game.yaml:7: event \"e\".notification.title: unknown template function \"upper\"; did you mean \"uppercased\"? known functions: capitalized, lowercased, uppercased, reversed, first, last, count, plusone, minusone, kilometers, empty, equalzero, even, odd",
                "game.yaml:7: event \"e\".notification.body: unknown name \"session.joincode\" in a template; did you mean \"session.join_code\"? known names: session.id, session.number, session.join_code, session.attributes.NAME; a member of the published data is data.session.joincode",
                "game.yaml:8: event \"e\".group: the section {{#a}} has no end; add {{/a}}",
            ]
        ),
    ]

    @Test("every mistake has its file, its line and the fix", arguments: mistakes.indices)
    func mistake(index: Int) {
        let (text, expected) = Self.mistakes[index]
        // The order of one line's mistakes is not promised.
        #expect(definitionMistakes(text).sorted() == expected.sorted(), "\(text)")
    }

    @Test("mistakes of all files are told together")
    func together() {
        let error = #expect(throws: YAMLError.self) {
            try DefinitionSet.load([("a.yaml", "channel: x\nevents: {}"), ("b.yaml", "channel: presence-{session}\nevents: []")])
        }
        #expect(error?.mistakes.map(\.file) == ["a.yaml", "b.yaml"])
    }

    @Test("two definitions for the same channels or of the same name are refused")
    func clashes() {
        let error = #expect(throws: YAMLError.self) {
            try DefinitionSet.load([
                ("a.yaml", "channel: presence-{session}\nevents: {}"), ("b.yaml", "channel: presence-{user}\nevents: {}"),
                ("x/a.yml", "channel: presence-z-{user}\nevents: {}"),
            ])
        }
        #expect(
            error?.mistakes.map(\.description) == [
                "b.yaml:1: its channel presence-{user} matches the same names as presence-{session} in a.yaml; change one of them",
                "x/a.yml:1: the definition \"a\" exists already in a.yaml; rename one of the files",
            ])
        #expect(definitionMistakes("channel: presence-{session}\nevents: {}", file: "a b.yaml").count == 1)
    }
}
