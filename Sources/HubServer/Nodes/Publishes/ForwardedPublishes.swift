internal import HubAPI
internal import HubCore
internal import HubDefinitions
internal import HubDelivery
internal import PusherProtocol
internal import Synchronization

/// Publishes that came in at this node, until the owners of all their channels have answered. Any thread.
///
/// An owner that does not answer in time leaves its channels to the store. They wait there as a scheduled publish that is due, under the
/// same names. The owner of that time publishes them, once. A publish with an idempotency key is answered 503, and sent again by its
/// sender.
final class ForwardedPublishes: Sendable {
    typealias Send = @Sendable (ForwardedPublish, _ done: @escaping @Sendable (Bool) -> Void) -> Void

    struct Place: Hashable {
        let request: Int
        let channel: Int
    }

    private struct Waiting {
        let command: PublishCommand
        let ids: [PublishID]
        let publish: ForwardedPublish
        var left: Set<Place>
        /// The events' ids, by request and channel.
        var events: [[String?]]
        let deadline: ContinuousClock.Instant
    }

    private struct State {
        var waiting: [UInt64: Waiting] = [:]
        /// In the order in which they came, which is that of their deadlines, with a key and without one.
        var queue: [UInt64] = []
        var keyedQueue: [UInt64] = []
        var lastTicket: UInt64 = 0
    }

    /// Time for the owners to answer.
    static let answerMax: Duration = .seconds(1)
    /// The same for a publish with an idempotency key. The store cannot take it, and its repetition is work for an owner that is late.
    static let keyedAnswerMax: Duration = .seconds(2)

    private let store: any DeliveryStore
    private let time: any TimeSource
    private let sending = Guarded<Send?>(nil)
    private let state = Mutex(State())

    init(store: any DeliveryStore, time: any TimeSource) {
        self.store = store
        self.time = time
    }

    func connect(_ send: @escaping Send) { sending.withLock { $0 = send } }

    /// Publishes that wait for an answer, for metrics.
    var count: Int { state.withLock { $0.waiting.count } }

    /// Sends a publish to the owners of its channels.
    /// - Returns: false: too many wait already.
    func forward(_ command: PublishCommand) -> Bool {
        guard let send = sending.withLock({ $0 }) else { return false }
        let now = time.wallMilliseconds
        let ids = command.ids.isEmpty ? command.requests.map { _ in PublishID.make(at: now) } : command.ids
        let places = command.requests.enumerated().flatMap { request, content in
            content.channels.indices.map { Place(request: request, channel: $0) }
        }
        let requests = zip(command.requests, ids).map { request, id in
            ForwardedPublish.Request(
                name: request.name, channels: request.channels.map(\.text), data: request.data, excluded: request.excludedSocketID, id: id)
        }
        let publish = state.withLock { state -> ForwardedPublish? in
            guard state.waiting.count < DeliveryBook.waitingMax else { return nil }
            state.lastTicket += 1
            let publish = ForwardedPublish(
                ticket: state.lastTicket, app: command.app.id, requests: requests, mayBeKnown: command.mayBeKnown, key: command.key)
            state.waiting[state.lastTicket] = Waiting(
                command: command, ids: ids, publish: publish, left: Set(places),
                events: command.requests.map { $0.channels.map { _ in nil } },
                deadline: .now + (command.key == nil ? Self.answerMax : Self.keyedAnswerMax))
            if command.key == nil { state.queue.append(state.lastTicket) } else { state.keyedQueue.append(state.lastTicket) }
            return publish
        }
        guard let publish else { return false }
        send(publish) { [weak self] in if !$0 { self?.leaveToStore(publish.ticket) } }
        return true
    }

    /// Sends again what waits for an answer about channels of these partitions: they have a new owner, which may not have heard of it.
    func sendAgain(_ partitions: PartitionSet) {
        guard let send = sending.withLock({ $0 }) else { return }
        let publishes = state.withLock { state in
            state.waiting.sorted { $0.key < $1.key }.map(\.value).filter { waiting in
                let (app, requests) = (waiting.command.app.id, waiting.command.requests)
                return waiting.left.contains { partitions.contains(app: app, channel: requests[$0.request].channels[$0.channel].text) }
            }.map(\.publish)
        }
        for var publish in publishes {
            publish.mayBeKnown = true
            send(publish) { _ in }
        }
    }

