import HubCore
import HubDefinitions
import HubJSON
import Testing

/// Reading a backend's content in both forms, with an answer to every mistake.
@Suite struct NotificationContentTests {
    private func read(_ text: String) throws -> NotificationContent {
        let json = try #require(try JSONValue(parsing: Array(text.utf8)).objectValue)
        return try NotificationContent(json: json, others: ["to", "group"])
    }

    private func mistake(_ text: String) -> String {
        do {
            _ = try read(text)
            return "none"
        } catch { return "\(error)" }
    }

    @Test("The flat form and FCM v1's own form mean the same") func bothForms() throws {
        let flat = try read(
            #"""
            {"notification": {"title": "T", "body": ""}, "data": {"id": 7, "none": null, "empty": ""},
             "apns": {"sound": "default", "badge": 0, "alert": {"subtitle": "S"}, "headers": {"apns-priority": "5"}},
             "android": {"priority": "high", "channel_id": "orders", "light_settings": {"color": "#ff0000", "light_on_duration": 1}}}
            """#)
        let nested = try read(
            #"""
            {"notification": {"title": "T", "body": ""}, "data": {"id": 7, "empty": ""},
             "apns": {"headers": {"apns-priority": "5"}, "payload": {"aps": {"sound": "default", "badge": 0, "alert": {"subtitle": "S"}}}},
             "android": {"priority": "HIGH", "notification": {"channelId": "orders",
               "lightSettings": {"color": {"red": 1.0, "green": 0.0, "blue": 0.0, "alpha": 1.0}, "lightOnDuration": "1s"}}}}
            """#)
        #expect(flat == nested)
        #expect(flat.kind == .both)
        #expect(flat.data == ["id": 7, "empty": ""])
        #expect(flat.android["notification"]?["channel_id"] == "orders")
    }

    @Test("A subtitle is Apple's, below the title; what the alert says itself goes before it") func subtitle() throws {
        #expect(try read(#"{"notification": {"title": "T", "subtitle": "S", "body": "B"}}"#).apns == ["alert": ["subtitle": "S"]])
        #expect(
            try read(#"{"notification": {"title": "T", "subtitle": "S"}, "apns": {"alert": "own body"}}"#).apns
                == ["alert": ["subtitle": "S", "body": "own body"]])
        #expect(
            try read(#"{"notification": {"title": "T", "subtitle": "S"}, "apns": {"alert": {"subtitle": "own"}}}"#).apns
                == ["alert": ["subtitle": "own"]])
        #expect(
            try read(#"{"notification": {"title": "T", "subtitle": "S"}, "apns": {"alert": {"subtitle-loc-key": "K"}}}"#).apns
                == ["alert": ["subtitle-loc-key": "K"]])
        let message = try read(#"{"notification": {"title": "T", "subtitle": "S"}}"#)
        #expect(message.kind == .notification && message.title == "T" && message.android.isEmpty && message.webpush.isEmpty)
        #expect(mistake(#"{"notification": {"subtitle": "S"}}"#).contains("notification.subtitle"))
        #expect(mistake(#"{"notification": {"title": "T", "subtitle": 5}}"#).contains("notification.subtitle"))
    }

    @Test("A message's kind is that of its parts, unless it is named") func kinds() throws {
        #expect(try read(#"{"notification": {"title": "T"}}"#).kind == .notification)
        #expect(try read(#"{"data": {"a": "b"}}"#).kind == .data)
        #expect(try read(#"{"data": {"a": "b"}}"#).isVisible == false)
        #expect(try read(#"{"notification": {"title": "T"}, "data": {"a": "b"}, "kind": "data"}"#).isVisible)
        #expect(
            mistake(#"{"notification": {"title": "T"}, "data": {"a": "b"}, "kind": "notification"}"#).hasPrefix(
                "kind: notification has no data"))
        #expect(mistake(#"{"data": {"a": "b"}, "kind": "both"}"#).hasPrefix("kind: both has something to show"))
        #expect(mistake(#"{}"#).hasPrefix("there is nothing to send"))
    }

    @Test("Options of sendToDevice become v1 fields") func translated() throws {
        let urgent = try read(#"{"notification": {"title": "T"}, "priority": "high", "contentAvailable": true}"#)
        #expect(urgent.android == ["priority": "HIGH"])
        #expect(urgent.apns == ["content-available": 1])
        #expect(urgent.apnsHeaders == ["apns-priority": "10"])
        let silent = try read(#"{"data": {"a": "b"}, "priority": "high", "contentAvailable": true}"#)
        #expect(silent.android == ["priority": "NORMAL"])
        #expect(silent.apnsHeaders.isEmpty)
    }

    @Test(
        "Every mistake names the member and what to write",
        arguments: [
            (#""registration_ids": ["x"]"#, "registration_ids: is a name of FCM's old API, which is gone: write to: {\"tokens\": […]}"),
            (
                #""content_available": true"#,
                "content_available: is a name of FCM's old API, which is gone: write apns: {\"content-available\": 1}"
            ),
            (#""mutable_content": true"#, "mutable_content: is a name of FCM's old API"),
            (#""time_to_live": 5"#, "time_to_live: is a name of FCM's old API"),
            (#""delay_while_idle": true"#, "delay_while_idle: is a name of FCM's old API"),
            (#""dry_run": true"#, "dry_run: is a name of FCM's old API"),
            (
                #""notifcation": {}"#,
                "unknown member \"notifcation\"; did you mean \"notification\"? known members: notification, data, apns,"
            ),
            (#""android": {"chanel_id": "x"}"#, "android: unknown member \"chanel_id\"; did you mean \"channel_id\"?"),
            (
                #""android": {"notification": {"sound": 1}}"#,
                "android.notification.sound: expected text that is not empty, found the number 1"
            ),
            (
                #""android": {"ttl": "29d"}"#,
                "android.ttl: expected a duration in seconds such as \"3.5s\", from 0s to 2419200s, found a text"
            ),
            (#""android": {"ttl": "2419201s"}"#, "android.ttl: expected a duration"),
            (#""android": {"priority": "urgent"}"#, "android.priority: expected one of HIGH, NORMAL"),
            (#""android": {"color": "red"}"#, "android.color: expected a colour such as \"#4CAF50\", found a text"),
            (#""android": {"notification_count": 2147483648}"#, "android.notification_count: expected a whole number from 0"),
            (#""android": {"vibrate_timings": ["1s", "x"]}"#, "android.vibrate_timings[1]: expected a duration"),
            (#""android": {"event_time": "yesterday"}"#, "android.event_time: expected a time such as"),
            (#""android": {"body_loc_args": ["x"]}"#, "android.notification.body_loc_args: fills in the text that body_loc_key names"),
            (#""android": {"light_settings": {"color": {"red": 2}}}"#, "android.light_settings.color: expected a colour"),
            (#""android": {"sound": "a", "notification": {"sound": "b"}}"#, "android.sound: stands also in android.notification"),
            (#""android": {"channel_id": "a", "channelId": "b"}"#, "android.channel_id: stands twice, as channel_id and in camelCase"),
            (#""android": {}, "android_v2": {}"#, "android_v2: FCM takes one of android and android_v2"),
            (#""android_v2": {"priority": "HIGH"}"#, "android_v2: unknown member \"priority\""),
            (
                #""apns": {"payload": {"aps": {"badge": -1}}}"#,
                "apns.payload.aps.badge: expected a whole number from 0, found the number -1"
            ),
            (
                #""apns": {"payload": {"aps": {"content_available": 1}}}"#,
                "apns.payload.aps.content_available: is the old API's name: write content-available"
            ),
            (#""apns": {"alert": {"loc-args": ["x"]}}"#, "apns.payload.aps.alert.loc-args: fills in the text that loc-key names"),
            (#""apns": {"alert": {"title-loc-args": ["x"]}}"#, "apns.payload.aps.alert.title-loc-args: fills in"),
            (#""apns": {"sound": {"critical": 1, "volume": 2}}"#, "apns.sound.volume: expected a number from 0 to 1, found the number 2"),
            (#""apns": {"relevance-score": 2}"#, "apns.relevance-score: expected a number from 0 to 1, found the number 2"),
            (#""apns": {"headers": {"apns-push-type": "silent"}}"#, "apns.headers.apns-push-type: expected one of alert, background"),
            (#""apns": {"headers": {"apns-push-type": "background"}}"#, "apns.headers.apns-push-type: a background push shows nothing"),
            (#""apns": {"headers": {"apns-id": "x"}}"#, "apns.headers.apns-id: is made by the hub"),
            (#""apns": {"timestamp": 1}"#, "apns.payload.aps.timestamp: belongs to a Live Activity"),
            (#""apns": {"payload": {"nid": 1}}"#, "apns.payload.nid: the hub adds a member of this name itself"),
            (
                #""live_activity": {"event": "start", "content-state": {}}"#,
                "apns.payload.aps: a Live Activity's start has attributes-type and attributes"
            ),
            (#""live_activity": {"content-state": {}}"#, "live_activity: has no event; write start, update or end"),
            (
                #""webpush": {"fcm_options": {"link": "http://x"}}"#,
                "webpush.fcm_options.link: expected an address that begins with https://"
            ),
            (#""webpush": {"headers": {"Topic": "a b"}}"#, "webpush.headers.Topic: expected 1 to 32"),
            (#""webpush": {"headers": {"TTL": "x"}}"#, "webpush.headers.TTL: expected seconds"),
            (#""fcm_options": {"analytics_label": "a b"}"#, "fcm_options.analytics_label: expected 1 to 50 of the characters"),
            (#""data": {"from": 1}"#, "data: cannot have \"from\": FCM keeps this name for itself"),
            (#""data": [1]"#, "data: expected an object, found a list"),
            (
                #""notification": {"sound": "x"}"#,
                "notification.sound: is no member of FCM's v1 notification: write android.notification.sound and apns.payload.aps.sound"
            ),
        ])
    func mistakes(member: String, beginning: String) {
        let shown = member.hasPrefix("\"notification\"") ? "" : #""notification": {"title": "T"}, "#
        let message = mistake("{\(shown)\(member)}")
        #expect(message.hasPrefix(beginning), "\(message)")
    }

    @Test("A silent message is not urgent") func silentIsNotUrgent() {
        #expect(mistake(#"{"data": {"a": "b"}, "android": {"priority": "high"}}"#).hasPrefix("android.priority: HIGH is for what is shown"))
        #expect(mistake(#"{"data": {"a": "b"}, "apns": {"headers": {"apns-priority": "10"}}}"#).contains("APNs refuses 10"))
    }

    @Test("A Live Activity is read from its short form") func liveActivity() throws {
        let content = try read(
            #"{"live_activity": {"token": "abcd", "event": "update", "timestamp": 5, "content-state": {"score": 3}}, "data": {"a": 1}}"#)
        #expect(content.liveActivityToken == "abcd")
        #expect(content.apns == ["event": "update", "timestamp": 5, "content-state": ["score": 3]])
    }
}
