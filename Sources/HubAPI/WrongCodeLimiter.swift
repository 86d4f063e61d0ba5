internal import Synchronization

/// Counts wrong join codes per address, so that codes short enough to be read out cannot be found by trying.
///
/// A minute begins with an address's first wrong code. Once the allowed number is used up the address gets no answer at all
/// until its minute is over, right code or wrong: an answer to the right one is what somebody who tries is after. Pure; time
/// comes as an argument. Every operation takes constant time on average.
struct WrongCodeLimiter {
    /// Addresses remembered, about 100 bytes each. Beyond it the address whose minute began first is forgotten early.
    static let addressesMax = 50_000
    static let windowNanoseconds: UInt64 = 60 * 1_000_000_000

    private struct Minute {
        var start: UInt64
        var wrong: Int
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

    /// How long the address has to wait, in nanoseconds; nil: it may try.
    /// - Parameter now: monotonic, in nanoseconds.
    func wait(_ address: String, now: UInt64) -> UInt64? {
        guard wrongMax > 0, let minute = minutes[Self.key(address)], minute.wrong >= wrongMax else { return nil }
        let elapsed = Self.elapsed(from: minute.start, to: now)
        return elapsed < Self.windowNanoseconds ? Self.windowNanoseconds - elapsed : nil
    }

    mutating func recordWrong(_ address: String, now: UInt64) {
        guard wrongMax > 0 else { return }
        while head < order.count, let oldest = minutes[order[head]], Self.elapsed(from: oldest.start, to: now) >= Self.windowNanoseconds {
            forgetOldest()
        }
        let key = Self.key(address)
        if minutes[key] != nil {
            minutes[key]?.wrong += 1
            return
        }
        if minutes.count >= addressesMax { forgetOldest() }
        minutes[key] = Minute(start: now, wrong: 1)
        order.append(key)
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

    /// What stands for a peer: an IPv4 address, or the first 64 bits of an IPv6 address, because whoever has one of those has
    /// all 2^64 addresses behind it.
    static func key(_ address: String) -> String {
        guard address.contains(":") else { return address }
        // IPv4 inside IPv6, as a socket for both families shows it.
        if address.contains("."), let colon = address.lastIndex(of: ":") { return String(address[address.index(after: colon)...]) }
        let halves = address.split(separator: "::", maxSplits: 1, omittingEmptySubsequences: false)
        let groups = halves.map { $0.split(separator: ":").map(String.init) }
        var all = groups[0]
        if groups.count == 2 {
            all += Array(repeating: "0", count: max(0, 8 - groups[0].count - groups[1].count))
            all += groups[1]
        }
        return all.prefix(4).joined(separator: ":")
    }
}

/// One limiter for all threads.
final class WrongCodeGate: Sendable {
    private let limiter: Mutex<WrongCodeLimiter>

    init(wrongMax: Int) {
        limiter = Mutex(WrongCodeLimiter(wrongMax: wrongMax))
    }

    /// Refuses an address that has used up its wrong codes.
    func check(_ address: String, now: UInt64) throws(APIError) {
        try Self.refuse(limiter.withLock { $0.wait(address, now: now) })
    }

    /// Counts the code if it was wrong, and refuses whoever has used up their wrong codes while this one was looked up.
    func settle(_ address: String, isRight: Bool, now: UInt64) throws(APIError) {
        let wait = limiter.withLock { limiter in
            let wait = limiter.wait(address, now: now)
            if wait == nil, !isRight { limiter.recordWrong(address, now: now) }
            return wait
        }
        try Self.refuse(wait)
    }

    private static func refuse(_ wait: UInt64?) throws(APIError) {
        guard let wait else { return }
        let seconds = (wait + 999_999_999) / 1_000_000_000
        throw APIError(
            429, "too many wrong join codes from this address: try again in \(seconds) s", headers: ["Retry-After": String(seconds)])
    }
}