    /// An owner's answer. An owner that could not commit may have a successor, so its channels are left to the store.
    func answered(_ ticket: UInt64, _ part: PublishedPart) {
        if case .refused(_, let refusal) = part, refusal.status == 503 { return leaveToStore(ticket) }
        let complete = state.withLock { state -> (Waiting, PublishRefusal?)? in
            guard var waiting = state.waiting[ticket] else { return nil }
            switch part {
            case .refused(_, let refusal):
                state.waiting[ticket] = nil
                return (waiting, refusal)
            case .taken(let channels):
                for place in channels {
                    guard waiting.left.remove(Place(request: place.request, channel: place.channel)) != nil else { continue }
                    waiting.events[place.request][place.channel] = place.event
                }
                state.waiting[ticket] = waiting.left.isEmpty ? nil : waiting
                return waiting.left.isEmpty ? (waiting, nil) : nil
            }
        }
        guard let (waiting, refusal) = complete else { return }
        if let refusal { return waiting.command.respond(.failure(refusal)) }
        finish(waiting.command, waiting.events, publishes: [])
    }

    /// Leaves to the store what waits for too long. Call it every 250 ms.
    func tick() {
        let late = state.withLock { state -> [UInt64] in
            let now = ContinuousClock.now
            func take(_ queue: inout [UInt64]) -> [UInt64] {
                let count = queue.prefix { number in state.waiting[number].map { $0.deadline <= now } ?? true }.count
                defer { queue.removeFirst(count) }
                return queue.prefix(count).filter { state.waiting[$0] != nil }
            }
            let late = take(&state.queue)
            return late + take(&state.keyedQueue)
        }
        for number in late { leaveToStore(number) }
    }

    private func leaveToStore(_ number: UInt64) {
        guard let waiting = state.withLock({ $0.waiting.removeValue(forKey: number) }) else { return }
        let (command, now) = (waiting.command, time.wallMilliseconds)
        // The key may be taken, which only the owner finds out.
        if command.key != nil { return command.respond(.failure(Self.noOwnerOfKey)) }
        var (publishes, events) = ([ScheduledPublish](), waiting.events)
        for (index, request) in command.requests.enumerated() {
            let channels = request.channels.indices.filter { waiting.left.contains(Place(request: index, channel: $0)) }
            if channels.isEmpty { continue }
            let part = PublishRequest(
                name: request.name, channels: OneOrMany(channels.map { request.channels[$0] }), data: request.data,
                excludedSocketID: request.excludedSocketID)
            publishes.append(
                ScheduledPublish(
                    id: waiting.ids[index].text, app: command.app.id, deliverAt: waiting.ids[index].time,
                    request: ScheduledRequest.encode(part), createdAt: now))
            for channel in channels { events[index][channel] = waiting.ids[index].event(request.channels[channel].text) }
        }
        finish(command, events, publishes: publishes)
    }

    /// Writes down what has to survive this node, and answers.
    private func finish(_ command: PublishCommand, _ events: [[String?]], publishes: [ScheduledPublish]) {
        let outcomes = zip(command.requests, events).map { request, ids in
            PublishOutcome(events: zip(request.channels, ids).compactMap { channel, id in id.map { (channel, $0) } })
        }
        let answers = command.answers?(outcomes) ?? []
        var takes: [ScheduledTake] = []
        if case .scheduled(let id) = command.purpose {
            // A scheduled publish that its owners do not take stays as it is.
            guard publishes.isEmpty else { return command.respond(.failure(Self.noOwner)) }
            takes = [ScheduledTake(id: id, at: time.wallMilliseconds, events: events.flatMap { $0.compactMap { $0 } })]
        }
        if answers.isEmpty, publishes.isEmpty, takes.isEmpty { return command.respond(.success(outcomes)) }
        Task { [store] in
            do {
                if !publishes.isEmpty {
                    try await store.schedule(publishes, answers: answers)
                } else {
                    _ = try await store.commit([], answers: answers, scheduled: takes)
                }
                command.respond(.success(outcomes))
            } catch ScheduleError.notWaiting {
                command.respond(.failure(.notWaiting))
            } catch {
                command.respond(.failure(publishes.isEmpty ? DeliveryBook.notStored : Self.noOwner))
            }
        }
    }

    private static let noOwnerOfKey = PublishRefusal(
        status: 503,
        sentence: "the node that decides about the channel has not answered: repeat the request under its key in a moment")
    private static let noOwner = PublishRefusal(
        status: 503, sentence: "the node that decides about the channel did not answer, and the store took nothing: try again in a moment")
}
