package import HubDelivery

/// The stored form of an event's notes: a byte that names the form, then either each note's byte or runs of equal ones.
///
/// Most recipients of an event are in one of two or three states. In blocks, runs encode them in a few bytes; mixed, plain bytes are
/// shorter.
package enum NoteCoding {
    private static let plain: UInt8 = 0
    /// Pairs of a note and a count (LEB128).
    private static let runs: UInt8 = 1

    /// Encodes the notes in the shorter of the two forms.
    package static func encode(_ notes: [RecipientNote]) -> [UInt8] {
        var encoded = [runs]
        var next = 0
        while next < notes.count, encoded.count <= notes.count {
            let start = next
            while next < notes.count, notes[next] == notes[start] { next += 1 }
            encoded.append(notes[start].code)
            var rest = next - start
            while rest >= 0x80 {
                encoded.append(UInt8(rest & 0x7F) | 0x80)
                rest >>= 7
            }
            encoded.append(UInt8(rest))
        }
        if encoded.count > notes.count { encoded = [plain] + notes.map(\.code) }
        assert(notes.count > checkedMax || decode(encoded, count: notes.count) == notes, "\(notes.count) notes read otherwise than written")
        return encoded
    }

    /// Most notes that an assertion decodes again.
    private static let checkedMax = 256

    /// - Returns: nil if the bytes are not notes of exactly `count` recipients.
    package static func decode(_ encoded: [UInt8], count: Int) -> [RecipientNote]? {
        if encoded.first == plain { return encoded.count == count + 1 ? encoded.dropFirst().map(RecipientNote.init(code:)) : nil }
        var notes: [RecipientNote] = []
        let isWhole = forEachRun(encoded) { note, length in
            guard length <= count - notes.count else { return false }
            notes += repeatElement(note, count: length)
            return true
        }
        return isWhole && notes.count == count ? notes : nil
    }

    /// One recipient's note, without decoding the rest.
    /// - Returns: nil if the note cannot be read.
    package static func note(_ place: Int, in encoded: [UInt8], count: Int) -> RecipientNote? {
        guard (0..<count).contains(place) else { return nil }
        if encoded.first == plain { return encoded.count == count + 1 ? RecipientNote(code: encoded[place + 1]) : nil }
        var (first, found) = (0, RecipientNote?.none)
        _ = forEachRun(encoded) { note, length in
            guard place - first >= length else {
                found = note
                return false
            }
            first += length
            return true
        }
        return found
    }

    /// - Parameter body: returns false to end the walk.
    /// - Returns: whether all bytes were valid runs and `body` accepted each.
    private static func forEachRun(_ encoded: [UInt8], _ body: (RecipientNote, Int) -> Bool) -> Bool {
        guard encoded.first == runs else { return false }
        var next = 1
        while next < encoded.count {
            let note = RecipientNote(code: encoded[next])
            var (length, shift) = (0, 0)
            repeat {
                next += 1
                guard next < encoded.count, shift < 35 else { return false }
                length |= Int(encoded[next] & 0x7F) << shift
                shift += 7
            } while encoded[next] >= 0x80
            next += 1
            guard body(note, length) else { return false }
        }
        return true
    }
}

/// When the recipients of one event confirmed it: 16 bits each, low byte first.
///
/// 0 is never; n stands for n - 1 steps of 100 ms after the commit, and the largest for that or later.
package struct ReceiptTimes: Sendable, Equatable {
    /// Length of one step.
    package static let stepMilliseconds: Int64 = 100
    private(set) package var bytes: [UInt8]

    /// No receipts yet, for `count` recipients.
    package init(count: Int) {
        bytes = Array(repeating: 0, count: 2 * count)
    }

    /// Reads stored times. An empty array stands for no receipts.
    /// - Returns: nil if the bytes are not times of exactly `count` recipients.
    package init?(bytes: [UInt8], count: Int) {
        guard bytes.isEmpty || bytes.count == 2 * count else { return nil }
        self.bytes = bytes.isEmpty ? Array(repeating: 0, count: 2 * count) : bytes
    }

    /// - Parameter milliseconds: since the commit; negative counts as 0.
    package mutating func set(_ place: Int, milliseconds: Int64) {
        let value = UInt16(clamping: 1 + max(0, milliseconds) / Self.stepMilliseconds)
        bytes[2 * place] = UInt8(truncatingIfNeeded: value)
        bytes[2 * place + 1] = UInt8(truncatingIfNeeded: value >> 8)
    }

    /// Milliseconds since the commit, rounded down to a step; nil: no receipt.
    package func milliseconds(_ place: Int) -> Int64? {
        guard place >= 0, 2 * place + 1 < bytes.count else { return nil }
        let value = Int64(bytes[2 * place]) | Int64(bytes[2 * place + 1]) << 8
        return value == 0 ? nil : (value - 1) * Self.stepMilliseconds
    }
}
