/// The members of FCM's v1 messages and of Apple's payload, as data (FCM HTTP v1, resource `projects.messages`; Apple, "Generating a remote
/// notification").
enum ContentSchema {
    /// Four weeks, FCM's longest time to live.
    static let ttlSecondsMax: Int64 = 2_419_200
    /// Longest light or vibration. FCM names no bound, and a day is long enough for any.
    private static let effectSecondsMax: Int64 = 86_400
    private static let count: ContentShape = .whole(0...Int64(Int32.max))

    // MARK: Every platform

    /// FCM's members, and Apple's subtitle, which FCM lacks.
    static let notification = ContentObject(
        ["title": .text, "subtitle": .text, "body": .text, "image": .name],
        former: Dictionary(
            uniqueKeysWithValues: [
                ("sound", "android.notification.sound and apns.payload.aps.sound"), ("badge", "apns.payload.aps.badge"),
                ("icon", "android.notification.icon"), ("color", "android.notification.color"), ("tag", "android.notification.tag"),
                ("click_action", "android.notification.click_action, or apns.payload.aps.category"),
                ("clickAction", "android.notification.click_action, or apns.payload.aps.category"),
                ("channel_id", "android.notification.channel_id"), ("android_channel_id", "android.notification.channel_id"),
                ("title_loc_key", "android.notification.title_loc_key and apns.payload.aps.alert.title-loc-key"),
                ("body_loc_key", "android.notification.body_loc_key and apns.payload.aps.alert.loc-key"),
            ].map { ($0, "is no member of FCM's v1 notification: write \($1)") }))

    private static let analytics = ContentObject(["analytics_label": .analyticsLabel])
    static let options = analytics

    // MARK: Android

    static let androidNotification = ContentObject([
        "title": .text, "body": .text, "icon": .name, "color": .colour, "sound": .name, "tag": .name, "click_action": .name,
        "body_loc_key": .name, "body_loc_args": .list(.text), "title_loc_key": .name, "title_loc_args": .list(.text), "channel_id": .name,
        "ticker": .text, "sticky": .flag, "event_time": .time, "local_only": .flag,
        "notification_priority": .words(["UNSPECIFIED", "MIN", "LOW", "DEFAULT", "HIGH", "MAX"], prefix: "PRIORITY_"),
        "default_sound": .flag, "default_vibrate_timings": .flag, "default_light_settings": .flag,
        "vibrate_timings": .list(.duration(secondsMax: effectSecondsMax)),
        "visibility": .words(["PRIVATE", "PUBLIC", "SECRET"]), "notification_count": count,
        "light_settings": .object(
            ContentObject([
                "color": .lightColour, "light_on_duration": .duration(secondsMax: effectSecondsMax),
                "light_off_duration": .duration(secondsMax: effectSecondsMax),
            ])), "image": .name, "bypass_proxy_notification": .flag, "proxy": .words(["ALLOW", "DENY", "IF_PRIORITY_LOWERED"]),
    ])

    private static let androidShared = ContentObject(
        [
            "ttl": .duration(secondsMax: ttlSecondsMax), "collapse_key": .name, "restricted_package_name": .name,
            "data": .data, "fcm_options": .object(analytics), "direct_boot_ok": .flag, "bandwidth_constrained_ok": .flag,
            "restricted_satellite_ok": .flag,
        ],
        former: [
            "time_to_live": "is the old API's name: write ttl: \"600s\"", "timeToLive": "is the old API's name: write ttl: \"600s\"",
            "delay_while_idle": "is gone: write priority: normal", "collapseKeys": "write collapse_key",
        ])

    static let androidConfig = ContentObject([
        "priority": .words(["HIGH", "NORMAL"]), "notification": .object(androidNotification),
    ]).merged(with: androidShared)

    /// AndroidConfig, with the members of its notification on the same level.
    static let androidFlat = androidConfig.merged(with: androidNotification)

