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
        return reader
    }

    /// The slot must not have a reader yet.
    mutating func keep(_ reader: FrameReader, _ slot: UInt32) {
        bytes += reader.heldBytes
        readers[slot] = reader
    }
}
