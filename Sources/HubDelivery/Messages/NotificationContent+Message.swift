package import HubDefinitions

extension NotificationContent {
    /// The push message with this content.
    /// - Parameters:
    ///   - policy: nil for `critical`, or `sync` if the content is not visible.
    ///   - expiresAt: milliseconds since 1970, as `committedAt`.
    ///   - sequence: the event's position in its channel; 0 for an event without one.
    package func message(
        nid: String, event: String, policy: Policy? = nil, group: String?, expiresAt: Int64, committedAt: Int64, sequence: Int64 = 0
    ) -> PushMessage {
        PushMessage(
            nid: nid, event: event, kind: policy?.pushKind ?? (isVisible ? .alert : .silent), policy: policy, content: kind, title: title,
            body: body,
            image: image, data: data, apns: apns, apnsRoot: apnsRoot, apnsHeaders: apnsHeaders, apnsOptions: apnsOptions,
            liveActivityToken: liveActivityToken, android: android, androidV2: androidV2, webpush: webpush, fcmOptions: fcmOptions,
            group: group, expiresAt: expiresAt, committedAt: committedAt, sequence: sequence)
    }
}
