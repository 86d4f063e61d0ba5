/// Puts a message together that arrives in fragments, under a bound. The library's own buffers are small on purpose.
struct ReceiveBuffer {
    private(set) var bytes: [UInt8] = []
    let isBinary: Bool
    /// The message passed the bound: the rest of it is skipped.
    private(set) var isTooLarge = false
    /// The bound was passed by the last fragment.
    private(set) var justOverflowed = false

    init(isBinary: Bool = false) {
        self.isBinary = isBinary
    }

    mutating func append(_ fragment: UnsafeRawBufferPointer, bytesMax: Int) {
        justOverflowed = false
        guard !isTooLarge else { return }
        if bytes.count + fragment.count > bytesMax {
            isTooLarge = true
            justOverflowed = true
            bytes = []
        } else {
            unsafe bytes.append(contentsOf: fragment)
        }
    }
}

/// The messages of one loop that have come in part, by slot.
struct Assemblies {
    private var buffers: [UInt32: ReceiveBuffer] = [:]
    /// Of all of them.
    private(set) var bytes = 0

    var isEmpty: Bool { buffers.isEmpty }

    mutating func take(_ slot: UInt32) -> ReceiveBuffer? {
        guard let buffer = buffers.removeValue(forKey: slot) else { return nil }
        bytes -= buffer.bytes.count
        return buffer
    }

    /// Only where there is none.
    mutating func keep(_ buffer: ReceiveBuffer, _ slot: UInt32) {
        bytes += buffer.bytes.count
        buffers[slot] = buffer
    }
}
