/// A hashed wheel of the connections to check per tick. A hundred thousand time-outs cost one list walk per tick, and
/// arming one costs a few stores.
///
/// libwebsockets' own timers are one sorted list, at quadratic cost. A connection is in one bucket at a time. A wait
/// longer than the wheel's span is checked early and armed again.
struct IdleWheel {
    static let bucketCount = 512
    private var heads = [UInt32](repeating: ConnectionTable.none, count: bucketCount)

    /// Arms or re-arms `slot` to be checked `ticks` from now, at least one and at most the wheel's span.
    mutating func arm(_ slot: UInt32, in ticks: UInt32, now: UInt32, table: UnsafeMutablePointer<ConnectionState>) {
        assert(unsafe table[Int(slot)].condition != .free, "slot \(slot) is armed and free")
        unsafe disarm(slot, table: table)
        let ahead = min(max(ticks, 1), UInt32(Self.bucketCount - 1))
        let bucket = Int((now &+ ahead) % UInt32(Self.bucketCount))
        let next = heads[bucket]
        assert(
            unsafe next == ConnectionTable.none
                || Int(table[Int(next)].wheelBucket) == bucket
                    && table[Int(next)].wheelPrevious == ConnectionTable.none,
            "bucket \(bucket) begins with slot \(next), which is not its first")
        unsafe table[Int(slot)].wheelNext = next
        unsafe table[Int(slot)].wheelPrevious = ConnectionTable.none
        unsafe table[Int(slot)].wheelBucket = UInt16(bucket)
        if next != ConnectionTable.none { unsafe table[Int(next)].wheelPrevious = slot }
        heads[bucket] = slot
    }

    mutating func disarm(_ slot: UInt32, table: UnsafeMutablePointer<ConnectionState>) {
        let bucket = unsafe table[Int(slot)].wheelBucket
        guard bucket != UInt16.max else { return }
        let next = unsafe table[Int(slot)].wheelNext
        let previous = unsafe table[Int(slot)].wheelPrevious
        assert(
            unsafe previous == ConnectionTable.none ? heads[Int(bucket)] == slot : table[Int(previous)].wheelNext == slot,
            "slot \(slot) follows slot \(previous) in bucket \(bucket), which does not name it")
        assert(
            unsafe next == ConnectionTable.none || table[Int(next)].wheelPrevious == slot,
            "slot \(next) follows slot \(slot) in bucket \(bucket) and names another one")
        if previous == ConnectionTable.none { heads[Int(bucket)] = next } else { unsafe table[Int(previous)].wheelNext = next }
        if next != ConnectionTable.none { unsafe table[Int(next)].wheelPrevious = previous }
        unsafe table[Int(slot)].wheelBucket = UInt16.max
        unsafe table[Int(slot)].wheelNext = ConnectionTable.none
    }

    /// Takes the slots due at `tick` out of the wheel.
    mutating func takeDue(at tick: UInt32, into due: inout [UInt32], table: UnsafeMutablePointer<ConnectionState>) {
        due.removeAll(keepingCapacity: true)
        var slot = heads[Int(tick % UInt32(Self.bucketCount))]
        while slot != ConnectionTable.none {
            due.append(slot)
            unsafe slot = table[Int(slot)].wheelNext
        }
        for slot in due { unsafe disarm(slot, table: table) }
        assert(heads[Int(tick % UInt32(Self.bucketCount))] == ConnectionTable.none, "\(due.count) slots are not all of tick \(tick)")
    }
}