    static let androidV2 = ContentObject([
        "remote_notification": .object(
            ContentObject([
                "notification": .object(
                    ContentObject(["id": .whole(Int64(Int32.min)...Int64(Int32.max))]).merged(with: androidNotification.without("proxy"))),
                "mutable_content": .flag, "use_as_v1_data_message": .flag,
            ])), "background_sync": .object(ContentObject([:])),
    ]).merged(with: androidShared)

    // MARK: Apple

    static let alert = ContentObject(
        [
            "title": .text, "body": .text, "subtitle": .text, "launch-image": .name, "title-loc-key": .name, "title-loc-args": .list(.text),
            "subtitle-loc-key": .name, "subtitle-loc-args": .list(.text), "loc-key": .name, "loc-args": .list(.text),
        ], takesCamelCase: false)

    private static let sound = ContentObject(
        ["critical": .zeroOrOne, "name": .name, "volume": .number(0...1)], takesCamelCase: false)

    static let activity = ContentObject(
        [
            "event": .words(["start", "update", "end"]), "timestamp": .whole(0...Int64.max), "content-state": .open,
            "stale-date": .whole(0...Int64.max), "dismissal-date": .whole(0...Int64.max), "attributes-type": .name, "attributes": .open,
        ], takesCamelCase: false)

    static let aps = ContentObject(
        [
            "sound": .either(.name, .object(sound)), "badge": count, "thread-id": .name, "category": .name,
            "content-available": .zeroOrOne, "mutable-content": .zeroOrOne, "target-content-id": .name,
            "interruption-level": .words(["passive", "active", "time-sensitive", "critical"]), "relevance-score": .number(nil),
            "filter-criteria": .name, "alert": .either(.text, .object(alert)),
        ], takesCamelCase: false,
        former: [
            "content_available": "is the old API's name: write content-available", "contentAvailable": "write content-available",
            "mutable_content": "is the old API's name: write mutable-content", "mutableContent": "write mutable-content",
            "threadId": "write thread-id",
        ]
    ).merged(with: activity)

    /// All headers except `authorization` and `apns-id`, which the hub sets.
    static let apnsHeaders = ContentObject(
        [
            "apns-priority": .words(["10", "5", "1"]), "apns-push-type": .words(APNsPushType.allCases.map(\.rawValue)),
            "apns-expiration": .name, "apns-collapse-id": .name, "apns-topic": .name,
        ], takesCamelCase: false,
        former: [
            "authorization": "is made by the hub; leave it out", "apns-id": "is made by the hub, the same on every retry; leave it out",
        ])

    private static let apnsOptions = ContentObject(["analytics_label": .analyticsLabel, "image": .name])

    /// FCM's ApnsConfig. Only `aps` in `payload` has known members; all others are the app's own.
    static let apnsConfig = ContentObject([
        "headers": .object(apnsHeaders), "payload": .open, "fcm_options": .object(apnsOptions), "live_activity_token": .name,
    ])

    /// ApnsConfig, with the members of `aps` on the same level.
    static let apnsFlat = aps.merged(with: apnsConfig)

    /// Members in which a template that is a single tag keeps the type of its value.
    static let typedMembers: Set<String> = [
        "content-state", "attributes", "timestamp", "stale-date", "dismissal-date", "badge", "notification_count", "relevance-score",
    ]

    /// Whether a member is the app's own, in a block that reaches the app as JSON. A template that is a single tag keeps its value's type
    /// there, too.
    static func isOfApp(_ path: [String]) -> Bool {
        path == ["webpush", "notification", "data"] || path.count == 3 && path.starts(with: ["apns", "payload"]) && path[2] != "aps"
    }

    /// The short form of a Live Activity: its members of `aps`, and the activity's own token.
    static let liveActivity = ContentObject(["token": .text], takesCamelCase: false).merged(with: activity)

    // MARK: Web

    static let webpush = ContentObject([
        "headers": .object(
            ContentObject(
                ["TTL": .name, "Urgency": .words(["very-low", "low", "normal", "high"]), "Topic": .name], takesCamelCase: false)),
        "data": .data, "notification": .open,
        "fcm_options": .object(ContentObject(["link": .httpsLink, "analytics_label": .analyticsLabel])),
    ])
}
