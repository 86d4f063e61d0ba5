internal import HubCore
internal import Synchronization

/// Wakes one task at the soonest of the times it was set to.
final class Alarm: Sendable {
    private let pending = Mutex<(at: Int64, task: Task<Void, Never>)?>(nil)

    /// - Parameters:
    ///   - time: milliseconds on the caller's clock; nil: nothing to wait for.
    ///   - ring: called once, a little late rather than early.
    func set(at time: Int64?, now: Int64, ring: @escaping @Sendable () -> Void) {
        pending.withLock { pending in
            if let current = pending, current.at > now, let time, current.at <= time { return }
            pending?.task.cancel()
            pending = nil
            guard let time else { return }
            let wait = max(0, time - now)
            let task = Task {
                do { try await Task.sleep(for: .milliseconds(wait)) } catch { return }
                ring()
            }
            pending = (time, task)
        }
    }
}
