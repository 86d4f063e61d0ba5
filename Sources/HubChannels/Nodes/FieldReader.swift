/// Reads what `FieldWriter` wrote. Nil wherever the bytes end too early.
struct FieldReader {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) { rest = bytes[...] }

    mutating func begin() -> (version: UInt8, kind: UInt8)? {
        guard rest.count >= 2 else { return nil }
        let head = rest.prefix(2)
        rest = rest.dropFirst(2)
        return (head[head.startIndex], head[head.startIndex + 1])
    }

    mutating func bytes() -> [UInt8]? { field().map { Array($0) } }

    mutating func text() -> String? { field().map { String(decoding: $0, as: UTF8.self) } }

    mutating func number() -> UInt64? {
        guard let field = field(), field.count == 8 else { return nil }
        return field.reduce(0) { $0 << 8 | UInt64($1) }
    }

    private mutating func field() -> ArraySlice<UInt8>? {
        guard rest.count >= 4 else { return nil }
        let count = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
        guard rest.count - 4 >= count else { return nil }
        defer { rest = rest.dropFirst(4 + count) }
        return rest.dropFirst(4).prefix(count)
    }
}
