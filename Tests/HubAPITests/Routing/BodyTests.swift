import HubCore
import Testing

@testable import HubAPI

@Suite("JSONBody and FormText")
struct BodyTests {
    @Test("forms are decoded as browsers encode them")
    func form() {
        #expect(
            FormText.decode(Array("socket_id=1.2&channel_name=presence-a%2Cb+c&socket_id=9&empty=&bare".utf8))
                == ["socket_id": "1.2", "channel_name": "presence-a,b c", "empty": "", "bare": ""])
        #expect(FormText.decode(Array("a=%C3%BC%c3%bc".utf8)) == ["a": "üü"])
        #expect(FormText.decode([]) == [:])
    }

    @Test("broken escapes and broken UTF-8 are refused", arguments: ["a=%", "a=%2", "a=%zz", "%4=1", "a=%FF", "a=%+1"])
    func brokenForm(text: String) {
        #expect(FormText.decode(Array(text.utf8)) == nil)
        #expect(throws: APIError.self) { try JSONBody(Array(text.utf8), acceptsForm: true) }
    }

    @Test("100 members of a form are accepted, 101 are not, repeated ones included")
    func memberCount() {
        let form = { (count: Int) in FormText.decode(Array((0..<count).map { "m\($0 % 99)=x" }.joined(separator: "&").utf8)) }
        #expect(form(100)?.count == 99)
        #expect(form(101) == nil)
        #expect(FormText.decode([UInt8](repeating: UInt8(ascii: "&"), count: 1000)) == [:])
    }

    @Test("JSON nests 32 deep, its own object included, and no deeper")
    func depth() throws {
        let body = { (depth: Int) in
            Array("{\"a\":\(String(repeating: "[", count: depth))1\(String(repeating: "]", count: depth))}".utf8)
        }
        #expect(try JSONBody(body(31)).has("a"))
        #expect { try JSONBody(body(32)) } throws: { ($0 as? APIError)?.sentence.contains("nested too deeply") == true }
    }

    @Test("a brace tells JSON from a form; null is absent")
    func kinds() throws {
        let json = try JSONBody(Array(" \n{\"a\":\"x\",\"b\":null}".utf8), acceptsForm: true)
        #expect(try json.string("a", charactersMax: 1) == "x")
        #expect(try json.string("b", charactersMax: 1) == nil)
        #expect(json.has("b") && !json.has("c"))
        #expect(throws: APIError(400, "b is missing: send it as a string")) { try json.requiredString("b", charactersMax: 9) }
        let form = try JSONBody(Array("a=x".utf8), acceptsForm: true)
        #expect(try form.string("a", charactersMax: 1) == "x")
        #expect(throws: APIError.self) { try JSONBody(Array("a=x".utf8)) }
        #expect(throws: APIError.self) { try JSONBody(Array(" \n".utf8), acceptsForm: true) }
    }

    @Test("lengths count Unicode scalars, not what looks like one character")
    func lengths() throws {
        let body = try JSONBody(Array(#"{"a":"e\u0301\u0301"}"#.utf8))
        #expect(try body.string("a", charactersMax: 3) != nil)
        #expect(throws: APIError.self) { try body.string("a", charactersMax: 2) }
    }

    @Test("random bodies end in members or in a 400")
    func random() {
        var generator = SystemRandomNumberGenerator()
        let seed = UInt64.random(in: 0 ... .max, using: &generator)
        var state = seed
        let alphabet = Array("{}[]\":,%+&=a1\\ \u{fc}".utf8)
        for _ in 0..<5_000 {
            var bytes: [UInt8] = []
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            for _ in 0..<(state >> 33 % 24) {
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                bytes.append(alphabet[Int(state >> 33) % alphabet.count])
            }
            do throws(APIError) {
                _ = try JSONBody(bytes, acceptsForm: true)
            } catch {
                #expect(error.status == 400, "seed \(seed)")
            }
        }
    }
}
