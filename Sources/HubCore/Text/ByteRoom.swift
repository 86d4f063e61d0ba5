internal import Glibc

/// Room for bytes whose number is known, filled from the front: a text of several pieces is written without growing an array.
@safe package struct ByteRoom {
    private let room: UnsafeMutableRawBufferPointer
    /// Bytes written so far.
    package private(set) var count = 0

    /// - Parameter room: outlives this value. Writing more than it holds stops the program.
    package init(_ room: UnsafeMutableRawBufferPointer) { unsafe self.room = unsafe room }

    /// Writes bytes.
    package mutating func write(_ bytes: UnsafeRawBufferPointer) {
        guard let start = unsafe room.baseAddress, let source = bytes.baseAddress, bytes.count > 0 else { return }
        precondition(unsafe bytes.count <= room.count - count, "\(bytes.count) bytes behind \(count) of \(unsafe room.count)")
        unsafe memcpy(start + count, source, bytes.count)
        count += bytes.count
    }

    /// Writes bytes.
    package mutating func write(_ bytes: [UInt8]) { unsafe bytes.withUnsafeBytes { unsafe write($0) } }

    /// Writes a text that stands in the program.
    package mutating func write(literal text: StaticString) {
        unsafe write(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Writes the text's UTF-8.
    package mutating func write(text: String) {
        let isWritten: Void? = unsafe text.utf8.withContiguousStorageIfAvailable { unsafe write(UnsafeRawBufferPointer($0)) }
        if isWritten == nil { write(Array(text.utf8)) }
    }

    /// Lets another one write into the rest.
    /// - Parameter fill: gets the rest, and returns how many of its bytes it has written.
    package mutating func write(_ fill: (_ rest: UnsafeMutableRawBufferPointer) -> Int) {
        let written = unsafe fill(UnsafeMutableRawBufferPointer(rebasing: room[count...]))
        precondition(unsafe written >= 0 && written <= room.count - count, "\(written) bytes behind \(count) of \(unsafe room.count)")
        count += written
    }
}

@available(*, unavailable)
extension ByteRoom: Sendable {}
