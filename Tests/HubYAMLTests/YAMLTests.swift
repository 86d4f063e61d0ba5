import HubCore
import HubTesting
import HubYAML
import Testing

/// Mistakes that reading `text` with `body` notes, syntax included.
private func mistakes(_ text: String, _ body: (YAMLReader, YAMLNode) -> Void) -> [String] {
    do throws(YAMLError) {
        guard let root = try YAMLDocument.parse(text, file: "f.yaml") else { return ["nothing"] }
        let reader = YAMLReader(file: "f.yaml")
        body(reader, root)
        return reader.mistakes.map(\.description)
    } catch {
        return error.mistakes.map(\.description)
    }
}

@Suite("YAMLReader")
struct YAMLReaderTests {
    @Test("unknown keys are named with file, line, the nearest known key and all known keys, every one of them")
    func unknownKeys() {
        let found = mistakes("# c\nlisten:\n  hots: a\n  prot: 1\n  zzzzzzzz: 1\n") { reader, root in
            _ = reader.map(root, YAMLMap.topLevel, keys: ["listen"])?.map("listen", keys: ["host", "port"])
        }
        #expect(
            found == [
                "f.yaml:3: unknown key \"hots\" in listen; did you mean \"host\"? known keys: host, port",
                "f.yaml:4: unknown key \"prot\" in listen; did you mean \"port\"? known keys: host, port",
                "f.yaml:5: unknown key \"zzzzzzzz\" in listen; known keys: host, port",
            ])
    }

    @Test("a missing required key is told at its map with what to write")
    func required() {
        let found = mistakes("a:\n  b: 1\n") { reader, root in
            _ = reader.map(root, YAMLMap.topLevel, keys: ["a"])?.map("a", keys: ["b", "c"])?.required("c", "write c: 1")
        }
        #expect(found == ["f.yaml:2: a has no c: write c: 1"])
    }

    @Test(
        "wrong types",
        arguments: [
            ("x: [1]", "expected text, found a list"), ("x: {a: 1}", "expected text, found a map"),
            ("x:", "expected text, found nothing"),
            ("x: ~", "expected text, found nothing"), ("x: true", "expected text, found true; put it in quotes"),
        ])
    func notAString(text: String, message: String) {
        #expect(
            mistakes(text) { reader, root in _ = reader.map(root, "", keys: ["x"])?.string("x") } == ["f.yaml:1: .x: \(message)"])
    }

    @Test(
        "numbers and quoted words are text as written",
        arguments: [
            ("x: 007", "007"), ("x: 12", "12"), ("x: \"true\"", "true"), ("x: no", "no"), ("x: '~'", "~"), ("x: 1.50", "1.50"),
            ("x: 🎯", "🎯"),
        ])
    func strings(text: String, value: String) throws {
        let root = try #require(try YAMLDocument.parse(text, file: "f"))
        #expect(YAMLReader(file: "f").map(root, "", keys: ["x"])?.string("x") == value)
    }

    @Test(
        "whole numbers are plain and within their range",
        arguments: [
            ("0", 0), ("70000", nil), ("-1", nil), ("1.5", nil), ("\"1\"", nil), ("0x10", nil), ("1_000", nil), ("010", nil),
            ("65535", 65535),
            ("99999999999999999999", nil), ("", nil), ("yes", nil),
        ] as [(String, Int?)])
    func ints(text: String, value: Int?) throws {
        let root = try #require(try YAMLDocument.parse("x: \(text)", file: "f"))
        let reader = YAMLReader(file: "f")
        #expect(reader.map(root, "", keys: ["x"])?.int("x", in: 0...65535) == value)
        #expect(reader.mistakes.count == (value == nil ? 1 : 0))
    }

    @Test(
        "booleans are true or false and nothing else",
        arguments: [
            ("true", true), ("false", false), ("yes", nil), ("on", nil), ("True", nil), ("\"true\"", nil), ("1", nil),
        ] as [(String, Bool?)])
    func bools(text: String, value: Bool?) throws {
        let root = try #require(try YAMLDocument.parse("x: \(text)", file: "f"))
        let reader = YAMLReader(file: "f")
        #expect(reader.map(root, "", keys: ["x"])?.bool("x") == value)
        #expect(reader.mistakes.count == (value == nil ? 1 : 0))
    }

    @Test("a word outside its set is told with the nearest one")
    func choice() {
        enum Colour: String, CaseIterable { case red, green }
        #expect(
            mistakes("x: gren") { reader, root in
                if let node = reader.map(root, "", keys: ["x"])?["x"] { _ = reader.choice(node, "x", Colour.self) }
            } == ["f.yaml:1: x cannot be \"gren\"; did you mean \"green\"? it is one of: red, green"])
    }

    @Test("a long or broken wrong value is shown shortened, on one line")
    func longValue() {
        let text = String(repeating: "x", count: 500)
        let found = mistakes("a: \"b\\n\(text)\"") { reader, root in _ = reader.map(root, "m", keys: ["a"])?.int("a") }
        #expect(found.count == 1 && found[0].utf8.count < 150 && !found[0].contains("\n"))
    }
}

