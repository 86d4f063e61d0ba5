internal import HubCore
internal import HubDelivery
internal import HubHTTPClient
internal import HubJSON

/// APNs' answers and what they mean (Apple, "Handling notification responses from APNs").
enum APNsOutcome {
    /// - Parameters:
    ///   - requestID: the sent `apns-id`, for an answer without one.
    ///   - now: milliseconds since 1970.
    static func verdict(_ answer: HTTPAnswer, requestID: String, now: Int64) -> GatewayVerdict {
        // A proxy answers for APNs, which knows HTTP/2 only.
        guard answer.version == .http2 else {
            return .retry(.transport, "APNs answered without HTTP/2: see what proxy is in between", .newConnection).raising(
                .apnsWithoutHTTP2)
        }
        if answer.status == 200 {
            return GatewayVerdict(outcome: .accepted(providerID: answer.headers["apns-id"] ?? requestID))
        }
        let document = try? JSONValue(parsing: answer.body)
        return verdict(
            status: answer.status, reason: document?["reason"]?.stringValue ?? "", timestamp: document?["timestamp"]?.intValue,
            after: RetryAfter.parse(answer.headers["retry-after"], now: now))
    }

    /// One row of the table per case.
    /// - Parameter timestamp: from a 410: time of the token's death in milliseconds since 1970.
    static func verdict(status: Int, reason: String, timestamp: Int64?, after: Duration?) -> GatewayVerdict {
        let name = reason.isEmpty ? "http \(status)" : PeerText.identifier(reason)
        switch (status, reason) {
        case (400, "BadDeviceToken"):
            return .doubtful("BadDeviceToken: malformed, another app's, or of the other environment", .tryOtherEnvironment)
        case (400, "DeviceTokenNotForTopic"):
            return .doubtful("DeviceTokenNotForTopic: the token belongs to another bundle id than APNS_TOPIC", .judgeToken)
        case (400, "BadTopic"), (400, "MissingTopic"), (400, "TopicDisallowed"):
            return .stopped("\(name): check APNS_TOPIC and what the key may send to", .stopTopic, .apnsBadTopic)
        case (400, "IdleTimeout"): return .retry(.transport, name, after: after, .resendOnNewConnection)
        case (403, "ExpiredProviderToken"): return .retry(.lane, name, after: after, .replaceProviderToken)
        case (403, "UnrelatedKeyIdInToken"):
            return .retry(.lane, name, after: after, .resendOnNewConnection).raising(.apnsBadKey)
        case (403, "BadEnvironmentKeyIdInToken"):
            return .stopped("\(name): the key is for the other APNs environment", .stopLane, .apnsWrongEnvironmentKey)
        case (403, "InvalidProviderToken"), (403, "MissingProviderToken"):
            return .stopped("\(name): check APNS_KEY_PATH, APNS_KEY_ID and APNS_TEAM_ID", .stopLane, .apnsBadKey)
        case (403, "Forbidden"), (403, "BadCertificate"), (403, "BadCertificateEnvironment"):
            return .rejected("\(name): look up the key and the app in Apple's developer account", .stopLane).raising(.apnsForbidden)
        case (410, _): return GatewayVerdict(outcome: .dead(reason: name, since: timestamp))
        // The payload was built within the limit with its text cut already, so nothing is left to cut.
        case (413, _): return .rejected("\(name): shorten the definition's data")
        case (429, "TooManyProviderTokenUpdates"):
            return .retry(.lane, name, after: after, .keepOlderProviderToken).raising(.apnsTokenUpdates)
        case (429, _): return .retry(.deviceThrottled, name, after: after)
        case (500..., _): return .retry(.apnsUnavailable, name, after: after, .newConnection)
        // BadCollapseId, BadExpirationDate, BadMessageId, BadPriority, InvalidPushType, DuplicateHeaders, PayloadEmpty,
        // MissingDeviceToken, BadPath, MethodNotAllowed and future reasons: the hub's own mistakes.
        default: return .rejected(name)
        }
    }
}
