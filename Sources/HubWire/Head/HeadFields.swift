internal import HubCore

/// The header fields that are used here, collected while a head is parsed.
struct HeadFields {
    /// Fields that are read. All others are skipped.
    enum Field: UInt8, CaseIterable {
        case host, connection, upgrade, expect, authorization, origin
        case contentLength, transferEncoding, forwardedFor, clientID, idempotencyKey, otherIdempotencyKey
        case webSocketKey, webSocketVersion, webSocketProtocol

        /// In lower case.
        var name: StaticString {
            switch self {
            case .host: "host"
            case .connection: "connection"
            case .upgrade: "upgrade"
            case .expect: "expect"
            case .authorization: "authorization"
            case .origin: "origin"
            case .contentLength: "content-length"
            case .transferEncoding: "transfer-encoding"
            case .forwardedFor: "x-forwarded-for"
            case .clientID: "x-client-id"
            case .idempotencyKey: "idempotency-key"
            case .otherIdempotencyKey: "x-idempotency-key"
            case .webSocketKey: "sec-websocket-key"
            case .webSocketVersion: "sec-websocket-version"
            case .webSocketProtocol: "sec-websocket-protocol"
            }
        }

        /// Whether a second field of this name makes a request ambiguous.
        var standsOnce: Bool {
            switch self {
            case .host, .contentLength, .webSocketKey, .webSocketVersion: true
            default: false
            }
        }

        /// The field of that name, in any case.
        init?(_ name: UnsafeRawBufferPointer) {
            guard let first = unsafe name.first else { return nil }
            guard let field = Self.candidates(first | 0x20).first(where: { unsafe $0.isNamed(name) }) else { return nil }
            self = field
        }

        /// Fields whose names begin with that letter: most of a browser's headers match none.
        private static func candidates(_ letter: UInt8) -> [Field] { byLetter[Int(letter & 31)] }

        private static let byLetter: [[Field]] = (0..<32).map { letter in
            allCases.filter { field in unsafe field.name.utf8Start.pointee & 31 == letter }
        }

        private func isNamed(_ other: UnsafeRawBufferPointer) -> Bool {
            let name = self.name
            guard other.count == name.utf8CodeUnitCount else { return false }
            for index in 0..<other.count {
                let byte = unsafe other[index]
                let lower = byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
                if unsafe lower != name.utf8Start[index] { return false }
            }
            return true
        }
    }

    private var values: [(field: Field, value: String)] = []

    mutating func add(_ field: Field, _ value: String) throws(HeadRefusal) {
        guard let index = values.firstIndex(where: { $0.field == field }) else {
            assert(values.count < Field.allCases.count, "\(values.count) fields are known already, and \(field.name) is another one")
            return values.append((field, value))
        }
        if field.standsOnce { throw HeadRefusal(400, "the header \(field.name) may stand once") }
        // Several lines of one field are one list (RFC 9110, 5.3).
        values[index].value += ", " + value
    }

    /// The field's value, its lines joined; nil without the field.
    subscript(field: Field) -> String? { values.first { $0.field == field }?.value }

    /// Whether a list holds that member, in any case.
    private func lists(_ field: Field, _ member: String) -> Bool {
        guard let value = self[field] else { return false }
        return value.split(separator: ",").contains { trimmed($0).lowercased() == member }
    }

    private func trimmed(_ text: Substring) -> Substring {
        var text = text
        while let first = text.utf8.first, first == 0x20 || first == 0x09 { text = text.dropFirst() }
        while let last = text.utf8.last, last == 0x20 || last == 0x09 { text = text.dropLast() }
        return text
    }

    /// Methods whose requests may come with a chunked body.
    private static let methodsWithBody: Set<String> = ["POST", "PUT", "PATCH", "DELETE"]
    /// Headers that the API reads.
    private static let passedOn: [Field] = [.authorization, .origin, .forwardedFor, .clientID]

    func head(method: String, target: RequestTarget, isOld: Bool) throws(HeadRefusal) -> RequestHead {
        guard isOld || self[.host] != nil else { throw HeadRefusal(400, "HTTP/1.1 asks for the header Host") }
        let framing = try BodyFraming.read(contentLength: self[.contentLength], transferEncoding: self[.transferEncoding])
        if framing == .chunked, isOld || !Self.methodsWithBody.contains(method) {
            throw HeadRefusal(400, "this request may not have a chunked body: send it without one")
        }
        let expectsContinue = try readExpectation()
        var headers: [String: String] = [:]
        for field in Self.passedOn { if let value = self[field] { headers[field.name.description] = value } }
        // Two spellings of one header. The first counts if both are sent.
        if let key = self[.idempotencyKey] ?? self[.otherIdempotencyKey] { headers["idempotency-key"] = key }
        return RequestHead(
            request: HTTPRequest(method: method, path: target.path, query: target.query, headers: headers), framing: framing,
            isPersistent: isOld ? lists(.connection, "keep-alive") : !lists(.connection, "close"), isOld: isOld,
            expectsContinue: expectsContinue && !isOld && framing != .none, upgrade: offer(isOld))
    }

    private func readExpectation() throws(HeadRefusal) -> Bool {
        guard let expectation = self[.expect] else { return false }
        guard expectation.lowercased() == "100-continue" else { throw HeadRefusal(417, "100-continue is the only expectation that is met") }
        return true
    }

    private func offer(_ isOld: Bool) -> UpgradeOffer? {
        guard !isOld, lists(.connection, "upgrade"), lists(.upgrade, "websocket") else { return nil }
        let protocols = (self[.webSocketProtocol] ?? "").split(separator: ",").map { String(trimmed($0)) }
        return UpgradeOffer(key: self[.webSocketKey], version: self[.webSocketVersion], protocols: protocols)
    }
}
