internal import HubWire

/// Messages and frames of one loop that have come in part, by slot.
struct Assemblies {
    private var readers: [UInt32: FrameReader] = [:]
    /// Of all of them.
    private(set) var bytes = 0

    var isEmpty: Bool { readers.isEmpty }

    mutating func take(_ slot: UInt32) -> FrameReader? {
        if readers.isEmpty { return nil }
        guard let reader = readers.removeValue(forKey: slot) else { return nil }
        bytes -= reader.heldBytes
        return reader
    }

    /// Only where there is none.
    mutating func keep(_ reader: FrameReader, _ slot: UInt32) {
        bytes += reader.heldBytes
        readers[slot] = reader
    }
}
