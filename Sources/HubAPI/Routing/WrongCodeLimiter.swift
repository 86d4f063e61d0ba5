/// Counts wrong join codes per address, because codes that are short enough to read out could be guessed.
///
/// A minute begins with an address's first wrong code. Once the allowed number is used up, the address's joins take turns, one per second,
/// until the minute is over. Right and wrong codes wait alike, so people behind the same address still get in.
/// Pure; time comes as an argument. Every operation is amortised O(1).
struct WrongCodeLimiter {
    /// Addresses remembered, about 100 bytes each. If exceeded, the address with the oldest minute is forgotten early.
    static let addressesMax = 50_000
    static let windowNanoseconds: UInt64 = 60 * 1_000_000_000
    static let turnNanoseconds: UInt64 = 1_000_000_000
    /// Joins per address that may wait for their turns.
    static let waitingMax: UInt64 = 10

    private struct Minute {
        var start: UInt64
        var wrong: Int
        /// Time of the address's next turn.
        var turn: UInt64 = 0
    }

    private let wrongMax: Int
    private let addressesMax: Int
    private var minutes: [String: Minute] = [:]
    /// Addresses by the start of their minutes; those before `head` are finished.
    private var order: [String] = []
    private var head = 0

    /// - Parameter wrongMax: per address and minute; 0: no limit.
    init(wrongMax: Int, addressesMax: Int = WrongCodeLimiter.addressesMax) {
        precondition(wrongMax >= 0 && addressesMax > 0, "wrongMax \(wrongMax), addressesMax \(addressesMax)")
        self.wrongMax = wrongMax
        self.addressesMax = addressesMax
    }

    /// Whether the address's joins take turns.
    /// - Parameter now: monotonic, in nanoseconds.
    func takesTurns(_ address: String, now: UInt64) -> Bool {
        guard wrongMax > 0, let minute = minutes[address], minute.wrong >= wrongMax else { return false }
        return Self.elapsed(from: minute.start, to: now) < Self.windowNanoseconds
    }

    /// Takes the next turn of the address.
    /// - Returns: nanoseconds until that turn; nil if too many joins wait.
    mutating func takeTurn(_ address: String, now: UInt64) -> UInt64? {
        guard var minute = minutes[address] else { return 0 }
        let wait = minute.turn > now ? minute.turn - now : 0
        guard wait <= Self.waitingMax * Self.turnNanoseconds else { return nil }
        minute.turn = now + wait + Self.turnNanoseconds
        minutes[address] = minute
        return wait
    }

    mutating func recordWrong(_ address: String, now: UInt64) {
        guard wrongMax > 0 else { return }
        while head < order.count, let oldest = minutes[order[head]], Self.elapsed(from: oldest.start, to: now) >= Self.windowNanoseconds {
            forgetOldest()
        }
        if minutes[address] == nil {
            if minutes.count >= addressesMax { forgetOldest() }
            minutes[address] = Minute(start: now, wrong: 0)
            order.append(address)
        }
        minutes[address]?.wrong += 1
        if minutes[address]?.wrong == wrongMax { minutes[address]?.turn = now + Self.turnNanoseconds }
        assert(isConsistent, "\(minutes.count) addresses have \(order.count - head) places")
    }

    /// Whether each remembered address has one place in the order.
    private var isConsistent: Bool { minutes.count == order.count - head && minutes.count <= addressesMax }

    /// Addresses remembered.
    var addressCount: Int { minutes.count }

    /// Threads read the clock before they arrive here, so a later call may have an earlier time.
    private static func elapsed(from start: UInt64, to now: UInt64) -> UInt64 { now > start ? now - start : 0 }

    private mutating func forgetOldest() {
        let minute = minutes.removeValue(forKey: order[head])
        assert(minute != nil, "an address of the order is not remembered")
        head += 1
        if head * 2 > order.count {
            order.removeFirst(head)
            head = 0
        }
    }
}