@Suite("YAMLDocument")
struct YAMLDocumentTests {
    @Test(
        "syntax mistakes have a line",
        arguments: [
            ("a: 1\nb: [1, 2\n", 3), ("a: 1\n  b: 2\n", 2), ("a: \"x\n", 2), ("a: 1\na: 2\n", 1), ("a: 1\n---\nb: 1\n", 2),
            ("a: *b\n", 1),
            ("a: !!binary x\n", 1), ("a:\n  <<: 1\n", 2), ("? [a]\n: 1\n", 1), ("a: 1\nb: \u{1}\n", 2), ("1: a\n\"1\": b\n", 2),
            ("a:\tb: c", 1),
        ])
    func syntax(text: String, line: Int) {
        let error = #expect(throws: YAMLError.self) { try YAMLDocument.parse(text, file: "f.yaml") }
        #expect(error?.mistakes.first?.line == line, "\(error.map(String.init(describing:)) ?? "")")
        #expect(error?.mistakes.first?.file == "f.yaml")
    }

    @Test("a duplicate key is named")
    func duplicate() {
        let error = #expect(throws: YAMLError.self) { try YAMLDocument.parse("a: 1\nb:\n  port: 1\n  port: 2\n", file: "f.yaml") }
        #expect(error?.description.hasPrefix("f.yaml:3: duplicate key \"port\"") == true)
    }

    @Test("nothing but comments is no document", arguments: ["", "# a\n", "\n\n", "   \n"])
    func empty(text: String) throws {
        #expect(try YAMLDocument.parse(text, file: "f") == nil)
    }

    @Test("places are those of the values, aliases share their anchor's")
    func places() throws {
        let root = try #require(try YAMLDocument.parse("a: &x\n  b: 1\nc: *x\n", file: "f"))
        guard case .map(let entries) = root.content else { throw Mismatch() }
        #expect(entries.map(\.line) == [1, 3] && entries[0].value.line == 1 || entries[0].value.line == 2)
        #expect(entries[1].value.json == ["b": 1])
    }

