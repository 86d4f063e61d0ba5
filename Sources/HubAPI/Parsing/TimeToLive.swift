internal import HubCore

/// Lifetime of a push in a request: seconds, or a text such as `30s`, `5m`, `2h`, `3d`.
enum TimeToLive {
    /// Four weeks, the maximum of FCM.
    static let secondsMax: Int64 = 28 * 86_400

    /// From the member `ttl`; nil if missing.
    static func milliseconds(_ body: JSONBody) throws(APIError) -> Int64? {
        guard let value = body["ttl"] else { return nil }
        guard let seconds = seconds(value), (1...secondsMax).contains(seconds) else {
            throw APIError(400, "ttl must be 1 to \(secondsMax) seconds: send a number of seconds, or a text such as 30s, 5m, 2h or 3d")
        }
        return seconds * 1000
    }

    private static func seconds(_ value: JSONValue) -> Int64? {
        switch value {
        case .int(let seconds): seconds
        // In JSON, 60.0 is the number 60.
        case .double(let seconds): Int64(exactly: seconds)
        case .string(let text): seconds(of: text)
        default: nil
        }
    }

    private static func seconds(of text: String) -> Int64? {
        let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
        guard let unit = text.last.flatMap({ units[$0] }), let number = Int64(text.dropLast()), number >= 0 else { return nil }
        let (seconds, overflow) = number.multipliedReportingOverflow(by: unit)
        return overflow ? nil : seconds
    }
}
