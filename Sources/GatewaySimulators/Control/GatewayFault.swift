package import HubCore

/// The simulated service of a request or a fault.
package enum GatewayProvider: String, Sendable, CaseIterable {
    case apns, fcm
    /// The token endpoint of the service account.
    case oauth
}

/// Apple's two environments, each on a port of its own.
package enum SimulatedEnvironment: String, Sendable, CaseIterable { case production, sandbox }

/// A scripted answer: replaces the success of the next request for one token.
///
/// A request that the gateway refuses anyway is refused, and uses up no fault.
package struct GatewayFault: Sendable, Equatable {
    /// The effect of a fault on its request.
    package enum Action: String, Sendable, CaseIterable {
        /// Answers with `status` and `reason`. With neither, the success is only delayed by `delayMilliseconds`.
        case answer
        /// RST_STREAM INTERNAL_ERROR.
        case reset
        /// RST_STREAM REFUSED_STREAM: not processed, safe to retry.
        case refuse
        /// Success, and a GOAWAY after which no new stream is processed.
        case goaway
        /// GOAWAY whose last stream is the previous one: not processed, safe to retry.
        case goawayUnprocessed = "goaway_unprocessed"
        /// GOAWAY with ENHANCE_YOUR_CALM; the stream is not processed.
        case calm
        /// Closes the connection without an answer.
        case close
        /// An HTML page with `status` (502 by default), like a proxy's in front of the gateway.
        case html
    }

    package var action: Action
    /// HTTP status; nil: the one that belongs to `reason`.
    package var status: Int?
    /// APNs' reason, FCM's errorCode or google.rpc status name, or OAuth's error; nil: the usual one of `status`.
    package var reason: String?
    /// The error message of FCM and OAuth.
    package var message: String?
    /// Milliseconds since 1970 in APNs' 410; nil: the time of the answer.
    package var timestamp: Int64?
    /// The header `retry-after`, verbatim: seconds or an HTTP date.
    package var retryAfter: String?
    package var delayMilliseconds: Int
    /// Number of requests that get the fault; nil: all until it is removed.
    package var times: Int?
    /// FCM: leaves the details out of the error's body.
    package var withoutDetails: Bool
    /// APNs only: the environment of the fault; nil: both.
    package var environment: SimulatedEnvironment?
    /// Pads the answer's body with spaces to this length.
    package var bodyBytes = 0
    /// Total length of the meaningless headers added to the answer.
    package var headerBytes = 0

    package init(
        action: Action = .answer, status: Int? = nil, reason: String? = nil, message: String? = nil, timestamp: Int64? = nil,
        retryAfter: String? = nil, delayMilliseconds: Int = 0, times: Int? = nil, withoutDetails: Bool = false,
        environment: SimulatedEnvironment? = nil, bodyBytes: Int = 0, headerBytes: Int = 0
    ) {
        self.action = action
        self.status = status
        self.reason = reason
        self.message = message
        self.timestamp = timestamp
        self.retryAfter = retryAfter
        self.delayMilliseconds = delayMilliseconds
        self.times = times
        self.withoutDetails = withoutDetails
        self.environment = environment
        self.bodyBytes = bodyBytes
        self.headerBytes = headerBytes
    }

    /// Reads the control API's form. The error's message is for the script's author.
    package init(json: JSONValue) throws(GatewayError) {
        guard case .object(let members) = json else { throw GatewayError("a fault is a JSON object or an array of them") }
        let known = [
            "action", "status", "reason", "message", "timestamp", "retry_after", "delay_ms", "times", "without_details",
            "environment", "body_bytes", "header_bytes",
        ]
        if let unknown = members.keys.sorted().first(where: { !known.contains($0) }) {
            throw GatewayError("unknown member \"\(unknown)\" of a fault; known are \(known.joined(separator: ", "))")
        }
        self.init()
        if let value = members["action"] {
            guard let action = value.stringValue.flatMap(Action.init(rawValue:)) else {
                let names = Action.allCases.map(\.rawValue).joined(separator: ", ")
                throw GatewayError("\"action\" of a fault is one of \(names)")
            }
            self.action = action
        }
        status = try Self.integer(members, "status", 100...599)
        reason = try Self.string(members, "reason")
        message = try Self.string(members, "message")
        timestamp = try Self.integer(members, "timestamp", 0...Int.max).map(Int64.init)
        if let seconds = members["retry_after"]?.intValue {
            retryAfter = String(seconds)
        } else {
            retryAfter = try Self.string(members, "retry_after")
        }
        delayMilliseconds = try Self.integer(members, "delay_ms", 0...SimulatorLimits.delayMillisecondsMax) ?? 0
        bodyBytes = try Self.integer(members, "body_bytes", 0...SimulatorLimits.faultBodyBytesMax) ?? 0
        headerBytes = try Self.integer(members, "header_bytes", 0...SimulatorLimits.faultHeaderBytesMax) ?? 0
        times = try Self.integer(members, "times", 1...Int.max)
        if let value = members["without_details"] {
            guard let flag = value.boolValue else { throw GatewayError("\"without_details\" of a fault is true or false") }
            withoutDetails = flag
        }
        if let value = members["environment"] {
            guard let environment = value.stringValue.flatMap(SimulatedEnvironment.init(rawValue:)) else {
                throw GatewayError("\"environment\" of a fault is production or sandbox")
            }
            self.environment = environment
        }
        // The value becomes a header, where a control character would end the connection instead of scripting an answer.
        guard retryAfter?.utf8.allSatisfy({ (0x20..<0x7F).contains($0) }) ?? true else {
            throw GatewayError("\"retry_after\" of a fault is printable ASCII")
        }
    }

    /// The control API's form.
    package var json: JSONValue {
        var members: [String: JSONValue] = ["action": .string(action.rawValue), "delay_ms": .int(Int64(delayMilliseconds))]
        members["status"] = status.map { .int(Int64($0)) }
        members["reason"] = reason.map(JSONValue.string)
        members["message"] = message.map(JSONValue.string)
        members["timestamp"] = timestamp.map(JSONValue.int)
        members["retry_after"] = retryAfter.map(JSONValue.string)
        members["times"] = times.map { .int(Int64($0)) }
        if withoutDetails { members["without_details"] = true }
        if bodyBytes > 0 { members["body_bytes"] = .int(Int64(bodyBytes)) }
        if headerBytes > 0 { members["header_bytes"] = .int(Int64(headerBytes)) }
        members["environment"] = environment.map { .string($0.rawValue) }
        return .object(members)
    }

    private static func integer(
        _ members: [String: JSONValue], _ name: String, _ range: ClosedRange<Int>
    ) throws(GatewayError) -> Int? {
        guard let value = members[name], value != .null else { return nil }
        guard let number = value.intValue, let number = Int(exactly: number), range.contains(number) else {
            throw GatewayError("\"\(name)\" of a fault is a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    private static func string(_ members: [String: JSONValue], _ name: String) throws(GatewayError) -> String? {
        guard let value = members[name], value != .null else { return nil }
        guard let text = value.stringValue else { throw GatewayError("\"\(name)\" of a fault is a string") }
        return text
    }
}
