/// Numbered `pusher:ping` events, to all pages of a channel or to one page alone.
///
/// The answers carry nothing, but arrive in order. So counting them gives the cursor of each.
struct PingLog {
    /// Number of remembered cursors: 16 s of a channel with streaming events. Older pings have a number, but no cursor.
    static let rememberedMax = 64

    private var cursors: [UInt64] = []
    /// Number of sent pings, and the number of the next one.
    private(set) var count: UInt32 = 0

    mutating func append(_ cursor: UInt64) {
        assert(count == 0 || self.cursor(count - 1).map { $0 < cursor } == true, "cursor \(cursor) follows ping \(count)")
        if cursors.count < Self.rememberedMax { cursors.append(cursor) } else { cursors[Int(count) % Self.rememberedMax] = cursor }
        count += 1
    }

    /// The cursor of a ping; 0: forgotten; nil: not sent yet.
    func cursor(_ number: UInt32) -> UInt64? {
        guard number < count else { return nil }
        return count - number > Self.rememberedMax ? 0 : cursors[Int(number) % Self.rememberedMax]
    }
}
