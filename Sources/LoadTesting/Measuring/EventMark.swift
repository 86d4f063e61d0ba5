internal import CLoadSockets

/// Identifies an event on arrival by its data: its due time, and its place in a sequence.
///
/// 32 characters, `~t` + kind (1 hexadecimal digit) + stream (4) + due time (16) + sequence (8) + `~`. JSON and URLs escape none of them,
/// so every server passes the mark on unchanged, however often it wraps it into strings.
package struct EventMark: Equatable, Sendable {
    package static let length = 32
    private static let prefixLength = 2

    /// The sort of event, 0 to 15, numbered by the scenario.
    package var kind: Int
    /// The sender of the sequence: a publisher's connection or a client. Order is promised within one stream only.
    package var stream: Int
    /// Nanoseconds of the monotonic clock.
    package var due: UInt64
    /// From 0, per kind, stream and channel.
    package var sequence: UInt32

    package init(kind: Int, stream: Int, due: UInt64, sequence: UInt32) {
        self.kind = kind
        self.stream = stream
        self.due = due
        self.sequence = sequence
    }

    package var text: String { String(decoding: bytes, as: UTF8.self) }

    package var bytes: [UInt8] {
        var bytes = Array("~t".utf8)
        bytes.reserveCapacity(Self.length)
        Self.append(UInt64(kind), digits: 1, to: &bytes)
        Self.append(UInt64(stream), digits: 4, to: &bytes)
        Self.append(due, digits: 16, to: &bytes)
        Self.append(UInt64(sequence), digits: 8, to: &bytes)
        bytes.append(UInt8(ascii: "~"))
        return bytes
    }

    private static func append(_ value: UInt64, digits: Int, to bytes: inout [UInt8]) {
        for place in stride(from: (digits - 1) * 4, through: 0, by: -4) {
            let digit = UInt8(value >> UInt64(place) & 15)
            bytes.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
        }
    }

    /// The first mark in a message.
    /// - Parameter hint: offset of the last mark found. Events of one run are alike, so the next mark is mostly there and needs no search.
    static func find(in message: UnsafeRawBufferPointer, hint: inout Int) -> EventMark? {
        if let mark = unsafe read(message, at: hint) { return mark }
        var from = 0
        while message.count - from >= length, let base = message.baseAddress {
            let found = unsafe tandem_load_find(base + from, message.count - from, "~t", prefixLength)
            guard found >= 0 else { return nil }
            if let mark = unsafe read(message, at: from + found) {
                hint = from + found
                return mark
            }
            from += found + prefixLength
        }
        return nil
    }

    /// The next mark of a message that may hold several.
    /// - Parameter from: start of the search; moved past the mark.
    static func next(in message: UnsafeRawBufferPointer, from: inout Int) -> EventMark? {
        guard from < message.count else { return nil }
        var place = 0
        guard let mark = unsafe find(in: UnsafeRawBufferPointer(rebasing: message[from...]), hint: &place) else { return nil }
        from += place + length
        return mark
    }

    /// All marks of a message, for tests and small messages.
    package static func all(in message: [UInt8]) -> [EventMark] {
        var from = 0
        var marks: [EventMark] = []
        unsafe message.withUnsafeBytes {
            while let mark = unsafe next(in: $0, from: &from) { marks.append(mark) }
        }
        return marks
    }

    /// The first mark of a message, for tests and small messages.
    package static func find(in message: [UInt8]) -> EventMark? {
        var hint = 0
        return unsafe message.withUnsafeBytes { unsafe find(in: $0, hint: &hint) }
    }

    private static func read(_ message: UnsafeRawBufferPointer, at place: Int) -> EventMark? {
        guard place + length <= message.count, unsafe message[place] == UInt8(ascii: "~"),
            unsafe message[place + 1] == UInt8(ascii: "t"), unsafe message[place + length - 1] == UInt8(ascii: "~")
        else { return nil }
        var isValid = true
        let kind = unsafe number(message, place + 2, 1, &isValid)
        let stream = unsafe number(message, place + 3, 4, &isValid)
        let due = unsafe number(message, place + 7, 16, &isValid)
        let sequence = unsafe number(message, place + 23, 8, &isValid)
        guard isValid else { return nil }
        return EventMark(kind: Int(kind), stream: Int(stream), due: due, sequence: UInt32(truncatingIfNeeded: sequence))
    }

    @inline(__always)
    private static func number(_ message: UnsafeRawBufferPointer, _ place: Int, _ digits: Int, _ isValid: inout Bool) -> UInt64 {
        var value: UInt64 = 0
        for index in place..<place + digits {
            let character = unsafe message[index]
            let digit = character &- UInt8(ascii: "0")
            if digit < 10 {
                value = value << 4 | UInt64(digit)
            } else {
                let letter = character &- UInt8(ascii: "a")
                if letter > 5 { isValid = false }
                value = value << 4 | UInt64(letter &+ 10)
            }
        }
        return value
    }
}
