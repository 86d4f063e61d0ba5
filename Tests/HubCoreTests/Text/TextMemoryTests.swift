import HubCore
import Testing

struct TextMemoryTests {
    private func text(_ text: String, _ memory: TextMemory) -> String { Array(text.utf8).withUnsafeBytes { memory.text(of: $0) } }

    /// Where a text lies that is no part of its `String`.
    private func place(_ text: String) -> UnsafePointer<UInt8>? {
        text.utf8.withContiguousStorageIfAvailable { $0.baseAddress } ?? nil
    }

    @Test("each text is the one that its bytes are, whatever came before", arguments: [1, 2, 64])
    func same(count: Int) {
        let memory = TextMemory(count: count)
        let ends = ["", "a", "b", "\u{E9}", "e\u{301}"]
        let middles = [0, 1, 7, 8, 9, 14, 15, 16, 17, 100, 254, 255, 256, 257, 1000]
        for _ in 0..<2 {
            for middle in middles {
                for (front, back) in ends.flatMap({ front in ends.map { (front, $0) } }) {
                    let expected = front + String(repeating: "x", count: middle) + back
                    #expect(Array(text(expected, memory).utf8) == Array(expected.utf8))
                }
            }
        }
    }

    @Test("bytes that are no UTF-8 are repaired, each time")
    func repaired() {
        let memory = TextMemory(count: 4)
        let bytes = Array("a channel with a name ".utf8) + [0xFF, 0xC3]
        for _ in 0..<2 {
            #expect(bytes.withUnsafeBytes { memory.text(of: $0) } == String(decoding: bytes, as: UTF8.self))
        }
    }

    @Test(
        "names that differ in a digit are kept beside each other",
        arguments: ["presence-session-of-the-quiz-#", "#-of-the-quizzes", "a-room-#-of-ten"])
    func beside(pattern: String) {
        let memory = TextMemory(count: 64)
        let names = (0..<10).map { pattern.replacing("#", with: "\($0)") + (pattern.utf8.count < 16 ? "th" : "") }
        let kept = names.map { text($0, memory) }
        #expect(zip(names, kept).count { place(text($0, memory)) == place($1) } >= 7)
    }

    @Test("a text that comes again lies where it lay, until another one takes its place")
    func kept() {
        let memory = TextMemory(count: 1)
        let first = text("presence-session-of-the-quiz-1", memory)
        #expect(place(text("presence-session-of-the-quiz-1", memory)) == place(first))
        _ = text("presence-session-of-the-quiz-2", memory)
        #expect(place(text("presence-session-of-the-quiz-1", memory)) != place(first))
        #expect(first == "presence-session-of-the-quiz-1")
        let long = String(repeating: "y", count: TextMemory.bytesMax + 1)
        let longer = text(long, memory)
        #expect(place(text(long, memory)) != place(longer))
    }
}