    @Test("plain values become typed JSON, quoted ones strings")
    func json() throws {
        let text =
            "{a: 1, b: \"1\", c: true, d: yes, e: null, f: 1.5, g: [x, 2], h: -3, i: 1e3, j: 1.2.3, k: 2026-01-01, l: '', m: 0x1f}"
        let root = try #require(try YAMLDocument.parse(text, file: "f"))
        #expect(
            root.json == [
                "a": 1, "b": "1", "c": true, "d": "yes", "e": .null, "f": .double(1.5), "g": ["x", 2], "h": -3,
                "i": .double(1000),
                "j": "1.2.3", "k": "2026-01-01", "l": "", "m": "0x1f",
            ])
    }

    static let unbounded: [String] = {
        var bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n"
        for (name, previous) in zip("bcdefghi", "abcdefgh") {
            bomb += "\(name): &\(name) [" + String(repeating: "*\(previous),", count: 9) + "]\n"
        }
        let steps = (0..<100).map { String(repeating: " ", count: $0) + "a:\n" }.joined() + String(repeating: " ", count: 100)
        let mixed =
            steps + String(repeating: "- ", count: 120) + String(repeating: "[", count: 120) + String(repeating: "]", count: 120)
        let indented = (0..<2000).map { String(repeating: " ", count: $0) + "a:\n" }.joined()
        return [
            String(repeating: "[", count: 100_000), String(repeating: "[", count: 40) + String(repeating: "]", count: 40),
            String(repeating: "- ", count: 5000) + "x", String(repeating: "{a: ", count: 500), indented,
            String(repeating: "#\n", count: 600_000), bomb, mixed,
        ]
    }()

    @Test("nesting, length and aliases of aliases are bounded", arguments: unbounded.indices)
    func bounds(index: Int) {
        #expect(throws: YAMLError.self) { try YAMLDocument.parse(Self.unbounded[index], file: "f") }
    }

    @Test("mutilated text of any kind gives nodes or mistakes, never a crash")
    func mutilated() {
        let whole = """
            # comment
            listen: { host: 127.0.0.1, port: 6001 }
            apps:
              - id: "1"   # digits
                key: &k 'app-key'
                again: *k
            text: |
              many
              lines 🎯
            folded: >-
              a
              b
            "quoted \\u00e9": [1, 2.5, ~, true]
            """
        let seed = UInt64.random(in: 0...UInt64.max)
        print("YAMLDocument seed \(seed)")
        var random = SeededRandom(state: seed)
        let scalars = Array(whole.unicodeScalars)
        let noise: [Unicode.Scalar] = Array(":-[]{},&*!|>%@`\"'#?\n\t \u{0}\u{FEFF}\u{85}\u{2028}ab1~<é🎯\u{7F}\\".unicodeScalars)
        for cut in scalars.indices { check(String(String.UnicodeScalarView(scalars[..<cut]))) }
        for _ in 0..<3000 {
            var copy = scalars
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                let place = Int.random(in: 0..<copy.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: copy.remove(at: place)
                case 1: copy.insert(noise.randomElement(using: &random)!, at: place)
                default: copy[place] = noise.randomElement(using: &random)!
                }
            }
            check(String(String.UnicodeScalarView(copy)))
        }
        for _ in 0..<2000 {
            check(
                String(
                    String.UnicodeScalarView(
                        (0..<Int.random(in: 0...60, using: &random)).map { _ in noise.randomElement(using: &random)! })))
        }
    }

    private func check(_ text: String) {
        do throws(YAMLError) {
            if let node = try YAMLDocument.parse(text, file: "f") {
                _ = node.json.serialized()
                #expect(node.line >= 1 && node.column >= 1)
            }
        } catch {
            #expect(error.mistakes.allSatisfy { $0.line >= 1 && $0.column >= 1 && !$0.message.isEmpty })
        }
    }
}

@Suite("YAMLScalar")
struct YAMLScalarTests {
    @Test(
        "durations",
        arguments: [
            ("120s", .seconds(120)), ("15s", .seconds(15)), ("5m", .seconds(300)), ("2h", .seconds(7200)),
            ("250ms", .milliseconds(250)),
            ("3d", .seconds(259_200)), ("0s", .zero), ("5", nil), ("s", nil), ("-5s", nil), ("1.5s", nil), ("5 s", nil),
            ("5S", nil), ("", nil),
            ("99999999999999999999s", nil), ("9223372036854775807d", nil), ("٣s", nil),
        ] as [(String, Duration?)])
    func durations(text: String, value: Duration?) { #expect(YAMLScalar.duration(text) == value) }

    @Test(
        "byte sizes",
        arguments: [
            ("1MiB", 1 << 20), ("10240", 10240), ("64KiB", 65536), ("2GiB", 2 << 30), ("7B", 7), ("1MB", nil), ("1 MiB", nil),
            ("-1", nil),
            ("MiB", nil), ("9223372036854775807GiB", nil), ("", nil),
        ] as [(String, Int?)])
    func byteSizes(text: String, value: Int?) { #expect(YAMLScalar.byteSize(text) == value) }

    @Test(
        "nearest names",
        arguments: [
            ("hots", "host"), ("prot", "port"), ("Port", "port"), ("qqqqqq", nil), ("", nil),
            ("activity_timout", "activity_timeout"),
            ("hosts", "host"), ("x", nil), ("activity", "activity_timeout"), ("ac", nil),
        ] as [(String, String?)])
    func nearest(name: String, known: String?) {
        #expect(NearestName.of(name, among: ["host", "port", "activity_timeout"]) == known)
    }
}

private struct Mismatch: Error {}
