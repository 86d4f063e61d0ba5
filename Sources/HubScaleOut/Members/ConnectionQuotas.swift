internal import HubCore
internal import Synchronization

/// Connections of each app, so that all nodes together keep an app's limit. Any thread.
///
/// Redis has an absolute number for each node and app. One script sums the others' and grants a higher one. So a call whose answer was
/// lost is made again.
final class ConnectionQuotas: Sendable {
    private struct App {
        /// Connections that are in, or that Redis has granted.
        var held = 0
        /// Number that Redis has for this node.
        var told = 0
        var limit = 0
        var waiting: [@Sendable (Bool?) -> Void] = []
        var travels = false
    }

    private struct State {
        var apps: [String: App] = [:]
    }

    private let state = Mutex(State())
    private let link: RedisLink<NodeGreeting>

    init(_ link: RedisLink<NodeGreeting>) { self.link = link }

    /// Asks for one more connection.
    /// - Parameter done: called once, on any thread: whether it is granted; nil: Redis does not answer.
    func admit(app: String, limit: Int, _ done: @escaping @Sendable (Bool?) -> Void) {
        state.withLock { state in
            state.apps[app, default: App()].limit = limit
            state.apps[app]?.waiting.append(done)
        }
        send(app)
    }

    /// One more connection of an app without a limit.
    func count(app: String) { state.withLock { $0.apps[app, default: App()].held += 1 } }

    /// A connection that was granted or counted is gone.
    func release(app: String) {
        state.withLock { state in
            // A run that began anew does not know the connections of the one before.
            if let held = state.apps[app]?.held, held > 0 { state.apps[app]?.held = held - 1 }
        }
    }

    /// Tells Redis of the apps whose numbers have changed. Call it every 250 ms.
    func tick() {
        let apps = state.withLock { state in state.apps.filter { $0.value.held != $0.value.told || !$0.value.waiting.isEmpty }.map(\.key) }
        for app in apps { send(app) }
    }

    /// Redis' memory was lost.
    func restart() { state.withLock { state in for app in state.apps.keys { state.apps[app]?.told = 0 } } }

    private func send(_ app: String) {
        let ask = state.withLock { state -> (held: Int, limit: Int, waiting: [@Sendable (Bool?) -> Void])? in
            guard let entry = state.apps[app], !entry.travels else { return nil }
            state.apps[app]?.travels = true
            state.apps[app]?.waiting = []
            return (entry.held, entry.limit, entry.waiting)
        }
        guard let ask else { return }
        let wanted = ask.held + ask.waiting.count
        link.send { greeting in
            let words = [app, "\(ask.held)", "\(wanted)", "\(ask.limit)"].map { Array($0.utf8) }
            return [greeting.call(MemberScripts.quota, words)]
        } _: { [weak self] result in
            var granted: Int?
            if case .success(let replies) = result { granted = replies[0].integer.map { Int(clamping: $0) } }
            self?.answered(app, ask.held, granted, ask.waiting)
        }
    }

    private func answered(_ app: String, _ held: Int, _ granted: Int?, _ waiting: [@Sendable (Bool?) -> Void]) {
        let admitted = granted.map { min(waiting.count, max(0, $0 - held)) }
        let goesOn = state.withLock { state -> Bool in
            state.apps[app]?.travels = false
            guard let granted, let admitted else { return false }
            state.apps[app]?.held += admitted
            state.apps[app]?.told = granted
            let isOver = state.apps[app]?.held == 0 && granted == 0 && state.apps[app]?.waiting.isEmpty == true
            if isOver { state.apps[app] = nil }
            return state.apps[app]?.waiting.isEmpty == false
        }
        for (place, done) in waiting.enumerated() { done(admitted.map { place < $0 }) }
        if goesOn { send(app) }
    }
}
