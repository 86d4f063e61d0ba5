package import HubDelivery

/// Reason for a push that was not accepted, as a word of a closed set: usable as a metric's label.
package enum PushReason {
    /// Any reason outside the set.
    package static let other = "other"

    private static let words: Set<String> = [
        // APNs
        "BadCollapseId", "BadDeviceToken", "BadExpirationDate", "BadMessageId", "BadPriority", "BadTopic", "DeviceTokenNotForTopic",
        "DuplicateHeaders", "IdleTimeout", "InvalidPushType", "MissingDeviceToken", "MissingTopic", "PayloadEmpty", "TopicDisallowed",
        "BadCertificate", "BadCertificateEnvironment", "ExpiredProviderToken", "Forbidden", "InvalidProviderToken",
        "MissingProviderToken", "UnrelatedKeyIdInToken", "BadEnvironmentKeyIdInToken", "BadPath", "MethodNotAllowed", "ExpiredToken",
        "Unregistered", "PayloadTooLarge", "TooManyProviderTokenUpdates", "TooManyRequests", "InternalServerError",
        "ServiceUnavailable", "Shutdown",
        // FCM, including google.rpc.Code
        "INVALID_ARGUMENT", "UNREGISTERED", "SENDER_ID_MISMATCH", "THIRD_PARTY_AUTH_ERROR", "QUOTA_EXCEEDED", "UNAVAILABLE",
        "INTERNAL", "UNSPECIFIED_ERROR", "NOT_FOUND", "PERMISSION_DENIED", "UNAUTHENTICATED", "RESOURCE_EXHAUSTED",
        // the token endpoint
        "invalid_grant",
    ]

    /// The gateway's own word if known, else the kind of retry, else `other`; empty if accepted.
    package static func word(of outcome: PushOutcome) -> String {
        guard let reason = outcome.reason else { return "" }
        var text = reason[...]
        var cause: RetryCause?
        if case .retry = outcome {
            cause = RetryCause(reason: reason)
            if let cause { text = text.dropFirst(cause.rawValue.utf8.count + 2) }
        }
        // A stopped lane's refusal was never sent: it is caused by the lane, not by the gateway's answer.
        if text.hasPrefix("stopped: ") { return cause?.label ?? other }
        if text.hasPrefix("token endpoint: ") { text = text.dropFirst("token endpoint: ".count) }
        let word = String(text.prefix { $0.isLetter || $0.isNumber || $0 == "_" })
        return words.contains(word) ? word : cause?.label ?? other
    }
}

extension RetryCause {
    /// The cause as one word.
    var label: String { rawValue.split(separator: " ").joined(separator: "_") }
}
