import HubCore
import Testing

@Suite("Quotation")
struct QuotationTests {
    @Test("what a peer sent is quoted up to a number of scalars, however few characters that are")
    func bounded() {
        #expect("abc".quotable(64) == "abc")
        #expect("abcdef".quotable(3) == "abc")
        #expect("é🎯x".dropFirst().quotable(1) == "🎯")
        #expect("".quotable(3).isEmpty)
        // One character of Swift's, which `prefix` let through whole.
        let accents = "e" + String(repeating: "\u{301}", count: 100_000)
        #expect(accents.quotable(64).unicodeScalars.count == 64)
    }
}
