/// Waits for a condition that another thread or task brings about; false when it has not come in a minute of this task's own.
///
/// Sleeps between looks: a loop that only yields keeps one of two cores from whatever it waits for. A look that comes late because
/// other tasks have the threads is not time that the condition had: it costs no more than one that comes in time.
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
