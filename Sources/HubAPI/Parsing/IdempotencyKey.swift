internal import HubCore
internal import HubCrypto

/// A sender's key for a publish, which makes a repetition harmless: the header `Idempotency-Key`, or the member `idempotency_key`
/// of an event. Keys of different apps are independent.
struct IdempotencyKey: Hashable, Sendable {
    let app: String
    let text: String

    static let charactersMax = 255
    static let rule =
        "an idempotency key has 1 to \(charactersMax) printable ASCII characters: send such a key, a UUID for example, or none"

    /// Nil if the text breaks the rule, which keeps keys distinct on their way. Surrounding white space is ignored,
    /// because it has no meaning in a header's value.
    init?(_ text: String, app: String) {
        func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
        var key = Substring(text).utf8
        while let byte = key.first, isSpace(byte) { key.removeFirst() }
        while let byte = key.last, isSpace(byte) { key.removeLast() }
        guard (1...Self.charactersMax).contains(key.count), key.allSatisfy({ (0x20...0x7E).contains($0) }) else { return nil }
        self.app = app
        self.text = String(Substring(key))
    }

    /// SHA-256 of the request's method, path, own parameters and body. The signature's parameters are left out, because a retry
    /// is signed anew.
    static func digest(of request: HTTPRequest) -> [UInt8] {
        var text: [UInt8] = []
        // Length prefixes separate the parts.
        func append(_ part: some Collection<UInt8>) {
            text += "\(part.count):".utf8
            text += part
        }
        append(request.method.utf8)
        append(request.path.utf8)
        for parameter in request.query where !isOfSignature(parameter.name) {
            append(parameter.name.utf8)
            append(parameter.value.utf8)
        }
        append(request.body)
        return Digest.sha256(text)
    }

    private static func isOfSignature(_ name: String) -> Bool {
        let name = name.lowercased()
        return name.hasPrefix("auth_") || name == "body_md5"
    }
}
