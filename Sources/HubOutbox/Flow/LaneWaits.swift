internal import HubCore
internal import HubDelivery

/// Lanes without room, and when each is asked again.
struct LaneWaits: Sendable {
    private struct Wait {
        /// Milliseconds since 1970.
        let until: Int64
        /// False: a push that ends may make room earlier.
        let isFirm: Bool
    }

    private var waits: [PushRoute: Wait] = [:]
    /// Lanes that had no room since the last `askAgain`.
    private var refused: Set<PushRoute> = []

    /// Longest wait for the end of a push, in milliseconds: in case no end is reported.
    private static let endMax: Int64 = 1_000

    /// Lets all lanes be asked again whose wait is not firm, because a push has come or ended.
    mutating func askAgain() {
        if !refused.isEmpty { refused = [] }
    }

    /// - Parameter now: milliseconds since 1970.
    func isAskable(_ route: PushRoute, now: Int64) -> Bool {
        if refused.contains(route) { return false }
        return waits[route].map { !$0.isFirm || $0.until <= now } ?? true
    }

    /// Not to be asked again before `askAgain`.
    mutating func refuse(_ route: PushRoute) { refused.insert(route) }

    /// - Parameters:
    ///   - again: as the lane says; nil: when a push has ended.
    ///   - now: milliseconds since 1970.
    mutating func wait(on route: PushRoute, again: Duration?, now: Int64) {
        // Rounded up: a lane that is asked too early has no room yet.
        waits[route] =
            again.map { Wait(until: now + max(1, $0.milliseconds + 1), isFirm: true) } ?? Wait(until: now + Self.endMax, isFirm: false)
    }

    mutating func end(on route: PushRoute) { waits[route] = nil }

    /// The time to ask the first of these lanes, in milliseconds since 1970; nil: there is none.
    func soonest(of routes: some Sequence<PushRoute>) -> Int64? { routes.map { waits[$0]?.until ?? 0 }.min() }

    mutating func shift(by milliseconds: Int64) {
        waits = waits.mapValues { Wait(until: $0.until + milliseconds, isFirm: $0.isFirm) }
    }
}
