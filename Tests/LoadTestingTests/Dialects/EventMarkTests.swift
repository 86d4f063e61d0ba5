import HubTesting
import LoadTesting
import Testing

@Suite("EventMark")
struct EventMarkTests {
    private static let mark = EventMark(kind: 11, stream: 0xBEEF, due: 0x0123_4567_89AB_CDEF, sequence: 0xFEDC_BA98)

    @Test("is 32 characters that neither JSON nor a URL escapes")
    func text() {
        #expect(Self.mark.text == "~tbbeef0123456789abcdeffedcba98~")
        #expect(Self.mark.text.utf8.count == EventMark.length)
    }

    @Test(
        "is found whatever stands around it",
        arguments: ["", "x", "~", "~t", "{\"event\":\"load\",\"data\":\"{\\\"m\\\":\\\"", "~tbbeef0123456789abcdeffedcba98!", "~t~t~t"])
    func found(before: String) {
        for after in ["", "\\\"}\"}", "~t", Self.mark.text] {
            #expect(EventMark.find(in: Array((before + Self.mark.text + after).utf8)) == Self.mark)
        }
    }

    @Test("is not found where it is cut or spoilt")
    func absent() {
        let bytes = Array(Self.mark.text.utf8)
        for count in 0..<bytes.count { #expect(EventMark.find(in: Array(bytes[..<count])) == nil) }
        for place in bytes.indices {
            var spoilt = bytes
            spoilt[place] = UInt8(ascii: "G")
            #expect(EventMark.find(in: spoilt) == nil)
        }
    }

    @Test("survives a trip for any value")
    func roundTrip() {
        var random = SeededRandom(state: 7)
        for _ in 0..<1000 {
            let mark = EventMark(
                kind: .random(in: 0...15, using: &random), stream: .random(in: 0...0xFFFF, using: &random),
                due: .random(in: 0 ... .max, using: &random), sequence: .random(in: 0 ... .max, using: &random))
            #expect(EventMark.find(in: mark.bytes) == mark)
        }
    }

    @Test("a message may hold several marks, whatever stands between them")
    func several() {
        let marks = (0..<3).map { EventMark(kind: 1, stream: $0, due: 77, sequence: UInt32($0)) }
        let message = marks.map { "MSG room 1 40\r\n{\"m\":\"\($0.text)\"}\r\n" }.joined() + "~t0000"
        #expect(EventMark.all(in: Array(message.utf8)) == marks)
        #expect(EventMark.all(in: Array(marks.map(\.text).joined().utf8)) == marks)
        #expect(EventMark.all(in: []).isEmpty)
    }
}
