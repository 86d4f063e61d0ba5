/// How one person came to know of one question, as phones and gateways saw it.
package struct Telling: Equatable, Sendable {
    /// A phone's app had the question on its screen.
    package struct Reading: Equatable, Sendable {
        package let phone: String
        /// Milliseconds since 1970.
        package let at: Int64
        /// The app had been on the screen since before the question. False: it read what was missed.
        package let isLive: Bool

        package init(phone: String, at: Int64, isLive: Bool) {
            self.phone = phone
            self.at = at
            self.isLive = isLive
        }
    }

    /// A lock screen that showed the notification.
    package struct Showing: Equatable, Sendable {
        package let phone: String
        /// Milliseconds since 1970.
        package let at: Int64
    }

    /// Where the person stands.
    package enum Surface: String, Sendable {
        /// On the screen, live.
        case screen
        /// On the lock screen.
        case lock
        /// Read after coming back, without a notification.
        case later
        /// The gateway keeps the notification until the phone has a network.
        case kept
        /// Nothing yet, and there is still time.
        case waiting
        /// Nothing, and time is up.
        case missed
    }

    /// The first of each phone, in the order of time.
    package private(set) var readings: [Reading] = []
    package private(set) var showings: [Showing] = []
    /// Notifications that a gateway keeps for phones without a network.
    package private(set) var keptCount = 0

    /// Whether the person knows of the question.
    package var isTold: Bool { !readings.isEmpty || !showings.isEmpty }

    /// Whether the person was told on both surfaces: the phone rang for something that was on the screen. Reading what a notification
    /// had announced is no second telling.
    package var isTwice: Bool {
        guard let shown = showings.map(\.at).max() else { return false }
        return readings.contains { $0.isLive || $0.at < shown }
    }

    /// - Parameter isTimeUp: whether a person without any word counts as missed.
    package func surface(isTimeUp: Bool) -> Surface {
        if readings.contains(where: \.isLive) { return .screen }
        if !showings.isEmpty { return .lock }
        if !readings.isEmpty { return .later }
        if keptCount > 0 { return .kept }
        return isTimeUp ? .missed : .waiting
    }

    /// When the person was first told; nil: not yet.
    package var toldAt: Int64? { (readings.map(\.at) + showings.map(\.at)).min() }

    mutating func read(_ reading: Reading) {
        guard !readings.contains(where: { $0.phone == reading.phone }) else { return }
        readings.append(reading)
    }

    mutating func keep() { keptCount += 1 }

    /// - Parameter wasKept: by the gateway, for want of a network.
    mutating func show(on phone: String, at: Int64, wasKept: Bool) {
        if wasKept { keptCount -= 1 }
        showings.append(Showing(phone: phone, at: at))
    }
}
