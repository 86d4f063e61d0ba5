package import HubCore
internal import Synchronization

/// The facts of the moment, for those who look. Any thread.
///
/// Nothing is collected while nobody looks: `isWatched` is one atomic read. Each listener has a filter and a bounded ring of its own, so a
/// busy app hides no quiet person. Listeners ask again and again; nobody is woken by a fact.
package final class LiveStream: Sendable {
    private struct Event {
        let app: String
        let channel: String
        let committedAt: Int64
        let users: [String]
    }

    private struct State {
        /// In an array, whose elements are changed in place.
        var listeners: [LiveListener] = []
        var lastListener: UInt64
        /// Kept events that were committed while somebody looked.
        var events: [String: Event] = [:]
        var order: [String] = []
        var userCount = 0
        var sweptAt: Int64 = 0

        func index(of listener: UInt64, app: String) -> Int? {
            listeners.firstIndex { $0.id == listener && $0.filter.app == app }
        }
    }

    /// Listeners at once; one more is refused. Listeners of other nodes are counted apart.
    package static let listenersMax = 32
    package static let relayedMax = 64
    /// Milliseconds after which a listener that has not asked again is forgotten: longer than a question waits.
    package static let silenceMax: Int64 = 40_000
    private static let eventsMax = 2_048
    private static let usersMax = 100_000

    private let time: any TimeSource
    private let watched = Atomic<Bool>(false)
    /// Facts of loops that were left out, and are not counted for the listeners yet.
    private let missed = Atomic<UInt64>(0)
    private let closed = Atomic<Bool>(false)
    private let state: Mutex<State>

    /// - Parameter seed: differs from process to process, so that no cursor of another one means anything here.
    package init(time: any TimeSource, seed: UInt64 = .random(in: 1..<1 << 40)) {
        self.time = time
        state = Mutex(State(lastListener: seed << 20))
    }

    /// Whether anybody looks. One atomic read.
    package var isWatched: Bool { watched.load(ordering: .relaxed) }

    /// The hub stops: nobody waits any more.
    package func close() { closed.store(true, ordering: .releasing) }
    /// Whether the hub stops.
    package var isClosed: Bool { closed.load(ordering: .acquiring) }

    // MARK: Telling

    /// Notes a fact. `detail` is made only if somebody wants it.
    package func note(app: String, _ kind: LiveFact.Kind, channel: String?, user: String?, _ detail: () -> LiveFact.Detail) {
        guard isWatched else { return }
        state.withLock { note(&$0, app: app, kind, channel: channel, user: user, detail) }
    }

    /// The same from a loop's thread, which never waits: the fact is left out, and counted, while another thread is here.
    package func noteWithoutWaiting(
        app: String, _ kind: LiveFact.Kind, channel: String?, user: String?, _ detail: () -> LiveFact.Detail
    ) {
        guard isWatched else { return }
        let done: Void? = state.withLockIfAvailable { note(&$0, app: app, kind, channel: channel, user: user, detail) }
        if done == nil { missed.wrappingAdd(1, ordering: .relaxed) }
    }

    /// Notes a committed event and its decisions.
    package func note(_ commit: EventCommit, sequence: Int64) {
        guard isWatched else { return }
        let (event, users) = (commit.event, commit.recipients?.snapshot.users ?? [])
        state.withLock { state in
            keep(&state, event, users)
            note(&state, app: event.app, .event, channel: event.channel, user: nil) {
                .event(name: event.name, id: event.id, policy: event.policy, recipients: users.count, sequence: sequence)
            }
            for index in state.listeners.indices { decide(&state.listeners[index], commit, users) }
        }
    }

    private func decide(_ listener: inout LiveListener, _ commit: EventCommit, _ users: [String]) {
        let (event, filter, now) = (commit.event, listener.filter, now)
        guard let notes = commit.recipients?.notes, filter.wants(.decision, app: event.app, channel: event.channel) else { return }
        for (place, user) in users.enumerated() where filter.user == nil || filter.user == user {
            guard listener.admits(now: now) else {
                if filter.user == nil { listener.skip(UInt64(users.count - place - 1)) }
                return
            }
            let detail = LiveFact.Detail.decision(event: event.id, notes[place])
            listener.add(LiveFact(at: time.wallMilliseconds, channel: event.channel, user: user, detail))
        }
    }

    /// Notes receipts of recipients, by their places, of an event that was noted.
    /// - Parameter at: milliseconds since 1970.
    package func noteReceipts(of id: String, places: [Int], at: Int64) {
        guard isWatched else { return }
        state.withLock { state in
            guard let event = state.events[id] else { return }
            for place in places where event.users.indices.contains(place) {
                note(&state, app: event.app, .receipt, channel: event.channel, user: event.users[place]) {
                    .receipt(event: id, after: max(0, at - event.committedAt))
                }
            }
        }
    }

    /// Notes results of pushes. Only those of events that were noted have a channel.
    package func note(_ pushes: [PushRecord]) {
        guard isWatched else { return }
        state.withLock { state in
            for push in pushes {
                note(&state, app: push.app, .push, channel: state.events[push.event]?.channel, user: push.user) {
                    .push(
                        event: push.event, nid: push.nid, device: push.device, push.state, answer: push.attempt?.answer ?? push.outcome,
                        attempt: push.attempt?.number ?? push.attempts)
                }
            }
        }
    }

    /// Notes what another node has noted for a listener.
    /// - Parameter skipped: facts that were left out there.
    package func take(_ facts: [LiveFact], skipped: UInt64, for listener: UInt64) {
        state.withLock { state in
            let now = now
            guard let index = state.listeners.firstIndex(where: { $0.id == listener }) else { return }
            if skipped > 0 { state.listeners[index].skip(skipped) }
            for fact in facts where state.listeners[index].admits(now: now) { state.listeners[index].add(fact) }
        }
    }

    private func note(
        _ state: inout State, app: String, _ kind: LiveFact.Kind, channel: String?, user: String?, _ detail: () -> LiveFact.Detail
    ) {
        let now = now
        sweep(&state, now)
        var fact: LiveFact?
        for index in state.listeners.indices {
            guard state.listeners[index].filter.wants(kind, app: app, channel: channel, user: user),
                state.listeners[index].admits(now: now)
            else { continue }
            let told = fact ?? LiveFact(at: time.wallMilliseconds, channel: channel, user: user, detail())
            fact = told
            state.listeners[index].add(told)
        }
    }

    private func keep(_ state: inout State, _ event: EventRecord, _ users: [String]) {
        guard state.events[event.id] == nil, users.count <= Self.usersMax else { return }
        state.events[event.id] = Event(app: event.app, channel: event.channel, committedAt: event.committedAt, users: users)
        state.order.append(event.id)
        state.userCount += users.count
        while state.order.count > Self.eventsMax || state.userCount > Self.usersMax {
            let oldest = state.order.removeFirst()
            state.userCount -= state.events.removeValue(forKey: oldest)?.users.count ?? 0
        }
    }

    // MARK: Asking

    /// The facts behind a cursor. Nil: there are too many listeners.
    /// - Parameter cursor: of the last page; nil begins to listen. One of another filter of the app begins anew in the same place, and any
    ///   other one begins anew, each with a gap.
    package func page(_ filter: LiveFilter, after cursor: String?, isRelayed: Bool = false) -> LivePage? {
        let now = now
        return state.withLock { state in
            sweep(&state, now, isDue: true)
            countMissed(&state)
            if let place = Place(cursor), let index = state.index(of: place.listener, app: filter.app) {
                if state.listeners[index].filter == filter {
                    state.listeners[index].ask(now: now)
                    return state.listeners[index].page(after: place.fact, skipped: place.skipped)
                }
                state.listeners.remove(at: index)
            }
            let most = isRelayed ? Self.relayedMax : Self.listenersMax
            guard state.listeners.count(where: { $0.isRelayed == isRelayed }) < most else { return nil }
            state.lastListener += 1
            let listener = LiveListener(state.lastListener, filter, isRelayed: isRelayed, now: now)
            state.listeners.append(listener)
            watched.store(true, ordering: .relaxed)
            var page = listener.page(after: 0, skipped: 0)
            page.isGap = cursor != nil
            return page
        }
    }

    /// Listeners that ask this node, with what they want.
    package var listeners: [(id: UInt64, filter: LiveFilter)] {
        guard isWatched else { return [] }
        return state.withLock { state in
            sweep(&state, now)
            return state.listeners.filter { !$0.isRelayed }.map { ($0.id, $0.filter) }
        }
    }

    /// The facts since a page, for a question that waits. Nil: it waits no longer, because the listener is gone or has asked again.
    package func more(since page: LivePage, app: String) -> LivePage? {
        state.withLock { state in
            countMissed(&state)
            guard let place = Place(page.cursor), let index = state.index(of: place.listener, app: app),
                state.listeners[index].question == page.question
            else { return nil }
            return state.listeners[index].page(after: place.fact, skipped: place.skipped)
        }
    }

    /// Listeners without a person may have wanted what a loop left out.
    private func countMissed(_ state: inout State) {
        guard missed.load(ordering: .relaxed) > 0 else { return }
        let count = missed.exchange(0, ordering: .relaxed)
        for index in state.listeners.indices {
            let filter = state.listeners[index].filter
            if filter.user == nil && filter.kinds.contains(.event) { state.listeners[index].skip(count) }
        }
    }

    /// A cursor's parts.
    private struct Place {
        let listener: UInt64
        let fact: UInt64
        let skipped: UInt64

        init?(_ cursor: String?) {
            let parts = (cursor ?? "").split(separator: "-", omittingEmptySubsequences: false).map { UInt64($0) }
            guard parts.count == 3, let listener = parts[0], let fact = parts[1], let skipped = parts[2] else { return nil }
            (self.listener, self.fact, self.skipped) = (listener, fact, skipped)
        }
    }

    /// Forgets who has not asked for long, once a second.
    private func sweep(_ state: inout State, _ now: Int64, isDue: Bool = false) {
        guard isDue || now - state.sweptAt >= 1000 else { return }
        state.sweptAt = now
        state.listeners.removeAll { now - $0.askedAt > Self.silenceMax }
        guard state.listeners.isEmpty else { return }
        watched.store(false, ordering: .relaxed)
        (state.events, state.order, state.userCount) = ([:], [], 0)
    }

    private var now: Int64 { Int64(time.monotonicNanoseconds / 1_000_000) }
}
