/// Waits for a condition that another thread or task brings about. False if it is not met within the limit.
///
/// Sleeps between checks: a loop that only yields would occupy one of two cores. Each wait costs at most 20 ms of the limit, however late
/// busy threads wake this task.
package func eventually(within limit: Duration = .seconds(60) * SlowBuild.factor, _ condition: () async -> Bool) async -> Bool {
    var left = limit
    while await !condition() {
        guard left > .zero else { return false }
        let begin = ContinuousClock.now
        do { try await Task.sleep(for: .milliseconds(1)) } catch { return await condition() }
        left -= min(ContinuousClock.now - begin, .milliseconds(20))
    }
    return true
}
