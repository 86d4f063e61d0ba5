/// Names one connection for its whole life, and never another. Made of a loop, a slot in that loop's connection table,
/// and the slot's generation.
///
/// A slot is reused as soon as its connection is gone, so a late message for a dead connection would reach the slot's
/// next connection. The generation grows with every reuse and tells the two apart. Eight bytes, passed by value, valid
/// on any thread; only the named loop can turn it back into a connection.
package struct ConnectionID: Hashable, Sendable, CustomStringConvertible {
    /// The loop in bits 56 to 63, the slot in bits 32 to 55, the generation below.
    package let rawValue: UInt64

    /// The most loops of a process; the packing allows no more.
    package static let loopsMax = 1 << 8
    /// The most connections of one loop; the packing allows no more.
    package static let slotsMax = 1 << 24

    /// - Parameters:
    ///   - loop: index of the owning loop, `0 ..< loopsMax`.
    ///   - slot: index into its connection table, `0 ..< slotsMax`.
    ///   - generation: how often the slot has been reused.
    package init(loop: Int, slot: Int, generation: UInt32) {
        precondition(loop >= 0 && loop < Self.loopsMax && slot >= 0 && slot < Self.slotsMax, "loop \(loop), slot \(slot)")
        rawValue = UInt64(UInt32(loop) << 24 | UInt32(slot)) << 32 | UInt64(generation)
        assert(
            self.loop == loop && self.slot == slot && self.generation == generation,
            "loop \(loop), slot \(slot) and generation \(generation) were packed into \(self)")
    }

    /// The index of the owning loop.
    package var loop: Int { Int(rawValue >> 56) }
    /// The index into the loop's connection table.
    package var slot: Int { Int(rawValue >> 32 & 0xFF_FFFF) }
    /// How often the slot has been reused, modulo 2^32.
    package var generation: UInt32 { UInt32(truncatingIfNeeded: rawValue) }

    package var description: String { "\(loop).\(slot).\(generation)" }
}
