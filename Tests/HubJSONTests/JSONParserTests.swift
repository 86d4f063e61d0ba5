import HubCore
import HubJSON
import HubTesting
import Testing

@Suite("JSONParser")
struct JSONParserTests {
    private let parser = JSONParser(capacityBytes: 4096, depthMax: 8)

    @Test("every kind of value is read, at the top and inside")
    func kinds() throws {
        let root = try parser.parse(
            #" {"null":null,"yes":true,"no":false,"int":-7,"most":9223372036854775807,"beyond":9223372036854775808,"half":0.5,"exp":1e3,"text":"a\"\u00e9\ud83d\ude00\u0000b","array":[1,[2,[]],{}],"object":{"a":{"b":1}}} "#
        )
        #expect(root.kind == .object)
        #expect(root.find("null")?.isNull == true)
        #expect(root.find("yes")?.bool == true)
        #expect(root.find("no")?.bool == false)
        #expect(root.find("int")?.int == -7)
        #expect(root.find("int")?.unsignedInt == nil)
        #expect(root.find("most")?.int == .max)
        #expect(root.find("beyond")?.kind == .double)
        #expect(root.find("beyond")?.int == nil)
        #expect(root.find("beyond")?.unsignedInt == 1 << 63)
        #expect(root.find("half")?.double == 0.5)
        #expect(root.find("exp")?.int == nil)
        #expect(root.find("text")?.string == "a\"é😀\0b")
        #expect(root.find("text")?.stringCount == 10)
        #expect(root.find("text")?.isString("a\"é😀\0b") == true)
        #expect(root.find("text")?.isString("a") == false)
        #expect(root.find("array")?.elements.map { $0.kind } == [.int, .array, .object])
        #expect(root.find("object")?.find("a")?.find("b")?.int == 1)
        #expect(root.find("missing") == nil)
        #expect(root.find("int")?.find("a") == nil)
        #expect(root.find("int")?.elements.first { _ in true } == nil)
        #expect(root.members.map { $0.key.string ?? "" }.prefix(3) == ["null", "yes", "no"])
    }

    @Test("a bare scalar is a document", arguments: ["null", "true", "-1", "2.5", #""x""#, "[]", "{}", " [ ] "])
    func scalars(text: String) throws {
        #expect(try parser.parse(text).minified == Array(text.utf8.filter { $0 != 0x20 }))
    }

    @Test("values become JSONValue and back")
    func values() throws {
        let text = #"{"a":[1,-2,0.5,true,null,"x\ny"],"b":{"c":{}},"u":18446744073709551615}"#
        let value = try JSONValue(parsing: text)
        #expect(value["a"] == [1, -2, .double(0.5), true, .null, "x\ny"])
        #expect(value["u"] == .double(18_446_744_073_709_551_616))
        #expect(try String(decoding: parser.parse(text).minified, as: UTF8.self) == text)
        #expect(try JSONValue(parsing: value.serialized()) == value)
    }

    @Test("of repeated names the first counts, in every form")
    func repeatedNames() throws {
        let root = try parser.parse(#"{"a":1,"\u0061":2,"a":3}"#)
        #expect(root.find("a")?.int == 1)
        #expect(root.value == ["a": 1])
        #expect(parser.source(of: root).member("a")?.bytes == Array("1".utf8))
    }

    @Test(
        "malformed text is refused with a reason",
        arguments: [
            "", " ", "{", "}", "[", "]", "[1", "[1,]", "[,1]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "{1:2}", "{'a':1}", "nul",
            "tru", "falsey", "01", "1.", ".5", "+1", "1e", "0x1", "--1", "NaN", "Infinity", "1e999", "\"", "\"a", "\"\\\"", "\"\\x\"",
            "\"\\u12\"", "\"\\ud800\"", "\"\\ud800\\u0041\"", "\"a\nb\"", "\"a\u{0}b\"", "1 2", "{} {}", "[] x", "// c\n1", "[1 2]",
            "{\"a\" 1}",
            "\u{FEFF}{}", "18446744073709551616", "\"a\"b", "[\"a\"\"b\"]",
        ])
    func malformed(text: String) {
        #expect { try parser.parse(text) } throws: { error in
            guard let error = error as? JSONError else { return false }
            return !error.message.isEmpty && error.message != "malformed document"
        }
    }

    @Test(
        "text that is not UTF-8 is refused wherever it stands",
        arguments: [[0x80], [0xC3], [0xC0, 0xAF], [0xE2, 0x82], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xFF]] as [[UInt8]])
    func invalidUTF8(bytes: [UInt8]) {
        #expect(throws: JSONError(message: "text that is not UTF-8")) {
            try parser.parse(Array("{\"a\":\"".utf8) + bytes + Array("\"}".utf8))
        }
        #expect(throws: JSONError.self) { try parser.parse(bytes) }
    }

