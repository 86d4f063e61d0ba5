import HubDelivery
import HubStorage
import HubTesting
import StoreTesting
import Testing

@Suite("FanoutCoding")
struct FanoutCodingTests {
    @Test("a list of recipients is read as it was written, and nothing else is read as one")
    func snapshots() throws {
        for users in [[], ["a"], [""], (0..<1_000).map { "ü\($0)" }, [String(repeating: "y", count: 40_000)]] {
            let snapshot = RecipientSnapshot(users: users)
            let read = try #require(RecipientSnapshot(encoded: snapshot.encoded, key: snapshot.key))
            #expect(read.users == users && read == snapshot)
            #expect(snapshot.key.count == 32)
        }
        #expect(RecipientSnapshot(users: ["ab", "c"]) != RecipientSnapshot(users: ["a", "bc"]))
        #expect(RecipientSnapshot(users: ["a", "b"]) != RecipientSnapshot(users: ["b", "a"]))
        let snapshot = RecipientSnapshot(users: ["a", "b"])
        #expect(RecipientSnapshot(encoded: Array(snapshot.encoded.dropLast()), key: snapshot.key) == nil)
        #expect(RecipientSnapshot(encoded: [1, 97, 1, 99], key: snapshot.key) == nil)
        #expect(RecipientSnapshot(encoded: snapshot.encoded, key: []) == nil)
    }

    @Test("a note is one byte and back, and an unknown byte is a note, too")
    func notes() {
        for state in DeviceState.allCases.map(Optional.some) + [nil] {
            for choice in RecipientNote.Choice.allCases {
                let note = RecipientNote(state: state, choice: choice)
                #expect(RecipientNote(code: note.code) == note)
            }
        }
        #expect(Set((0...UInt8.max).map { RecipientNote(code: $0).code }).count > 100)
        #expect(RecipientNote(code: 0xFE) == RecipientNote(state: .serverGrace, choice: .other))
        // Stored: these may never change.
        #expect(RecipientNote(state: .live, choice: .awaited).code == 0x21)
        #expect(RecipientNote(state: .absent, choice: .permissionDenied).code == 0xC8)
    }

    @Test("notes take few bytes in blocks and one each when they are mixed")
    func noteCoding() throws {
        let (a, b) = (RecipientNote(state: .live, choice: .awaited), RecipientNote(state: .absent, choice: .pushed))
        let cases: [([RecipientNote], ClosedRange<Int>)] = [
            ([], 0...2), ([a], 1...3), ([a, b], 1...3), (Array(repeating: a, count: 10_000), 1...4),
            ((0..<10_000).map { $0 < 9_000 ? a : b }, 1...8), ((0..<10_000).map { $0.isMultiple(of: 2) ? a : b }, 10_001...10_001),
        ]
        for (notes, size) in cases {
            let encoded = NoteCoding.encode(notes)
            #expect(size.contains(encoded.count), "\(notes.count) notes, \(encoded.count) bytes")
            #expect(NoteCoding.decode(encoded, count: notes.count) == notes)
            #expect(NoteCoding.decode(encoded, count: notes.count + 1) == nil)
            for place in [-1, 0, 1, 8_999, 9_000, 9_999, 10_000] {
                let expected = notes.indices.contains(place) ? notes[place] : nil
                #expect(NoteCoding.note(place, in: encoded, count: notes.count) == expected, "\(place) of \(notes.count)")
            }
        }
    }

    @Test("no bytes at all make the decoders stop the program")
    func hostileBytes() {
        let seed = UInt64.random(in: 0...UInt64.max)
        print("FanoutCoding seed \(seed)")
        var random = SplitMix(state: seed)
        for _ in 0..<20_000 {
            let bytes = (0..<Int(random.next() % 24)).map { _ in
                UInt8(truncatingIfNeeded: random.next() % 4 == 0 ? 0xFF : random.next() % 3)
            }
            let count = Int(random.next() % 40)
            if let notes = NoteCoding.decode(bytes, count: count) { #expect(notes.count == count) }
            _ = NoteCoding.note(Int(random.next() % 40), in: bytes, count: count)
            _ = ReceiptTimes(bytes: bytes, count: count)?.milliseconds(count)
            #expect(PlaceSet(bytes: bytes, count: count)?.contains(count + 8) != true)
            #expect(RecipientSnapshot(encoded: bytes, key: Array(repeating: 0, count: 32)) == nil)
            _ = AttemptLog.decode(String(decoding: bytes, as: UTF8.self))
        }
        #expect(NoteCoding.decode([1, 0x21, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F], count: 3) == nil)
        #expect(NoteCoding.decode([2, 0], count: 1) == nil)
    }

    @Test("places are members after they were inserted, and never beyond the set")
    func places() {
        var set = PlaceSet(count: 17)
        for place in [0, 7, 8, 16] { set.insert(place) }
        #expect((-3..<40).filter { set.contains($0) } == [0, 7, 8, 16])
        #expect(PlaceSet(bytes: set.bytes, count: 17) == set && PlaceSet(bytes: set.bytes, count: 25) == nil)
        #expect(PlaceSet(bytes: [], count: 17)?.isEmpty == true && !set.isEmpty)
        #expect(!set.contains(.max) && !set.contains(.min))
    }
}

/// Random numbers from a printed seed.
struct SplitMix {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
