internal import HubCore
internal import HubCrypto

/// What a sender calls one of its publishes, so that sending it again is harmless: the header `Idempotency-Key`, or the member
/// `idempotency_key` of an event. Keys of different apps have nothing to do with each other.
struct IdempotencyKey: Hashable, Sendable {
    let app: String
    let text: String

    static let charactersMax = 255
    static let rule = "an idempotency key has 1 to \(charactersMax) printable ASCII characters: send such a key, a UUID for example, or none"

    /// Nil for what the rule does not allow: without other characters no two keys can become one on their way here. White space
    /// around a key does not count, because around a header's value it has no meaning.
    init?(_ text: String, app: String) {
        func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
        var key = Substring(text).utf8
        while let byte = key.first, isSpace(byte) { key.removeFirst() }
        while let byte = key.last, isSpace(byte) { key.removeLast() }
        guard (1...Self.charactersMax).contains(key.count), key.allSatisfy({ (0x20...0x7E).contains($0) }) else { return nil }
        self.app = app
        self.text = String(Substring(key))
    }

    /// SHA-256 of what a request asks: its method, path, own parameters and body. A retry is signed anew, so the signature's
    /// parameters are left out.
    static func digest(of request: HTTPRequest) -> [UInt8] {
        var text: [UInt8] = []
        // Lengths in front keep parts from running into each other.
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
