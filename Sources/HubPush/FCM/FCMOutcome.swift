internal import HubCore
internal import HubDelivery
internal import HubHTTPClient
internal import HubJSON

/// FCM's answers and what they mean (FCM, "Error codes"): by FcmError's code, else by `status`, else by the HTTP code.
enum FCMOutcome {
    static let quotaWait = Duration.seconds(60)

    /// Content of an error body. Every part may be missing: proxies in front of FCM answer in HTML.
    struct Fault: Equatable {
        var status: Int
        /// `FcmError.errorCode`.
        var code: String?
        /// The `google.rpc.Code` name.
        var rpc: String?
        var namesToken = false
        /// Paths of fields that FCM complains about, without the sentences, which quote values.
        var fields: [String] = []
        /// APNs' reason, as reported by FCM.
        var apnsReason: String?
        /// `QuotaFailure` concerns the device's quota, not the project's or a topic's.
        var isDeviceQuota = false

        init(status: Int, code: String? = nil, rpc: String? = nil, namesToken: Bool = false) {
            self.status = status
            self.code = code
            self.rpc = rpc
            self.namesToken = namesToken
        }

        init(_ answer: HTTPAnswer) {
            self.init(status: answer.status)
            // Not JSON: only the HTTP code is known.
            guard let error = (try? JSONValue(parsing: answer.body))?["error"] else { return }
            rpc = error["status"]?.stringValue
            namesToken = error["message"]?.stringValue?.lowercased().contains("registration token") ?? false
            for detail in error["details"]?.arrayValue ?? [] {
                let type = detail["@type"]?.stringValue ?? ""
                if type.hasSuffix("FcmError") { code = detail["errorCode"]?.stringValue }
                if type.hasSuffix("ApnsError") { apnsReason = detail["reason"]?.stringValue }
                if type.hasSuffix("QuotaFailure") { isDeviceQuota = Self.isOfDevice(detail) }
                for violation in detail["fieldViolations"]?.arrayValue ?? [] {
                    if let field = violation["field"]?.stringValue { fields.append(field) }
                }
            }
        }

        /// Google documents three quotas (project, device, topic), but no field that distinguishes them, so the text decides.
        private static func isOfDevice(_ detail: JSONValue) -> Bool {
            (detail["violations"]?.arrayValue ?? []).contains { violation in
                let text = [violation["subject"], violation["description"]].compactMap { $0?.stringValue?.lowercased() }.joined(
                    separator: " ")
                return text.contains("device") && !text.contains("topic")
            }
        }
    }

    /// - Parameter now: milliseconds since 1970.
    static func verdict(_ answer: HTTPAnswer, now: Int64) -> GatewayVerdict {
        if answer.status == 200 {
            // libcurl 7.88 can report a reset stream as success; only the name proves that FCM took the message.
            guard let name = plainName(answer.body) ?? (try? JSONValue(parsing: answer.body))?["name"]?.stringValue, !name.isEmpty else {
                return .retry(.transport, "200 without a message name")
            }
            return GatewayVerdict(outcome: .accepted(providerID: name))
        }
        return verdict(Fault(answer), after: RetryAfter.parse(answer.headers["retry-after"], now: now))
    }

    /// Fast path without a parser: the name in an object without other members, FCM's usual answer. Nil: needs parsing.
    static func plainName(_ body: [UInt8]) -> String? {
        var rest = body[...]
        func skipBlanks() { rest = rest.drop { $0 == 0x20 || $0 == 0x0A || $0 == 0x0D || $0 == 0x09 } }
        func take(_ text: String) -> Bool {
            skipBlanks()
            guard rest.starts(with: text.utf8) else { return false }
            rest = rest.dropFirst(text.utf8.count)
            return true
        }
        guard take("{"), take("\"name\""), take(":"), take("\"") else { return nil }
        // Plain ASCII has no escapes to undo.
        let name = rest.prefix { $0 >= 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }
        rest = rest[name.endIndex...]
        guard rest.first == UInt8(ascii: "\""), take("\""), take("}") else { return nil }
        skipBlanks()
        return rest.isEmpty ? String(decoding: name, as: UTF8.self) : nil
    }

    /// One row of the table per case.
    static func verdict(_ fault: Fault, after: Duration?) -> GatewayVerdict {
        let code = fault.code ?? ""
        switch code {
        case "UNREGISTERED": return .doubtful(code, .judgeToken)
        case "INVALID_ARGUMENT":
            return fault.namesToken
                ? .doubtful("INVALID_ARGUMENT: not a valid registration token", .judgeTokenOfKnownShape) : .rejected(describe(code, fault))
        case "SENDER_ID_MISMATCH":
            return .rejected("SENDER_ID_MISMATCH: the token belongs to another Firebase project", .markForeign)
        case "THIRD_PARTY_AUTH_ERROR":
            return .rejected(describe("THIRD_PARTY_AUTH_ERROR", fault) + ": check the APNs key uploaded to the Firebase project")
                .raising(.fcmThirdPartyAuth)
        case "QUOTA_EXCEEDED": return quota(code, fault, after: after)
        case "UNAVAILABLE", "INTERNAL": return .retry(.unavailable, code, after: after)
        // FCM knows no more than the code's name, so a retry would not help.
        case "UNSPECIFIED_ERROR": return .rejected(code)
        default: return withoutCode(fault, after: after)
        }
    }

    private static func withoutCode(_ fault: Fault, after: Duration?) -> GatewayVerdict {
        let name = fault.code.map(PeerText.identifier) ?? fault.rpc.map(PeerText.identifier) ?? "http \(fault.status)"
        switch (fault.rpc ?? "", fault.status) {
        case ("UNAUTHENTICATED", _), ("", 401):
            return .retry(.lane, "UNAUTHENTICATED: the access token was refused", after: after, .replaceAccessToken)
        case ("PERMISSION_DENIED", _), ("", 403):
            return .stopped(
                "\(name): enable the Firebase Cloud Messaging API and give the account the role to send", .stopLane,
                .fcmPermissionDenied)
        case ("RESOURCE_EXHAUSTED", _), (_, 429): return quota(name, fault, after: after)
        case ("UNAVAILABLE", _), ("INTERNAL", _), (_, 500...), (_, 408): return .retry(.unavailable, name, after: after)
        // Without FcmError a 404 is not about the token.
        case ("NOT_FOUND", _), (_, 404):
            return .stopped("\(name): check the service account's project", .stopLane, .fcmNotFound)
        default: return .rejected(describe(name, fault))
        }
    }

    /// The quota of one device slows down only that device.
    private static func quota(_ name: String, _ fault: Fault, after: Duration?) -> GatewayVerdict {
        fault.isDeviceQuota ? .retry(.deviceThrottled, name, after: after) : .retry(.throttled, name, after: after ?? quotaWait)
    }

    private static func describe(_ name: String, _ fault: Fault) -> String {
        let fields = fault.fields.prefix(4).map(PeerText.identifier)
        var text = name
        if !fields.isEmpty { text += " (\(fields.joined(separator: ", ")))" }
        if let reason = fault.apnsReason { text += " (APNs: \(PeerText.identifier(reason)))" }
        return text
    }
}
