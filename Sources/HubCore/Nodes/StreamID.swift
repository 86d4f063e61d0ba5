/// Place of an entry in a stream of Redis: milliseconds of Redis' clock, and a number among those of the same millisecond.
package struct StreamID: Sendable, Hashable, Comparable, CustomStringConvertible {
    package var milliseconds: UInt64
    package var number: UInt64

    package init(milliseconds: UInt64, number: UInt64 = 0) {
        self.milliseconds = milliseconds
        self.number = number
    }

    /// - Parameter text: as Redis writes it: `1700000000000-0`. Nil for any other text.
    package init?(_ text: String) {
        guard let dash = text.utf8.firstIndex(of: UInt8(ascii: "-")), let milliseconds = UInt64(text[..<dash]),
            let number = UInt64(text[text.utf8.index(after: dash)...])
        else { return nil }
        self.init(milliseconds: milliseconds, number: number)
    }

    /// Before every entry.
    package static let zero = StreamID(milliseconds: 0)

    package var description: String { "\(milliseconds)-\(number)" }

    package static func < (one: StreamID, other: StreamID) -> Bool {
        (one.milliseconds, one.number) < (other.milliseconds, other.number)
    }
}
