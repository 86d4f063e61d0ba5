/// Counts wrong join codes per address, so that codes short enough to be read out cannot be found by trying.
///
/// A minute begins with an address's first wrong code. Once the allowed number is used up, its joins take turns until the minute is
/// over, one a second, right codes and wrong ones alike: people behind the same address wait, and get in. Pure; time comes as an
/// argument. Every operation takes constant time on average.
struct WrongCodeLimiter {
    /// Addresses remembered, about 100 bytes each. Beyond it the address whose minute began first is forgotten early.
    static let addressesMax = 50_000
    static let windowNanoseconds: UInt64 = 60 * 1_000_000_000
    static let turnNanoseconds: UInt64 = 1_000_000_000
    /// Joins of an address that may wait for their turns.
    static let waitingMax: UInt64 = 10

    private struct Minute {
        var start: UInt64
        var wrong: Int
        /// When the next join of the address has its turn, once joins take turns.
        var turn: UInt64 = 0
    }

    private let wrongMax: Int
    private let addressesMax: Int
    private var minutes: [String: Minute] = [:]
    /// Addresses in the order in which their minutes began; those before `head` are done with.
    private var order: [String] = []
    private var head = 0

    /// - Parameter wrongMax: per address and minute; 0: no limit.
    init(wrongMax: Int, addressesMax: Int = WrongCodeLimiter.addressesMax) {
        precondition(wrongMax >= 0 && addressesMax > 0, "wrongMax \(wrongMax), addressesMax \(addressesMax)")
        self.wrongMax = wrongMax
        self.addressesMax = addressesMax
    }

    /// The address's joins take turns.
    /// - Parameter now: monotonic, in nanoseconds.
    func takesTurns(_ address: String, now: UInt64) -> Bool {
        guard wrongMax > 0, let minute = minutes[address], minute.wrong >= wrongMax else { return false }
        return Self.elapsed(from: minute.start, to: now) < Self.windowNanoseconds
    }

    /// For how many nanoseconds a join of an address that takes turns has to wait for its own, which is then taken; nil: too many wait.
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
    }

    /// Addresses remembered.
    var addressCount: Int { minutes.count }

    /// Threads read the clock before they get here, so a call can come with an earlier time than the one before it.
    private static func elapsed(from start: UInt64, to now: UInt64) -> UInt64 { now > start ? now - start : 0 }

    private mutating func forgetOldest() {
        minutes[order[head]] = nil
        head += 1
        if head * 2 > order.count {
            order.removeFirst(head)
            head = 0
        }
    }
}
