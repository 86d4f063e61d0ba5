/// The `pusher:ping` events that were sent one way, to all pages of a channel or to one page alone, by number.
///
/// Their answers carry nothing. They come in order, so whoever counts them knows the cursor that each one stands for.
struct PingLog {
    /// Cursors of the newest ones: 16 s of a channel whose events stream. Of older ones only the number is known.
    static let rememberedMax = 64

    private var cursors: [UInt64] = []
    /// How many were sent: the number that the next one gets.
    private(set) var count: UInt32 = 0

    mutating func append(_ cursor: UInt64) {
        if cursors.count < Self.rememberedMax { cursors.append(cursor) } else { cursors[Int(count) % Self.rememberedMax] = cursor }
        count += 1
    }

    /// The cursor of one of them; 0: it is too old to be known; nil: it has not been sent.
    func cursor(_ number: UInt32) -> UInt64? {
        guard number < count else { return nil }
        return count - number > Self.rememberedMax ? 0 : cursors[Int(number) % Self.rememberedMax]
    }
}
