/// The run's handle of a publisher on its worker.
final class Publishing: Sendable {
    let plan: PublishPlan
    private let door: WorkerDoor
    /// Index in the worker's `PublisherShelf`.
    private let place: Int

    private static let connectSeconds = 10.0

    /// Connects, and waits until all connections are open.
    init(_ run: LoadRun, _ plan: PublishPlan) throws(LoadError) {
        self.plan = plan
        door = run.publisher
        let dialect = run.dialect
        place = door.ask { worker in worker.publishers.add(Publisher(worker: worker, dialect: dialect, plan: plan)) }
        let isConnected = try run.pass(atMost: Self.connectSeconds) { look { $0.isConnected } }
        guard isConnected else {
            throw LoadError("the publishing connections could not be opened within \(decimal(Self.connectSeconds)) s")
        }
    }

    private func look<Answer: Sendable>(_ question: @escaping @Sendable (Publisher) -> Answer) -> Answer {
        let place = place
        return door.ask { worker in question(worker.publishers[place]) }
    }

    func begin() { look { $0.begin() } }

    /// Stops sending, and waits for publishes in flight.
    func end(_ run: LoadRun) throws(LoadError) {
        look { $0.end() }
        try run.pass(atMost: run.options.drain) { look { $0.isQuiet } }
    }

    var counts: PublishCounts { look { $0.counts } }

    /// Next sequences of every connection, by channel.
    var ends: [[UInt32]] {
        let channels = plan.channels.indices
        return look { publisher in channels.map { publisher.ends(channel: $0) } }
    }

    /// Waits until every open connection has received all publishes, or no more arrive.
    /// - Parameter firstChannel: the scenario's index of the publisher's first channel.
    /// - Returns: deliveries missing at the ends of sequences.
    func drain(_ run: LoadRun, firstChannel: Int = 0) throws(LoadError) -> UInt64 {
        let ends = ends
        let kind = plan.kind
        let first = plan.firstStream
        var missing: UInt64 = .max
        var unchangedSince = run.elapsed
        try run.pass(atMost: .infinity) {
            let now = run.receivers.reduce(UInt64(0)) { sum, door in
                sum + door.ask { $0.missing(kind: kind, ends: ends, firstChannel: firstChannel, firstStream: first) }
            }
            if now != missing { unchangedSince = run.elapsed }
            missing = now
            return missing == 0 || run.elapsed - unchangedSince > run.options.drain
        }
        return missing
    }
}

/// The publishers of one worker by number, for access from the run.
struct PublisherShelf {
    private var publishers: [Publisher] = []

    mutating func add(_ publisher: Publisher) -> Int {
        publishers.append(publisher)
        return publishers.count - 1
    }

    subscript(place: Int) -> Publisher { publishers[place] }

    mutating func clear() { publishers.removeAll() }
}

extension Worker {
    /// Events missing at the ends of the open connections' sequences.
    func missing(kind: Int, ends: [[UInt32]], firstChannel: Int, firstStream: Int) -> UInt64 {
        var missing: UInt64 = 0
        for slot in 0..<links.capacity where links[slot].phase == .open && links[slot].isTallied {
            let channel = Int(links[slot].channel) - firstChannel
            guard ends.indices.contains(channel) else { continue }
            missing += tally.missing(slot, kind: kind, ends: ends[channel], firstStream: firstStream)
        }
        return missing
    }
}
