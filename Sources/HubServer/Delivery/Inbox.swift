internal import Synchronization

/// What waits for one task: posted from any thread in order, taken out all at once by the one that works it off.
final class Inbox<Item: Sendable>: Sendable {
    private struct State {
        var items: [Item] = []
        var waiter: CheckedContinuation<Void, Never>?
        var isClosed = false
    }

    private let state = Mutex(State())

    /// Appends an item that must not be lost. Nothing happens once the inbox is closed.
    func post(_ item: Item) {
        _ = append(item, limit: .max)
    }

    /// Appends an item unless `limit` are waiting; false: not taken.
    func offer(_ item: Item, limit: Int) -> Bool {
        append(item, limit: limit)
    }

    private func append(_ item: Item, limit: Int) -> Bool {
        let (isTaken, waiter) = state.withLock { state -> (Bool, CheckedContinuation<Void, Never>?) in
            guard !state.isClosed, state.items.count < limit else { return (false, nil) }
            state.items.append(item)
            defer { state.waiter = nil }
            return (true, state.waiter)
        }
        waiter?.resume()
        return isTaken
    }

    /// Everything posted since the last call, at least one item; nil when the inbox is closed and empty. For one task only.
    func next() async -> [Item]? {
        while true {
            let (items, isClosed) = state.withLock { state in
                defer { state.items = [] }
                return (state.items, state.isClosed)
            }
            if !items.isEmpty { return items }
            if isClosed { return nil }
            await withCheckedContinuation { continuation in
                let goesOn = state.withLock { state in
                    if state.items.isEmpty, !state.isClosed {
                        state.waiter = continuation
                        return false
                    }
                    return true
                }
                if goesOn { continuation.resume() }
            }
        }
    }

    /// Items that wait.
    var count: Int { state.withLock { $0.items.count } }

    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Takes nothing more; what is there is still worked off.
    func close() {
        let waiter = state.withLock { state in
            state.isClosed = true
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }
}
