internal import HubCore

/// The control service of the simulated gateways (`tandem-gateways`), for counting pushes.
final class GatewayLedger {
    /// One push that a gateway accepted.
    struct Push: Sendable {
        var token: String
        /// Milliseconds since 1970.
        var receivedAt: Int64
    }

    private let line: HTTPLine
    private let provider: QuizSession.Provider
    private var before: Int64 = 0

    /// Maximum of records that the simulators keep.
    static let recordsMax = 20_000

    /// - Parameter url: of the control service, the value of `TANDEM_GATEWAYS_CONTROL`.
    init(url: String, provider: QuizSession.Provider) throws(LoadError) {
        line = try HTTPLine(try Target(url))
        self.provider = provider
    }

    /// Clears the records and counts from now on.
    func clear() throws(LoadError) {
        _ = try line.plain("DELETE", "/requests")
        before = try total()
    }

    private func total() throws(LoadError) -> Int64 {
        let health = try line.plain("GET", "/health")
        return health["accepted"]?[provider.rawValue]?.intValue ?? 0
    }

    /// Pushes accepted since `clear`.
    func accepted() throws(LoadError) -> Int { Int(try total() - before) }

    /// The recorded pushes, at most the last `recordsMax`.
    func pushes() throws(LoadError) -> [Push] {
        let records = try line.plain("GET", "/requests?provider=\(provider.rawValue)").arrayValue ?? []
        return records.compactMap { record in
            guard record["status"]?.intValue == 200, let token = record["token"]?.stringValue, let at = record["received_at"]?.intValue
            else {
                return nil
            }
            return Push(token: token, receivedAt: at)
        }
    }
}