    @Test("nesting is accepted up to the bound and refused beyond")
    func depth() throws {
        let nested = { (depth: Int, inner: String) in
            String(repeating: "[", count: depth) + inner + String(repeating: "]", count: depth)
        }
        for inner in ["1", "\"x\"", "null", "[]"] {
            #expect(try parser.parse(nested(8, inner)).kind == .array)
            #expect(throws: JSONError(message: "nested too deeply")) { try parser.parse(nested(9, inner)) }
        }
        let objects = String(repeating: "{\"a\":", count: 8) + "1" + String(repeating: "}", count: 8)
        #expect(try parser.parse(objects).kind == .object)
        #expect(throws: JSONError(message: "nested too deeply")) { try parser.parse("[" + objects + "]") }
        #expect(try parser.parse(nested(9, "")).kind == .array)
        #expect(throws: JSONError(message: "nested too deeply")) { try parser.parse(nested(10, "")) }
        #expect(throws: JSONError(message: "nested too deeply")) { try JSONValue(parsing: nested(100_000, "")) }
        #expect(throws: JSONError.self) { try parser.parse(String(repeating: "[", count: 4096)) }
    }

    @Test("documents over the capacity are refused unread, at the capacity accepted")
    func capacity() throws {
        let text = "\"" + String(repeating: "x", count: 4094) + "\""
        #expect(try parser.parse(text).stringCount == 4094)
        #expect(throws: JSONError(message: "document of 4097 bytes, more than the 4096 allowed")) { try parser.parse(text + " ") }
        // The densest documents fill simdjson's own buffers.
        for unit in ["[],", "0,", "\"\","] {
            let count = 4094 / unit.utf8.count
            let dense = "[" + String(repeating: unit, count: count).dropLast() + "]"
            #expect(try parser.parse(dense).elements.reduce(into: 0) { sum, _ in sum += 1 } == count)
        }
        let smallest = JSONParser(capacityBytes: 1)
        #expect(try smallest.parse("7").int == 7)
        #expect(throws: JSONError.self) { try smallest.parse("77") }
    }

    @Test("a parser is good for the next document after a refused one")
    func reuse() throws {
        for round in 0..<1000 {
            #expect(try parser.parse("{\"n\":\(round)}").find("n")?.int == Int64(round))
            #expect(throws: JSONError.self) { try parser.parse("{\"n\":") }
        }
    }

    @Test("an element used after the next parse stops the program")
    func staleElement() async {
        await #expect(processExitsWith: .failure) {
            let parser = JSONParser(capacityBytes: 64)
            let stale = try parser.parse("[1]")
            _ = try parser.parse("[2]")
            print(stale.kind)
        }
    }

    private let sample =
        #"{"event":"client-\u00e9","channel":"private-a","data":{"x":[1,2.50,{"y":"a\\\"b"}],"z":null},"n":-1e-7,"t":true}"#

    @Test("a document cut at any byte is refused")
    func truncated() throws {
        let bytes = Array(sample.utf8)
        #expect(try parser.parse(bytes).kind == .object)
        for count in 0..<bytes.count {
            #expect(throws: JSONError.self, "cut at \(count)") { try parser.parse(Array(bytes[..<count])) }
        }
    }

    @Test("random bytes and random damage never crash, and what is accepted round-trips")
    func random() throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        print("JSONParser random seed: \(seed)")
        var generator = SeededRandom(state: seed)
        let alphabet = Array("{}[]\",:\\u0123eE+-. \ntrfalsn\u{e9}".utf8)
        var accepted = 0
        for _ in 0..<20_000 {
            var bytes: [UInt8]
            switch generator.next() % 3 {
            case 0: bytes = (0..<Int(generator.next() % 40)).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
            case 1: bytes = (0..<Int(generator.next() % 12)).map { _ in alphabet[Int(generator.next() % UInt64(alphabet.count))] }
            default:
                bytes = Array(sample.utf8)
                for _ in 0...generator.next() % 3 {
                    bytes[Int(generator.next() % UInt64(bytes.count))] = alphabet[Int(generator.next() % UInt64(alphabet.count))]
                }
            }
            guard let root = try? parser.parse(bytes) else { continue }
            accepted += 1
            let value = root.value
            let minified = root.minified
            let source = parser.source(of: root)
            var compact: [UInt8] = []
            source.appendCompact(to: &compact)
            var members: [[UInt8]] = []
            for member in root.members { members.append(source.member(member.key.string ?? "")?.bytes ?? []) }
            let first = root.members.map { $0.key.string ?? "" }
            #expect(try JSONValue(parsing: minified) == value, "seed \(seed)")
            #expect(try JSONValue(parsing: compact) == value, "seed \(seed)")
            for (name, text) in zip(first, members) {
                #expect(try JSONValue(parsing: text) == value[name], "seed \(seed)")
            }
        }
        #expect(accepted > 100, "seed \(seed)")
    }
}
