/// One reply of Redis in RESP2.
package enum RedisReply: Sendable, Equatable {
    /// A status as `OK`, or a string.
    case bytes([UInt8])
    case integer(Int64)
    case array([RedisReply])
    case null
    case error(RedisFailure)

    /// The text of a status or string; nil for all else. Bytes that are not UTF-8 are replaced.
    package var text: String? { if case .bytes(let bytes) = self { String(decoding: bytes, as: UTF8.self) } else { nil } }
    package var bytes: [UInt8]? { if case .bytes(let bytes) = self { bytes } else { nil } }
    package var array: [RedisReply]? { if case .array(let items) = self { items } else { nil } }
    /// A number, also when it comes as text.
    package var integer: Int64? {
        switch self {
        case .integer(let number): number
        case .bytes: text.flatMap { Int64($0) }
        default: nil
        }
    }

    /// The reply, unless it is an error.
    package func value() throws(RedisFailure) -> RedisReply {
        if case .error(let failure) = self { throw failure }
        return self
    }
}
