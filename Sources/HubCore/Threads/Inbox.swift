internal import Synchronization

/// A mailbox whose reader is a task: any thread posts, and one task sleeps until something comes.
package final class Inbox<Item: Sendable>: Sendable {
    private let mailbox: Mailbox<Item>
    private let bell: Bell

    package init() {
        let bell = Bell()
        self.bell = bell
        mailbox = Mailbox { bell.ring() }
    }

    /// Appends an item that must not be lost. A closed inbox drops it.
    package func post(_ item: Item) { mailbox.post(item) }

    /// Appends an item unless `limit` are waiting.
    /// - Returns: false if the inbox is full or closed.
    package func offer(_ item: Item, limit: Int) -> Bool { mailbox.offer(item, limit: limit).isTaken }

    /// Everything posted since the last call, at least one item; nil when the inbox is closed and empty. For one task only.
    package func next() async -> [Item]? {
        var items: [Item] = []
        while mailbox.drain(into: &items) {
            if !items.isEmpty { return items }
            await bell.rung()
        }
        return nil
    }

    /// Number of waiting items.
    package var count: Int { mailbox.count }

    package var isClosed: Bool { mailbox.isClosed }

    /// Takes nothing more. Waiting items are still handed out.
    package func close() { mailbox.close() }
}

/// Suspends one task until another thread rings. A ring without a waiting task counts for the next wait.
private final class Bell: Sendable {
    private enum State {
        case silent
        case rung
        case awaited(CheckedContinuation<Void, Never>)
    }

    private let state = Mutex(State.silent)

    func ring() {
        let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard case .awaited(let waiter) = state else {
                state = .rung
                return nil
            }
            state = .silent
            return waiter
        }
        waiter?.resume()
    }

    /// - Precondition: no other task waits.
    func rung() async {
        await withCheckedContinuation { waiter in
            let isRung = state.withLock { state in
                switch state {
                case .rung:
                    state = .silent
                    return true
                case .silent:
                    state = .awaited(waiter)
                    return false
                case .awaited: preconditionFailure("two tasks wait for one inbox")
                }
            }
            if isRung { waiter.resume() }
        }
    }
}
