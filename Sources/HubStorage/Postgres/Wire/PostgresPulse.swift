import Synchronization

/// When any connection heard of the server last: a server that is busy is not one that is gone. Any thread.
///
/// A call that gives up and comes again doubles the work of a server that has too much of it. So a deadline that passes while others hear
/// the server is extended.
final class PostgresPulse: Sendable {
    /// Time beyond a deadline that the server has if it answers others.
    static let patienceMax: Duration = .seconds(5)
    /// Milliseconds between two looks at the pulse.
    static let lookEvery: Int64 = 50
    /// A server that was heard so long ago counts as silent. Each node asks it twice a second.
    private static let freshFor: Duration = .seconds(1)

    private let heard = Mutex<ContinuousClock.Instant?>(nil)

    var isFresh: Bool { heard.withLock { $0.map { ContinuousClock.now < $0 + Self.freshFor } ?? false } }

    func beat() { heard.withLock { $0 = .now } }
}
