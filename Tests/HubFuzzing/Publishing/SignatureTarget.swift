import HubCore
import HubCrypto
import HubTesting
import PusherProtocol

/// Signed requests. An input is text: method, path and query on one line each, then the body.
enum SignatureTarget {
    private static let now: Int64 = 1_767_920_400

    @Sendable static func make() -> FuzzTarget {
        let tokens = [
            "auth_key=key", "auth_signature=", "auth_timestamp=\(now)", "auth_version=1.0", "body_md5=", "&", "=", "%", "/apps/", "[0]",
            "[]", "\n", "-1", "é", "İ",
        ]
        let source = InputSource("signatures", tokens: tokens, wellFormed: request)
        return FuzzTarget(input: source.draw, check: check)
    }

    private struct Request {
        var method: String
        var path: String
        var query: [(name: String, value: String)]
        var body: [UInt8]

        init?(_ bytes: [UInt8]) {
            let parts = bytes.split(separator: 0x0A, maxSplits: 3, omittingEmptySubsequences: false)
            guard parts.count == 4 else { return nil }
            method = String(decoding: parts[0], as: UTF8.self)
            path = String(decoding: parts[1], as: UTF8.self)
            body = Array(parts[3])
            query = String(decoding: parts[2], as: UTF8.self).split(separator: "&").map { parameter in
                let pair = parameter.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                return (String(pair[0]), pair.count > 1 ? String(pair[1]) : "")
            }
        }

        func verify(secret: String = "secret") throws(RequestAuth.Refusal) -> String {
            let request = HTTPRequest(method: method, path: path, query: query, body: body)
            return try RequestAuth.verify(request, nowSeconds: SignatureTarget.now) { $0 == "key" ? HMACKey(secret) : nil }
        }

        func isAccepted(secret: String = "secret") -> Bool {
            do { return try verify(secret: secret) == "key" } catch { return false }
        }

        func value(_ name: String) -> String? { query.first { $0.name.lowercased() == name }?.value }
    }

    private static func request(_ random: inout SeededRandom) -> [UInt8] {
        let path = random.element(of: [
            "/apps/1/events", "/apps/1/channels/presence-a b", "/proxy/apps/1/channels", "/", "", "/apps/1/users/é/terminate_connections",
        ])
        let method = random.element(of: ["GET", "POST", "PUT", "DELETE"])
        let body = random.chance(1, in: 2) ? Array(random.json().utf8).filter { $0 != 0x0A } : []
        var query: [(name: String, value: String)] = []
        for _ in 0..<random.below(4) {
            query.append(
                (
                    random.element(of: ["info", "Filter", "a[0]", "a[1]", "k[]", "", "é"]),
                    random.element(of: ["x", "", "a,b", "user_count", "é"])
                ))
        }
        if !random.chance(1, in: 6) {
            let skew = random.chance(1, in: 8) ? Int64(random.below(1400)) - 700 : 0
            query = RequestAuth.signedQuery(
                method: method, path: path, query: query, body: body, key: "key", secret: "secret", nowSeconds: now + skew)
        }
        if random.chance(1, in: 3) { query.shuffle(using: &random) }
        return Array("\(method)\n\(path)\n\(query.map { $0.name + "=" + $0.value }.joined(separator: "&"))\n".utf8) + body
    }

    private static func check(_ bytes: [UInt8]) -> String? {
        guard let request = Request(bytes) else { return nil }
        do throws(RequestAuth.Refusal) {
            _ = try request.verify()
            if let reason = judge(accepted: request) { return reason }
        } catch {
            if error.message.isEmpty { return "a refusal without a word" }
        }
        return tampering(request, bytes)
    }

    /// Checks that an accepted request is complete and in time.
    private static func judge(accepted request: Request) -> String? {
        guard request.value("auth_key") == "key", request.value("auth_version") == "1.0", request.value("auth_signature")?.utf8.count == 64
        else {
            return "accepted without all it needs"
        }
        guard let time = request.value("auth_timestamp").flatMap({ Int64($0) }), abs(time - now) < RequestAuth.skewSecondsEnd else {
            return "accepted outside of its time"
        }
        if let md5 = request.value("body_md5") {
            if md5.lowercased() != Hex.encode(Digest.md5(request.body)) { return "accepted with another body" }
        } else if !request.body.isEmpty {
            return "accepted with a body that nothing signs"
        }
        return request.isAccepted(secret: "other") ? "accepted with another secret" : nil
    }

    /// Checks that the correctly signed request is accepted, and refused after any change.
    private static func tampering(_ request: Request, _ bytes: [UInt8]) -> String? {
        var honest = request
        honest.query = request.query.filter { !$0.name.lowercased().hasPrefix("auth_") && $0.name.lowercased() != "body_md5" }
        honest.query = RequestAuth.signedQuery(
            method: honest.method, path: honest.path, query: honest.query, body: honest.body, key: "key", secret: "secret", nowSeconds: now)
        guard honest.isAccepted() else { return "an honestly signed request is refused" }
        var changed = honest
        switch bytes.count % 6 {
        case 0: changed.body.append(0x20)
        case 1: changed.method += "X"
        case 2: changed.path += "x"
        case 3: changed.query.append(("zz", "1"))
        case 4:
            guard let last = changed.query.indices.last else { return "nothing was signed" }
            var signature = Array(changed.query[last].value.utf8)
            signature[bytes.count % signature.count] ^= 1
            changed.query[last].value = String(decoding: signature, as: UTF8.self)
        default: changed.query.removeAll { $0.name == "auth_timestamp" }
        }
        return changed.isAccepted() ? "accepted although it was changed in way \(bytes.count % 6)" : nil
    }
}
