internal import HubCore

/// The simulated gateways (`tandem-gateways`), asked over their control service what they have seen.
final class GatewayLedger {
    /// One push that a gateway accepted.
    struct Push: Sendable {
        var token: String
        /// In the notification's data.
        var mark: EventMark?
        /// Milliseconds since 1970.
        var receivedAt: Int64
    }

    private let line: HTTPLine
    private let provider: QuizSession.Provider
    private var before: Int64 = 0

    /// The simulators keep the records of so many requests.
    static let recordsMax = 20_000

    /// - Parameter url: of the control service, as `TANDEM_GATEWAYS_CONTROL` says it.
    init(url: String, provider: QuizSession.Provider) throws(LoadError) {
        line = try HTTPLine(try Target(url))
        self.provider = provider
    }

    /// Forgets what was before.
    func clear() throws(LoadError) {
        _ = try line.plain("DELETE", "/requests")
        before = try total()
    }

    private func total() throws(LoadError) -> Int64 {
        let health = try line.plain("GET", "/health")
        return health["accepted"]?[provider.rawValue]?.intValue ?? 0
    }

    /// Accepted since `clear`.
    func accepted() throws(LoadError) -> Int { Int(try total() - before) }

    /// All of them; the last `recordsMax`.
    func pushes() throws(LoadError) -> [Push] {
        let records = try line.plain("GET", "/requests?provider=\(provider.rawValue)").arrayValue ?? []
        return records.compactMap { record in
            guard record["status"]?.intValue == 200, let token = record["token"]?.stringValue, let at = record["received_at"]?.intValue else {
                return nil
            }
            return Push(token: token, mark: record["body"].flatMap { EventMark.find(in: $0.serialized()) }, receivedAt: at)
        }
    }
}
