/// Waits for a condition that another thread or task brings about; false when it has not come in a minute.
///
/// Sleeps between looks: a loop that only yields keeps one of two cores from whatever it waits for.
package func eventually(within limit: Duration = .seconds(60) * SlowBuild.factor, _ condition: () async -> Bool) async -> Bool {
    let end = ContinuousClock.now + limit
    while await !condition() {
        guard ContinuousClock.now < end else { return false }
        do { try await Task.sleep(for: .milliseconds(1)) } catch { return await condition() }
    }
    return true
}
