import HubCore
import Testing

@Suite("JSONText and JSONValue")
struct JSONValueTests {
    @Test(
        "escapes what RFC 8259, 7 says has to be escaped, and nothing else",
        arguments: [
            ("", #""""#), ("plain", #""plain""#), ("a\"b\\c", #""a\"b\\c""#), ("\n\r\t", #""\n\r\t""#),
            ("\u{0}\u{1}\u{8}\u{C}\u{1F}", #""\u0000\u0001\u0008\u000c\u001f""#), ("\u{7F}/", "\"\u{7F}/\""),
            ("Zoë 🎾 \u{2028}", "\"Zoë 🎾 \u{2028}\""),
        ])
    func escaping(text: String, expected: String) {
        var output: [UInt8] = []
        JSONText.appendQuoted(text.utf8, to: &output)
        #expect(String(decoding: output, as: UTF8.self) == expected)
        #expect(JSONValue.string(text).text == expected)
    }

    @Test("appends behind what is there, with and without quotes")
    func appending() {
        var output = Array("x=".utf8)
        JSONText.appendEscaped("a\"".utf8, to: &output)
        #expect(String(decoding: output, as: UTF8.self) == #"x=a\""#)
    }

    @Test("writes members in key order and every kind of value")
    func serialized() {
        let value: JSONValue = [
            "z": 1, "a": ["x", true, false, .null, .double(1.5), .int(.min), .int(.max)], "m": [:], "e": [], "\"": .double(.nan),
        ]
        #expect(
            value.text
                == #"{"\"":null,"a":["x",true,false,null,1.5,-9223372036854775808,9223372036854775807],"e":[],"m":{},"z":1}"#)
    }

    @Test("gives members and contents of the right kind only")
    func access() {
        let value: JSONValue = ["s": "text", "i": 7, "b": true, "a": [1], "o": ["k": "v"]]
        #expect(value["s"]?.stringValue == "text")
        #expect(value["i"]?.intValue == 7)
        #expect(value["b"]?.boolValue == true)
        #expect(value["a"]?.arrayValue == [1])
        #expect(value["o"]?.objectValue == ["k": "v"])
        #expect(value["o"]?["k"]?.stringValue == "v")
        #expect(value["missing"] == nil)
        #expect(value["s"]?.intValue == nil && value["i"]?.stringValue == nil && value["a"]?["k"] == nil)
    }
}

@Suite("HTTPMessage")
struct HTTPMessageTests {
    @Test("a parameter is the first of its name")
    func parameter() {
        let request = HTTPRequest(method: "GET", path: "/", query: [("a", "1"), ("b", ""), ("a", "2")])
        #expect(request.parameter("a") == "1")
        #expect(request.parameter("b") == "")
        #expect(request.parameter("c") == nil)
    }

    @Test("an error is a JSON object with a sentence")
    func error() {
        let response = HTTPResponse.error(404, "no \"such\" thing")
        #expect(response.status == 404)
        #expect(response.contentType == "application/json")
        #expect(String(decoding: response.body, as: UTF8.self) == #"{"error":"no \"such\" thing"}"#)
    }
}
