package import HubCore

/// Everything that the demo has seen, as a value: questions, phones, the hub's life. Its counters come from phones and gateways alone.
///
/// All times are milliseconds since 1970.
package struct Stage: Sendable {
    /// The life of the hub's process.
    package enum Hub: String, Sendable {
        case starting, up, down
    }

    /// One question that the quiz master asked.
    struct Asked: Sendable {
        let number: Int
        let at: Int64
        /// The hub's answer to the publish; nil before it.
        var published: (event: String, at: Int64)?
        var tellings: [String: Telling] = [:]
        /// The rows of the hub's trail by user, as it tells them.
        var trail: [String: JSONValue] = [:]
        var isTrailOpen = true
    }

    struct PhoneState: Sendable {
        var network = RelayMode.open
        var notes: [LockScreenNote] = []

        /// The oldest leaves a phone that has too many.
        mutating func add(_ note: LockScreenNote) {
            if notes.count >= Stage.notesMax { notes.removeFirst() }
            notes.append(note)
        }
    }

    package let cast: Cast
    package private(set) var hub = Hub.starting
    private(set) var asked: [Asked] = []
    private(set) var phones: [String: PhoneState]
    private var hubUpSince: Int64 = 0

    /// Time for a person to be told, from the question or from the hub's start. The longest wait of `critical` is 2 s, twice that for a
    /// hub that is late.
    package static let tellMilliseconds: Int64 = 10_000
    /// Questions whose trails are read and that the page shows.
    static let shownMax = 4
    /// Questions after which the oldest are forgotten, and with them their part of the counter.
    static let askedMax = 500
    /// Notifications of one phone: as many as FCM keeps for a phone without a network.
    package static let notesMax = 100
    /// Questions that may wait for a hub that is down.
    package static let unpublishedMax = 20

    package init(cast: Cast) {
        self.cast = cast
        phones = Dictionary(uniqueKeysWithValues: cast.phones.map { ($0.id, PhoneState()) })
    }

    // MARK: What happens

    /// The hub's process has started or ended.
    package mutating func became(_ state: Hub, at now: Int64) {
        if state == .up, hub != .up { hubUpSince = now }
        hub = state
    }

    /// The hub's process is gone. One that is about to start is not meant.
    package mutating func ended(at now: Int64) {
        if hub == .up { became(.down, at: now) }
    }

    /// The quiz master asks.
    /// - Returns: the question's number; nil if too many wait for a hub that is down.
    package mutating func ask(at now: Int64) -> Int? {
        guard asked.count(where: { $0.published == nil }) < Self.unpublishedMax else { return nil }
        let number = (asked.last?.number ?? 0) + 1
        asked.append(Asked(number: number, at: now))
        if asked.count > Self.askedMax { asked.removeFirst() }
        return number
    }

    /// The hub has taken the question.
    package mutating func published(_ number: Int, event: String, at now: Int64) {
        change(number) { $0.published = (event, now) }
    }

    /// A phone's app has the question on its screen, and takes its own notification of it away.
    package mutating func read(_ number: Int, _ reading: Telling.Reading) {
        guard let phone = cast.phone(reading.phone) else { return }
        change(number) { $0.tellings[phone.user, default: Telling()].read(reading) }
        dismiss(number, on: phone.id)
    }

    /// The app has taken its own notification away.
    package mutating func dismiss(_ number: Int, on phone: String) {
        phones[phone]?.notes.removeAll { $0.number == number && $0.shownAt != nil }
    }

    /// A gateway has accepted a push to a phone.
    package mutating func accepted(_ news: GatewayNews, for phone: Cast.Phone, at now: Int64) {
        switch news {
        case .clear(let nid): phones[phone.id]?.notes.removeAll { $0.nid == nid }
        case .note(var note):
            let isReachable = phones[phone.id]?.network != .silent
            if isReachable { note.shownAt = now }
            phones[phone.id]?.add(note)
            change(note.number) { asked in
                if isReachable {
                    asked.tellings[phone.user, default: Telling()].show(on: phone.id, at: now, wasKept: false)
                } else {
                    asked.tellings[phone.user, default: Telling()].keep()
                }
            }
        }
    }

    /// A phone's network has changed. One that comes back gets what its gateway has kept.
    package mutating func network(of phone: String, is mode: RelayMode, at now: Int64) {
        guard let owner = cast.phone(phone)?.user, var state = phones[phone] else { return }
        state.network = mode
        var shown: [Int] = []
        if mode != .silent {
            for index in state.notes.indices where state.notes[index].shownAt == nil {
                state.notes[index].shownAt = now
                shown.append(state.notes[index].number)
            }
        }
        phones[phone] = state
        for number in shown { change(number) { $0.tellings[owner, default: Telling()].show(on: phone, at: now, wasKept: true) } }
    }

    /// The hub's trail of a question.
    package mutating func traced(_ number: Int, _ answer: JSONValue) {
        change(number) { asked in
            asked.isTrailOpen = answer["open"]?.boolValue ?? true
            for row in answer["deliveries"]?.arrayValue ?? [] {
                if let user = row["user"]?.stringValue { asked.trail[user] = row }
            }
        }
    }

    private mutating func change(_ number: Int, _ body: (inout Asked) -> Void) {
        guard let index = asked.lastIndex(where: { $0.number == number }) else { return }
        body(&asked[index])
    }

    // MARK: What is to be read

    /// The events whose trails may still change, the newest first.
    /// - Parameter everySecond: false: only those of the last seconds.
    package func openTrails(at now: Int64, everySecond: Bool) -> [(number: Int, event: String)] {
        asked.suffix(Self.shownMax).reversed().compactMap { asked in
            guard let published = asked.published else { return nil }
            let age = now - published.at
            return age < 5_000 || everySecond && age < Self.traceMilliseconds ? (asked.number, published.event) : nil
        }
    }

    /// The last question about an app without a companion is asked 20 s after its receipt; some time more for the push and its answer.
    private static let traceMilliseconds: Int64 = 180_000

    /// Whether who has not been told of this question counts as missed.
    func isTimeUp(for asked: Asked, at now: Int64) -> Bool {
        hub == .up && now - max(asked.at, hubUpSince) >= Self.tellMilliseconds
    }

    /// The counter.
    package func score(at now: Int64) -> Score {
        var score = Score()
        for question in asked {
            let isTimeUp = isTimeUp(for: question, at: now)
            for user in cast.people { score.add(question.tellings[user] ?? Telling(), isTimeUp: isTimeUp) }
        }
        return score
    }
}
