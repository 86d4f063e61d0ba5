import HubDelivery
import HubTesting
import Testing

@testable import HubServer

@Suite("Facts between nodes for live tails")
struct LivePieceTests {
    private static func fact(_ detail: LiveFact.Detail, channel: String? = "presence-ä", user: String? = nil) -> LiveFact {
        LiveFact(at: 1_795_600_000_123, channel: channel, user: user, detail)
    }

    private static let facts: [LiveFact] = [
        fact(.join(socket: "1.2"), user: "u"), fact(.leave(socket: nil)), fact(.leave(socket: "1.2"), channel: nil),
        fact(.event(name: "asked", id: "e", policy: .critical, recipients: 3, sequence: 7)),
        fact(.event(name: "", id: nil, policy: nil, recipients: nil, sequence: nil)),
        fact(.decision(event: "e", RecipientNote(state: .serverGrace, choice: .quietHoursDropped)), user: "u"),
        fact(.decision(event: "e", RecipientNote(state: nil, choice: .socketOnly)), user: "u"),
        fact(.receipt(event: "e", after: 12), user: "u"),
        fact(.push(event: "e", nid: "n", device: "d", .skippedUnconfigured, answer: nil, attempt: 0), user: "u"),
        fact(.push(event: "e", nid: "n", device: "d", .retry, answer: "503 \u{0}", attempt: 2), user: "u"),
    ]

    @Test("every fact comes back as it went, and no beginning of a piece is one")
    func everyFact() throws {
        let piece = LivePiece(node: "0123456789abcdef", facts: Self.facts, skipped: 9)
        let bytes = piece.bytes
        #expect(Set(Self.facts.map(\.detail.kind)) == Set(LiveFact.Kind.allCases))
        #expect(LivePiece(bytes: bytes[...]) == piece)
        for count in 0..<bytes.count { #expect(LivePiece(bytes: bytes[..<count]) == nil, "\(count) bytes") }
        #expect(LivePiece(bytes: [2] + bytes[1...]) == nil, "a piece of another shape is not read")
    }

    @Test("changed bytes are another piece or none")
    func changed() {
        var random = SeededRandom(state: 11)
        let bytes = LivePiece(node: "n", facts: Self.facts, skipped: 0).bytes
        for _ in 0..<2_000 {
            var bytes = bytes
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: .min ... .max, using: &random)
            }
            if let read = LivePiece(bytes: bytes[...]) { #expect(!read.bytes.isEmpty) }
        }
    }

    @Test(
        "a listener's wishes come back, whatever number its node counts on",
        arguments: [
            LiveFilter(app: "1"), LiveFilter(app: "2", channel: "c", user: "ü", kinds: [.push, .join]), LiveFilter(app: "", kinds: []),
        ])
    func filter(filter: LiveFilter) {
        for beat in [0, 1, UInt64.max] { #expect(LiveFilter(bytes: filter.bytes(beat: beat)[...]) == filter) }
        #expect(filter.bytes(beat: 1) != filter.bytes(beat: 2))
        #expect(LiveFilter(bytes: []) == nil)
    }
}
