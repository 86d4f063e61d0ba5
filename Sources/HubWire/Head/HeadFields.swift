internal import HubCore

/// The header fields that are used here, as places in the head that is being parsed.
@safe struct HeadFields {
    /// Fields that are read. All others are skipped.
    enum Field: UInt8, CaseIterable {
        case host, connection, upgrade, expect, authorization, origin
        case contentLength, transferEncoding, forwardedFor, clientID, idempotencyKey, otherIdempotencyKey
        case webSocketKey, webSocketVersion, webSocketProtocol
        case cookie, ifNoneMatch, fetchSite, consoleMark

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
            case .cookie: "cookie"
            case .ifNoneMatch: "if-none-match"
            case .fetchSite: "sec-fetch-site"
            case .consoleMark: "x-tandem-console"
            }
        }

        /// Whether a second field of this name makes a request ambiguous.
        var standsOnce: Bool {
            switch self {
            case .host, .contentLength, .webSocketKey, .webSocketVersion: true
            default: false
            }
        }

        /// The field whose name stands in that range of the bytes, in any case.
        init?(_ bytes: UnsafeRawBufferPointer, _ name: Range<Int>) {
            guard !name.isEmpty, name.count < Self.lengthEnd,
                let field = unsafe Self.byShape[Self.shape(name.count, bytes[name.lowerBound])],
                unsafe bytes.spellInAnyCase(field.name, in: name)
            else { return nil }
            self = field
        }

        /// Names are shorter.
        private static let lengthEnd = 32
        /// No two fields have both length and first letter in common, so one comparison tells.
        private static let byShape: [Field?] = {
            var fields = [Field?](repeating: nil, count: 32 * lengthEnd)
            for field in allCases {
                let shape = unsafe shape(field.name.utf8CodeUnitCount, field.name.utf8Start.pointee)
                precondition(fields[shape] == nil, "\(field) has the length and first letter of another field")
                fields[shape] = field
            }
            return fields
        }()

        private static func shape(_ count: Int, _ first: UInt8) -> Int { count * 32 + Int(first & 31) }
    }

    private let bytes: UnsafeRawBufferPointer
    /// A field for each line with a field that is read, and the place of its value.
    private var lines: [(field: Field, value: Range<Int>)] = []
    /// A bit for each field that has a line.
    private var present: UInt32 = 0

    /// - Parameter bytes: the head, which outlives this value.
    init(_ bytes: UnsafeRawBufferPointer) {
        unsafe self.bytes = unsafe bytes
    }

    /// - Parameter value: without the blanks around it.
    mutating func add(_ field: Field, _ value: Range<Int>) throws(HeadRefusal) {
        if has(field), field.standsOnce { throw HeadRefusal(400, "the header \(field.name) may stand once") }
        if lines.isEmpty { lines.reserveCapacity(Self.linesUsual) }
        lines.append((field, value))
        present |= 1 << UInt32(field.rawValue)
    }

    /// Enough for a publish and a handshake.
    private static let linesUsual = 8

    private func has(_ field: Field) -> Bool { present >> UInt32(field.rawValue) & 1 != 0 }

    /// The field's value; nil without the field. Several lines of one field are one list (RFC 9110, 5.3).
    private subscript(field: Field) -> String? {
        guard has(field) else { return nil }
        var text: String?
        for line in lines where line.field == field {
            let value = unsafe String(decoding: UnsafeRawBufferPointer(rebasing: bytes[line.value]), as: UTF8.self)
            text = text.map { $0 + ", " + value } ?? value
        }
        return text
    }

    /// The value of a field that stands once; nil without the field.
    private func place(_ field: Field) -> Range<Int>? {
        has(field) ? lines.first { $0.field == field }?.value : nil
    }

    /// Whether the field is a list with a member that passes.
    private func lists(_ field: Field, where isWanted: (Range<Int>) -> Bool) -> Bool {
        guard has(field) else { return false }
        for line in lines where line.field == field {
            var rest = line.value
            while !rest.isEmpty {
                let comma = unsafe bytes[rest].firstIndex(of: UInt8(ascii: ",")) ?? rest.upperBound
                if isWanted(trimmed(rest.lowerBound..<comma)) { return true }
                rest = min(comma + 1, rest.upperBound)..<rest.upperBound
            }
        }
        return false
    }

    /// Whether a list holds that member, in any case.
    private func lists(_ field: Field, _ member: StaticString) -> Bool {
        lists(field) { unsafe bytes.spellInAnyCase(member, in: $0) }
    }

    private func trimmed(_ range: Range<Int>) -> Range<Int> {
        var (start, end) = (range.lowerBound, range.upperBound)
        while start < end, unsafe HeadParser.isBlank(bytes[start]) { start += 1 }
        while end > start, unsafe HeadParser.isBlank(bytes[end - 1]) { end -= 1 }
        return start..<end
    }

    /// Methods whose requests may come with a chunked body.
    private static let methodsWithBody: Set<String> = ["POST", "PUT", "PATCH", "DELETE"]
    /// Headers that the API reads.
    private static let passedOn: [Field] = [.authorization, .origin, .forwardedFor, .clientID]
    /// Headers that the console reads as well; all other requests are spared them.
    private static let passedToConsole: [Field] = [.host, .cookie, .ifNoneMatch, .fetchSite, .consoleMark]
    static let consolePath: StaticString = "/console"

    func head(method: String, target: RequestTarget, isOld: Bool) throws(HeadRefusal) -> RequestHead {
        guard isOld || has(.host) else { throw HeadRefusal(400, "HTTP/1.1 asks for the header Host") }
        let framing = try BodyFraming.read(contentLength: self[.contentLength], transferEncoding: self[.transferEncoding])
        if framing == .chunked, isOld || !Self.methodsWithBody.contains(method) {
            throw HeadRefusal(400, "this request may not have a chunked body: send it without one")
        }
        let expectsContinue = try readExpectation()
        return RequestHead(
            request: HTTPRequest(method: method, path: target.path, query: target.query, headers: headers(target.path)),
            framing: framing,
            isPersistent: isOld ? lists(.connection, "keep-alive") : !lists(.connection, "close"),
            isOld: isOld,
            expectsContinue: expectsContinue && !isOld && framing != .none, upgrade: isOld ? nil : offer())
    }

    /// Meaning of these fields behind every request line of HTTP/1.1; nil: that depends on the line, or the fields are not to be kept.
    func meaning(in head: RequestHead) -> HeadMemory.Meaning? {
        let isPlain = head.request.headers.isEmpty && head.framing != .chunked && !has(.expect) && !has(.upgrade) && !has(.cookie)
        return isPlain ? HeadMemory.Meaning(framing: head.framing, isPersistent: head.isPersistent) : nil
    }

    private func headers(_ path: String) -> [String: String] {
        var headers: [String: String] = [:]
        for field in Self.passedOn { if let value = self[field] { headers[field.name.description] = value } }
        if Self.consolePath.begins(path) {
            for field in Self.passedToConsole { if let value = self[field] { headers[field.name.description] = value } }
        }
        // Two spellings of one header. The first counts if both are sent.
        if let key = self[.idempotencyKey] ?? self[.otherIdempotencyKey] { headers["idempotency-key"] = key }
        return headers
    }

    private func readExpectation() throws(HeadRefusal) -> Bool {
        guard let expectation = self[.expect] else { return false }
        guard expectation.lowercased() == "100-continue" else { throw HeadRefusal(417, "100-continue is the only expectation that is met") }
        return true
    }

    private func offer() -> UpgradeOffer? {
        guard lists(.upgrade, "websocket"), lists(.connection, "upgrade") else { return nil }
        var spoken: StaticString?
        _ = lists(.webSocketProtocol) { name in
            spoken = UpgradeOffer.protocolsSpoken.first { unsafe bytes.spell($0, in: name) }
            return spoken != nil
        }
        return UpgradeOffer(
            key: place(.webSocketKey).map { unsafe Array(bytes[$0]) },
            isOfRFC: place(.webSocketVersion).map { unsafe bytes.spell("13", in: $0) } == true, spoken: spoken)
    }
}
