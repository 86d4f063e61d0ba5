/// Repeats a test of real time until the machine keeps pace. An attempt that fails after more than `limit` is repeated; one that fails
/// sooner has failed.
/// - Parameter limit: less than the time-out under test.
package func keepingPace<Result>(within limit: Duration, _ attempt: () throws -> Result) throws -> Result {
    for _ in 0..<50 {
        let began = ContinuousClock.now
        do { return try attempt() } catch  where ContinuousClock.now - began > limit || error is FellBehind { continue }
    }
    return try attempt()
}

/// Thrown by an attempt that detects by itself that it took too long.
package struct FellBehind: Error {
    package init() {}
}
