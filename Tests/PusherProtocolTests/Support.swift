import HubCore
import HubJSON
import HubTesting
import PusherProtocol

/// The application of the vectors (docs/protocol.md, 4.2).
enum Vector {
    static let key = "278d425bdf160c739803"
    static let secret = "7ad3773142a6692b25b8"
    static let socketID = SocketID(first: 1234, second: 1234)

    static func secret(of key: String) -> String? {
        ["278d425bdf160c739803": secret, "second-key": "second-secret"][key]
    }
}

func text(_ bytes: [UInt8]) -> String {
    String(decoding: bytes, as: UTF8.self)
}

extension SeededRandom {
    /// One to three bytes of the text replaced by bytes that mean something to JSON, or by any.
    mutating func damage(_ text: String) -> [UInt8] {
        let alphabet = Array("{}[]\",:\\u0123eE+-. \ntrfalsn\u{e9}".utf8)
        var bytes = Array(text.utf8)
        for _ in 0...next() % 3 {
            let position = Int(next() % UInt64(bytes.count))
            bytes[position] = next() % 4 == 0 ? UInt8(truncatingIfNeeded: next()) : alphabet[Int(next() % UInt64(alphabet.count))]
        }
        return bytes
    }

    mutating func bytes(upTo count: Int) -> [UInt8] {
        (0..<Int(next() % UInt64(count))).map { _ in UInt8(truncatingIfNeeded: next()) }
    }
}

extension HTTPRequest {
    /// The query, to be changed.
    var parameters: [(name: String, value: String)] {
        get { Array(query) }
        set { query = HTTPQuery(newValue) }
    }
}
