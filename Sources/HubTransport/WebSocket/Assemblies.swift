internal import HubWire

/// Incomplete messages and frames of one loop, by slot.
struct Assemblies {
    private var readers: [UInt32: FrameReader] = [:]
    /// Bytes held for all slots.
    private(set) var bytes = 0

    var isEmpty: Bool { readers.isEmpty }

    mutating func take(_ slot: UInt32) -> FrameReader? {
        if readers.isEmpty { return nil }
        guard let reader = readers.removeValue(forKey: slot) else { return nil }
        bytes -= reader.heldBytes
        assert(bytes >= 0 && (!readers.isEmpty || bytes == 0), "\(bytes) bytes are held by \(readers.count) readers")
        return reader
    }

    /// The slot must not have a reader yet.
    mutating func keep(_ reader: FrameReader, _ slot: UInt32) {
        assert(!reader.isIdle, "slot \(slot) keeps a reader that holds nothing")
        bytes += reader.heldBytes
        let former = readers.updateValue(reader, forKey: slot)
        assert(former == nil, "slot \(slot) had a reader already")
    }

    /// Whether the slot has a reader.
    func holds(_ slot: UInt32) -> Bool { readers[slot] != nil }
}
