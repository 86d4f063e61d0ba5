/// Reads replies out of the bytes of a connection, in pieces as they come. Bounded in depth, in length and in the number of items.
package struct ReplyReader {
    /// Bounds of one reply.
    package struct Limits: Sendable {
        /// Bytes of a string.
        package var stringMax = 64 << 20
        /// Bytes of a whole reply, and of what has not been read yet.
        package var bytesMax = 256 << 20
        /// Items of an array.
        package var itemsMax = 1 << 20
        /// Arrays within arrays.
        package var depthMax = 16
        /// Bytes of a status, an error or a number.
        package var lineMax = 64 << 10

        /// The defaults.
        package init() {}
    }

    private struct OpenArray {
        var left: Int
        var items: [RedisReply] = []
    }

    private let limits: Limits
    private var bytes: [UInt8] = []
    private var position = 0
    private var openArrays: [OpenArray] = []
    /// Bytes of the reply under way that were read.
    private var replyBytes = 0
    /// Bytes from `position` on without the end of a line.
    private var searched = 0

    package init(limits: Limits = Limits()) { self.limits = limits }

    /// Bytes that wait to be read.
    package var waiting: Int { bytes.count - position }
    /// Whether a reply has begun.
    package var isWithinReply: Bool { waiting > 0 || !openArrays.isEmpty }

    /// Adds bytes of the connection.
    /// - Throws: `RedisFailure.notRedis` when more wait than a reply may have.
    package mutating func append(_ new: UnsafeRawBufferPointer) throws(RedisFailure) {
        guard waiting + new.count <= limits.bytesMax else { throw .notRedis("a reply has more than \(limits.bytesMax) bytes") }
        if position > 0, position == bytes.count || position > 1 << 16 {
            bytes.removeFirst(position)
            position = 0
        }
        unsafe bytes.append(contentsOf: new)
    }

    /// The next whole reply; nil: more bytes have to come.
    /// - Throws: `RedisFailure.notRedis`. The connection is useless then.
    package mutating func next() throws(RedisFailure) -> RedisReply? {
        while var value = try element() {
            while var array = openArrays.popLast() {
                array.items.append(value)
                array.left -= 1
                if array.left > 0 {
                    openArrays.append(array)
                    break
                }
                value = .array(array.items)
            }
            if openArrays.isEmpty {
                replyBytes = 0
                return value
            }
        }
        return nil
    }

    /// The next value that is no open array; nil: more bytes have to come.
    private mutating func element() throws(RedisFailure) -> RedisReply? {
        while let (kind, line, next) = try header() {
            switch kind {
            case UInt8(ascii: "+"):
                try take(through: next)
                return .bytes(Array(line))
            case UInt8(ascii: "-"):
                try take(through: next)
                return .error(Self.refusal(line))
            case UInt8(ascii: ":"):
                let number = try Self.number(line)
                try take(through: next)
                return .integer(number)
            case UInt8(ascii: "$"):
                let count = try Self.number(line)
                if count == -1 {
                    try take(through: next)
                    return .null
                }
                guard count >= 0, count <= limits.stringMax else { throw .notRedis("a string has \(count) bytes") }
                let end = next + Int(count)
                guard bytes.count >= end + 2 else { return nil }
                guard bytes[end] == UInt8(ascii: "\r"), bytes[end + 1] == UInt8(ascii: "\n") else {
                    throw .notRedis("a string is longer than it says")
                }
                let string = Array(bytes[next..<end])
                try take(through: end + 2)
                return .bytes(string)
            case UInt8(ascii: "*"):
                let count = try Self.number(line)
                guard count >= -1, count <= limits.itemsMax else { throw .notRedis("an array has \(count) items") }
                try take(through: next)
                if count == -1 { return .null }
                if count == 0 { return .array([]) }
                guard openArrays.count < limits.depthMax else { throw .notRedis("arrays lie within more than \(limits.depthMax) arrays") }
                openArrays.append(OpenArray(left: Int(count)))
            default: throw .notRedis("a reply begins with the byte \(kind)")
            }
        }
        return nil
    }

    /// The kind of the next value, its line, and the place behind it; nil: more bytes have to come.
    private mutating func header() throws(RedisFailure) -> (kind: UInt8, line: ArraySlice<UInt8>, next: Int)? {
        guard position < bytes.count else { return nil }
        // Another server's first bytes fail at once, not after its line.
        guard "+-:$*".utf8.contains(bytes[position]) else { throw .notRedis("a reply begins with the byte \(bytes[position])") }
        var index = max(position + 1, position + searched)
        while index < bytes.count, bytes[index] != UInt8(ascii: "\n") { index += 1 }
        guard index - position <= limits.lineMax else { throw .notRedis("a line has more than \(limits.lineMax) bytes") }
        guard index < bytes.count else {
            searched = index - position
            return nil
        }
        guard index >= position + 2, bytes[index - 1] == UInt8(ascii: "\r") else { throw .notRedis("a line ends without a return") }
        return (bytes[position], bytes[(position + 1)..<(index - 1)], index + 1)
    }

    private mutating func take(through end: Int) throws(RedisFailure) {
        replyBytes += end - position
        (position, searched) = (end, 0)
        guard replyBytes <= limits.bytesMax else { throw .notRedis("a reply has more than \(limits.bytesMax) bytes") }
    }

    private static func number(_ line: ArraySlice<UInt8>) throws(RedisFailure) -> Int64 {
        guard let first = line.first, first != UInt8(ascii: "+"), let number = Int64(String(decoding: line, as: UTF8.self)) else {
            throw .notRedis("a number is none")
        }
        return number
    }

    /// Redis names the kind of an error in its first word.
    private static func refusal(_ line: ArraySlice<UInt8>) -> RedisFailure {
        let parts = line.split(separator: UInt8(ascii: " "), maxSplits: 1, omittingEmptySubsequences: false)
        let texts = parts.map { String(decoding: $0, as: UTF8.self) }
        return .refused(code: texts.first ?? "", message: texts.count > 1 ? texts[1] : "")
    }
}
