package import HubCore
package import HubCrypto

/// The signature of every request to the HTTP API (docs/protocol.md, 4.4): a query parameter. It covers method, path, all other parameters
/// and, through its MD5, the body.
package enum RequestAuth {
    /// Clock skew in seconds from which a request is refused, so that a recorded request cannot be replayed later.
    package static let skewSecondsEnd: Int64 = 600

    /// The reason for a 401, as a sentence for the sender. The sentence quotes the signed text, which holds no secret.
    package struct Refusal: Error, Equatable, CustomStringConvertible {
        /// A sentence for the sender.
        package let message: String
        package var description: String { message }
    }

    /// Checks a request.
    ///
    /// Senders sign the path as written, but `request` holds it decoded. The usual encodings are therefore tried too,
    /// also without a proxy's prefix before `/apps/`.
    /// - Parameters:
    ///   - nowSeconds: since 1970-01-01T00:00:00Z.
    ///   - key: the secret of a key of the app that the path names, and nil for every other key.
    /// - Returns: the key that signed.
    @discardableResult
    package static func verify(
        _ request: HTTPRequest, nowSeconds: Int64, key: (String) -> HMACKey?
    ) throws(Refusal) -> String {
        let isUsual = request.query.areNamed(usualNames)
        let query = isUsual ? request.query : lowerCased(request.query)
        let (name, key) = try signer(query, nowSeconds: nowSeconds, key: key)
        let sent = query.bytes("auth_signature") ?? []
        // Nearly every request is signed as it arrives; only the others pay for the candidates.
        let isAccepted =
            (isUsual || query.isSorted(without: "auth_signature")) && isSignedAsSent(request, query, as: sent, key: key)
            || isSignedOtherwise(request, query, as: sent, key: key)
        guard isAccepted else {
            throw invalidSignature(request, query, sent)
        }
        try checkBody(request.body, md5: query.bytes("body_md5"))
        return name
    }

    /// Names of nearly every request's parameters, as libraries write them: sorted, with the signature last.
    private static let usualNames: [StaticString] = ["auth_key", "auth_timestamp", "auth_version", "body_md5", "auth_signature"]

    /// Refuses a request that `verify` would refuse with any body. For a request whose body has not arrived yet.
    package static func checkHead(_ request: HTTPRequest, nowSeconds: Int64, key: (String) -> HMACKey?) throws(Refusal) {
        let query = lowerCased(request.query)
        _ = try signer(query, nowSeconds: nowSeconds, key: key)
        let sent = query.bytes("auth_signature") ?? []
        guard isHex(sent, digits: 64) else { throw invalidSignature(request, query, sent) }
        if let md5 = query.bytes("body_md5"), !isHex(md5, digits: 32) {
            throw Refusal(message: "Invalid body_md5: it has to be the MD5 of the body, 32 hexadecimal digits")
        }
    }

    /// Checks key, version and timestamp, and returns the signing key.
    private static func signer(
        _ query: HTTPQuery, nowSeconds: Int64, key: (String) -> HMACKey?
    ) throws(Refusal) -> (name: String, key: HMACKey) {
        guard let name = query.value("auth_key") else { throw Refusal(message: "Missing parameter: auth_key") }
        guard let key = key(name) else { throw Refusal(message: "Unknown auth_key") }
        guard query.has("auth_version", "1.0") else {
            throw Refusal(message: query.value("auth_version") == nil ? "Version required" : "Version not supported")
        }
        try checkTimestamp(query.value("auth_timestamp"), nowSeconds: nowSeconds)
        return (name, key)
    }

    private static func invalidSignature(_ request: HTTPRequest, _ query: HTTPQuery, _ sent: ArraySlice<UInt8>) -> Refusal {
        let text = text(method: request.method, path: request.path, query: sorted(withoutSignature(query)))
        return Refusal(
            message: "Invalid signature: you should have sent HmacSHA256Hex(\(quoted(text)), your_secret_key), "
                + "but you sent \(quoted(Array(sent)))")
    }

    private static func isHex(_ text: ArraySlice<UInt8>, digits: Int) -> Bool {
        text.count == digits
            && text.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte | 0x20)
            }
    }

    /// Parameter names are compared without case.
    private static func lowerCased(_ query: HTTPQuery) -> HTTPQuery {
        if query.isInLowerCase { return query }
        return HTTPQuery(query.lazy.map { (name: $0.name.lowercased(), value: $0.value) })
    }

    private static func withoutSignature(_ query: HTTPQuery) -> [(name: String, value: String)] {
        query.filter { $0.name != "auth_signature" }
    }

    /// Whether the request was signed as it arrived, with its parameters in their order. A publish's text stays on the stack.
    private static func isSignedAsSent(_ request: HTTPRequest, _ query: HTTPQuery, as sent: ArraySlice<UInt8>, key: HMACKey) -> Bool {
        // Both apart: a closure that takes them from the request gets a copy of all of it.
        let (method, path) = (request.method, request.path)
        let bytesMax = method.utf8.count + path.utf8.count + query.bytes.count + 2
        return unsafe withUnsafeTemporaryAllocation(byteCount: bytesMax, alignment: 1) { room in
            var text = unsafe ByteRoom(room)
            text.write(text: method)
            text.write(literal: "\n")
            text.write(text: path)
            text.write(literal: "\n")
            unsafe text.write { unsafe query.writePairs(without: "auth_signature", to: $0) }
            return unsafe key.isCode(sent, of: UnsafeRawBufferPointer(rebasing: room[..<text.count]))
        }
    }

    /// Whether some other spelling of the request's path or parameters was signed.
    private static func isSignedOtherwise(_ request: HTTPRequest, _ query: HTTPQuery, as sent: ArraySlice<UInt8>, key: HMACKey) -> Bool {
        let others = withoutSignature(query)
        let (signed, joined) = (sorted(others), joinedArrays(others))
        let isSigned = { (path: String, query: [(name: String, value: String)]) in
            key.isCode(sent, of: text(method: request.method, path: path, query: query))
        }
        return pathCandidates(request.path).contains { path in isSigned(path, signed) || joined.map { isSigned(path, $0) } == true }
    }

    /// The parameters of a signed request, `auth_signature` last, for callers of this API.
    /// - Parameters:
    ///   - path: as it will be sent, without the query.
    ///   - query: the call's own parameters, decoded.
    package static func signedQuery(
        method: String, path: String, query: [(name: String, value: String)] = [], body: [UInt8] = [], key: String,
        secret: String, nowSeconds: Int64
    ) -> [(name: String, value: String)] {
        var parameters = query
        parameters.append(("auth_key", key))
        parameters.append(("auth_timestamp", String(nowSeconds)))
        parameters.append(("auth_version", "1.0"))
        if !body.isEmpty { parameters.append(("body_md5", Hex.encode(Digest.md5(body)))) }
        let text = text(method: method, path: path, query: sorted(parameters.map { ($0.name.lowercased(), $0.value) }))
        parameters.append(("auth_signature", String(decoding: signature(of: text, key: HMACKey(secret)), as: UTF8.self)))
        return parameters
    }

    private static func checkTimestamp(_ text: String?, nowSeconds: Int64) throws(Refusal) {
        guard let text else { throw Refusal(message: "Timestamp required") }
        guard let seconds = Int64(text), (0...timestampSecondsMax).contains(seconds) else {
            throw Refusal(message: "Timestamp invalid: auth_timestamp must be whole seconds since 1970")
        }
        guard abs(nowSeconds - seconds) < skewSecondsEnd else {
            throw Refusal(
                message: "Timestamp expired: Given timestamp (\(moment(seconds))) not within \(skewSecondsEnd)s of server time "
                    + "(\(moment(nowSeconds)))")
        }
    }

    /// The end of the year 9999, the last with an ISO text.
    private static let timestampSecondsMax: Int64 = 253_402_300_799

    private static func moment(_ seconds: Int64) -> String {
        // Whole seconds were signed, so milliseconds would only distract.
        String(Timestamp.iso8601(milliseconds: seconds * 1000).dropLast(5)) + "Z"
    }

    /// Without this check a signed query would accept any body.
    private static func checkBody(_ body: [UInt8], md5: ArraySlice<UInt8>?) throws(Refusal) {
        guard let md5 else {
            guard body.isEmpty else { throw Refusal(message: "Missing parameter: body_md5 (a request with a body needs it)") }
            return
        }
        guard Digest.isMD5(md5, of: body) || Digest.isMD5(ArraySlice(String(decoding: md5, as: UTF8.self).lowercased().utf8), of: body)
        else {
            throw Refusal(message: "Invalid body_md5: it is not the MD5 of the body that arrived; was the body changed on its way?")
        }
    }

    /// Lower-case hexadecimal digits.
    private static func signature(of text: [UInt8], key: HMACKey) -> [UInt8] { Hex.digits(of: key.code(of: text)) }

    private static func quoted(_ text: [UInt8]) -> String {
        var output: [UInt8] = []
        JSONText.appendQuoted(text, to: &output)
        return String(decoding: output, as: UTF8.self)
    }

    /// The signed text: method, path and query on a line each, parameters in the order given.
    private static func text(method: String, path: String, query: [(name: String, value: String)]) -> [UInt8] {
        var text = text(method: method, path: path)
        for (index, parameter) in query.enumerated() {
            if index > 0 { text.append(UInt8(ascii: "&")) }
            text.append(text: parameter.name)
            text.append(UInt8(ascii: "="))
            text.append(text: parameter.value)
        }
        return text
    }

    private static func text(method: String, path: String) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(textBytesUsual)
        text.append(text: method)
        text.append(UInt8(ascii: "\n"))
        text.append(text: path)
        text.append(UInt8(ascii: "\n"))
        return text
    }

    /// Enough for a publish, so that its text is built without growing.
    private static let textBytesUsual = 256

    /// Sorts parameters by the bytes of their names, as signed; equal names keep their order.
    private static func sorted(_ parameters: [(name: String, value: String)]) -> [(name: String, value: String)] {
        // Arrays rely on equal names staying in order, which the standard library's sort does not promise.
        return parameters.enumerated().sorted { a, b in
            a.element.name == b.element.name
                ? a.offset < b.offset : a.element.name.utf8.lexicographicallyPrecedes(b.element.name.utf8)
        }.map(\.element)
    }

    /// The parameters with arrays joined, as PHP signs them: `k[0]=a&k[1]=b` as `k=a,b`, values in the order sent. Nil
    /// without arrays.
    private static func joinedArrays(_ parameters: [(name: String, value: String)]) -> [(name: String, value: String)]? {
        guard parameters.contains(where: { $0.name.hasSuffix("]") }) else { return nil }
        var joined: [(name: String, value: String)] = []
        for parameter in parameters {
            guard parameter.name.hasSuffix("]"), let bracket = parameter.name.firstIndex(of: "[") else {
                joined.append(parameter)
                continue
            }
            let name = String(parameter.name[..<bracket])
            if let index = joined.firstIndex(where: { $0.name == name }) {
                joined[index].value += "," + parameter.value
            } else {
                joined.append((name, parameter.value))
            }
        }
        return sorted(joined)
    }

    /// The paths that a sender may have signed, the likeliest first, each once.
    private static func pathCandidates(_ path: String) -> [String] {
        var candidates: [String] = []
        for base in [path, fromApps(path)].compactMap(\.self) {
            for candidate in [base, escaped(base, keeping: componentPunctuation), escaped(base, keeping: pathPunctuation)]
            where !candidates.contains(candidate) {
                candidates.append(candidate)
            }
        }
        return candidates
    }

    /// The path from the first `/apps/` on; nil when nothing precedes it.
    private static func fromApps(_ path: String) -> String? {
        let bytes = Array(path.utf8)
        let apps = Array("/apps/".utf8)
        guard bytes.count >= apps.count,
            let start = (0...bytes.count - apps.count).first(where: { bytes[$0..<$0 + apps.count].elementsEqual(apps) }),
            start > 0
        else { return nil }
        return String(decoding: bytes[start...], as: UTF8.self)
    }

    /// The characters besides letters and digits that JavaScript's encodeURIComponent does not escape, and the slash
    /// between segments.
    private static let componentPunctuation = Array("-_.!~*'()/".utf8)
    /// The characters besides letters and digits that RFC 3986, 3.3 allows in a path.
    private static let pathPunctuation = Array("-._~!$&'()*+,;=:@/".utf8)

    private static func escaped(_ path: String, keeping punctuation: [UInt8]) -> String {
        var output: [UInt8] = []
        for byte in path.utf8 {
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                output.append(byte)
            case _ where punctuation.contains(byte): output.append(byte)
            default: output += ("%" + Hex.encode([byte]).uppercased()).utf8
            }
        }
        return String(decoding: output, as: UTF8.self)
    }
}
