/// Repeats what has real time for it until the machine keeps pace: an attempt that fails after more than `limit` says nothing, one
/// that fails sooner has failed.
/// - Parameter limit: less than the time that what is tested gives.
package func keepingPace<Result>(within limit: Duration, _ attempt: () throws -> Result) throws -> Result {
    for _ in 0..<50 {
        let began = ContinuousClock.now
        do { return try attempt() } catch  where ContinuousClock.now - began > limit || error is FellBehind { continue }
    }
    return try attempt()
}

/// For an attempt that has seen by itself that it took too long.
package struct FellBehind: Error {
    package init() {}
}
