import HubJSON
import Testing

@Suite("JSONSource")
struct JSONSourceTests {
    private let parser = JSONParser(capacityBytes: 4096)

    private func source(_ text: String) throws -> JSONSource {
        try parser.source(of: parser.parse(text))
    }

    @Test(
        "a member's string token is returned byte for byte",
        arguments: [
            (#"{"data":"{\"a\":1}"}"#, #""{\"a\":1}""#), (#"{"data":"\u00eb\/\ud83d\ude00"}"#, #""\u00eb\/\ud83d\ude00""#),
            (#"{"data":"ë\\"}"#, #""ë\\""#), (#"{"x":{"data":"no"},"y":["data"],"data":"yes"}"#, #""yes""#),
            (#"{"a":"}\"{,","data" : "x" , "b":1}"#, #""x""#), (#"{"d\u0061ta":"escaped name"}"#, #""escaped name""#),
            ("\n{ \"data\"\t:\r\"\" }\n", #""""#), (#"{"n":-1.5e3,"t":true,"z":null,"data":"after scalars"}"#, #""after scalars""#),
        ])
    func rawString(text: String, token: String) throws {
        let root = try parser.parse(text)
        #expect(parser.rawString(ofMember: "data", of: root) == Array(token.utf8))
    }

    @Test("a string ends at the first quote that an even number of backslashes stands before", arguments: 0..<12)
    func backslashes(count: Int) throws {
        let run = String(repeating: #"\\"#, count: count)
        for inner in [run, run + #"\""#, #"\""# + run, run + #"\""# + run, run + "x" + #"\"\""#] {
            let root = try parser.parse(#"{"a":"\#(inner)","data":"\#(inner)","b":"\"x"}"#)
            #expect(parser.rawString(ofMember: "data", of: root) == Array("\"\(inner)\"".utf8), "\(inner)")
        }
    }

    @Test(
        "no string token where there is no such string",
        arguments: [#"{}"#, #"{"data":1}"#, #"{"data":{}}"#, #"["data"]"#, #""data""#, "1"])
    func noRawString(text: String) throws {
        let root = try parser.parse(text)
        #expect(parser.rawString(ofMember: "data", of: root) == nil)
    }

    @Test("compact text keeps numbers, escapes and the order of members as sent")
    func compact() throws {
        var output = Array("before ".utf8)
        try source(" { \"b\" : 1.50 , \"a\" : [ 1e2 , \"x  y\\u0041\" , { } ] } ").appendCompact(to: &output)
        #expect(String(decoding: output, as: UTF8.self) == #"before {"b":1.50,"a":[1e2,"x  y\u0041",{}]}"#)
        output = []
        try source("  -0.0  ").appendCompact(to: &output)
        #expect(String(decoding: output, as: UTF8.self) == "-0.0")
    }

    @Test("long compact text is right across the parser's block size")
    func longCompact() throws {
        for count in 0..<300 {
            let items = (0..<count).map(String.init)
            var output: [UInt8] = []
            try source("[ " + items.joined(separator: " ,\n ") + " ]").appendCompact(to: &output)
            #expect(String(decoding: output, as: UTF8.self) == "[" + items.joined(separator: ",") + "]")
        }
    }

    @Test(
        "a string literal is the string's own token, or another value's compact text in quotes",
        arguments: [
            (#""a\u0062""#, #""a\u0062""#, 2), (#"{"x": "q"}"#, #""{\"x\":\"q\"}""#, 9), ("null", #""null""#, 4),
            ("[1, 2]", #""[1,2]""#, 5),
            (#"{"s":"\n"}"#, #""{\"s\":\"\\n\"}""#, 10),
        ])
    func stringLiteral(text: String, literal: String, size: Int) throws {
        var output: [UInt8] = []
        #expect(try source(text).appendStringLiteral(to: &output) == size)
        #expect(String(decoding: output, as: UTF8.self) == literal)
        #expect(try parser.parse(output).stringCount == size)
    }

    @Test("array elements are found with their own text")
    func elements() throws {
        let elements = try source(#"[ 1 , "a,]" , [2 ,3], {"b" : "]"} ]"#).elements.map { String(decoding: $0.bytes, as: UTF8.self) }
        #expect(elements == ["1", #""a,]""#, "[2 ,3]", #"{"b" : "]"}"#])
        #expect(try source("[]").elements.isEmpty)
        #expect(try source("{}").elements.isEmpty)
    }
}
