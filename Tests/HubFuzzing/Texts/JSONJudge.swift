/// Decides whether bytes are JSON (RFC 8259). Written from the grammar, without code shared with the parser under test.
struct JSONJudge {
    private let bytes: [UInt8]
    private var position = 0
    private let depthMax: Int
    /// A number was found whose size only a number parser can judge.
    private(set) var hasLongNumber = false

    /// Nil if the size of a number leaves the decision to the parser.
    static func accepts(_ bytes: [UInt8], depthMax: Int) -> Bool? {
        guard String(validating: bytes, as: UTF8.self) != nil else { return false }
        var judge = JSONJudge(bytes: bytes, depthMax: depthMax)
        judge.skipSpace()
        guard judge.value(depth: 0) else { return false }
        judge.skipSpace()
        guard judge.position == bytes.count else { return false }
        return judge.hasLongNumber ? nil : true
    }

    private init(bytes: [UInt8], depthMax: Int) {
        self.bytes = bytes
        self.depthMax = depthMax
    }

    private var byte: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func take(_ expected: Character) -> Bool {
        guard let byte, byte == expected.asciiValue else { return false }
        position += 1
        return true
    }

    private mutating func skipSpace() {
        while let byte, byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D { position += 1 }
    }

    private mutating func value(depth: Int) -> Bool {
        switch byte {
        case UInt8(ascii: "{"):
            container(depth, "}") { judge in
                guard judge.string() else { return false }
                judge.skipSpace()
                guard judge.take(":") else { return false }
                judge.skipSpace()
                return judge.value(depth: depth + 1)
            }
        case UInt8(ascii: "["): container(depth, "]") { $0.value(depth: depth + 1) }
        case UInt8(ascii: "\""): string()
        case UInt8(ascii: "t"): word("true")
        case UInt8(ascii: "f"): word("false")
        case UInt8(ascii: "n"): word("null")
        default: number()
        }
    }

    private mutating func container(_ depth: Int, _ end: Character, _ item: (inout JSONJudge) -> Bool) -> Bool {
        position += 1
        skipSpace()
        // The parser does not count an empty container as a level.
        if take(end) { return true }
        guard depth < depthMax else { return false }
        while true {
            guard item(&self) else { return false }
            skipSpace()
            if take(end) { return true }
            guard take(",") else { return false }
            skipSpace()
        }
    }

    private mutating func word(_ text: String) -> Bool {
        text.allSatisfy { take($0) }
    }

    private mutating func string() -> Bool {
        guard take("\"") else { return false }
        while let byte {
            position += 1
            switch byte {
            case UInt8(ascii: "\""): return true
            case 0..<0x20: return false
            case UInt8(ascii: "\\"):
                guard let escape = self.byte else { return false }
                position += 1
                switch escape {
                case UInt8(ascii: "u"):
                    guard let unit = hex() else { return false }
                    if (0xDC00...0xDFFF).contains(unit) { return false }
                    if (0xD800...0xDBFF).contains(unit) {
                        guard take("\\"), take("u"), let low = hex(), (0xDC00...0xDFFF).contains(low) else { return false }
                    }
                case _ where "\"\\/bfnrt".utf8.contains(escape): continue
                default: return false
                }
            default: continue
            }
        }
        return false
    }

    private mutating func hex() -> Int? {
        var value = 0
        for _ in 0..<4 {
            guard let byte, let digit = Character(Unicode.Scalar(byte)).hexDigitValue, byte < 0x80 else { return nil }
            value = value * 16 + digit
            position += 1
        }
        return value
    }

    private mutating func digits() -> Int {
        let start = position
        while let byte, byte >= 0x30, byte <= 0x39 { position += 1 }
        return position - start
    }

    private mutating func number() -> Bool {
        _ = take("-")
        let start = position
        let count = digits()
        guard count > 0, count == 1 || bytes[start] != 0x30 else { return false }
        if count > 18 { hasLongNumber = true }
        if take("."), digits() == 0 { return false }
        if take("e") || take("E") {
            if !take("-") { _ = take("+") }
            guard digits() > 0 else { return false }
            hasLongNumber = true
        }
        return true
    }
}
