import HubCore
import HubCrypto
import HubTesting
import PusherProtocol
import Testing

struct RequestVector: Sendable {
    let name: String
    let method: String
    let path: String
    var query: [String] = []
    var body = ""
    var md5: String?
    let signature: String
}

let signedAt: Int64 = 1_353_088_179

/// H1 to H7 (docs/protocol.md, 4.4).
let requestVectors = [
    RequestVector(
        name: "H1", method: "POST", path: "/apps/3/events",
        body: #"{"name":"foo","channels":["project-3"],"data":"{\"some\":\"data\"}"}"#, md5: "ec365a775a4cd0599faeb73354201b6f",
        signature: "da454824c97ba181a32ccc17a72625ba02771f50b50e1e7430e47a1f3f457e6c"),
    RequestVector(
        name: "H2", method: "GET", path: "/apps/3/channels",
        signature: "1cafa6382331c976588eb6bd3925a988e4158402be06c4626d0e97d2981f5382"),
    RequestVector(
        name: "H3", method: "GET", path: "/apps/3/channels",
        query: ["filter_by_prefix=presence-", "info=user_count,subscription_count"],
        signature: "ff97d40ab3fbbd15394386a29c12998c33635305357b2e2abd18dc67efe3f87d"),
    RequestVector(
        name: "H4", method: "GET", path: "/apps/3/channels", md5: "d41d8cd98f00b204e9800998ecf8427e",
        signature: "5c3cd75022c4f62c35ad22f6a9cce366c860477a3b7092ca790ecfc17e6af302"),
    RequestVector(
        name: "H5", method: "POST", path: "/apps/3/batch_events",
        body: #"{"batch":[{"channel":"a","name":"e","data":"{}"},{"channel":"presence-b","name":"e","data":"{}","info":"user_count"}]}"#,
        md5: "16221173feb617042dd80677aa23e526",
        signature: "792baf2829951e43024ee162641294e99242a031ef3a7ca0a1c5af216924ff5d"),
    RequestVector(
        name: "H6", method: "POST", path: "/apps/3/users/12345/terminate_connections", body: "{}",
        md5: "99914b932bd37a50b983c5e7c90ae93b", signature: "01fa634edeb0cae84115307cad5c23f65a46cd286461b1c89637a3b5871a8f0e"),
    RequestVector(
        name: "H7", method: "POST", path: "/users/12345/terminate_connections", body: "{}",
        md5: "99914b932bd37a50b983c5e7c90ae93b", signature: "e3c6b279be14c04728803c2f54d90bef57357d2bb2e1b8ae90507149cd3308d7"),
]

@Suite("RequestAuth")
struct RequestAuthTests {
    private func request(_ vector: RequestVector) -> HTTPRequest {
        var query: [(name: String, value: String)] = [
            ("auth_key", Vector.key), ("auth_timestamp", String(signedAt)), ("auth_version", "1.0"),
        ]
        if let md5 = vector.md5 { query.append(("body_md5", md5)) }
        for parameter in vector.query {
            let parts = parameter.split(separator: "=", maxSplits: 1).map(String.init)
            query.append((parts[0], parts[1]))
        }
        query.append(("auth_signature", vector.signature))
        return HTTPRequest(method: vector.method, path: vector.path, query: query, body: Array(vector.body.utf8))
    }

    private func verify(_ request: HTTPRequest, now: Int64 = signedAt) throws(RequestAuth.Refusal) -> String {
        try RequestAuth.verify(request, nowSeconds: now, key: { Vector.secret(of: $0).map { HMACKey($0) } })
    }

    private func signed(
        _ method: String = "GET", _ path: String, _ query: [(name: String, value: String)] = [], body: String = ""
    ) -> HTTPRequest {
        let body = Array(body.utf8)
        return HTTPRequest(
            method: method, path: path,
            query: RequestAuth.signedQuery(
                method: method, path: path, query: query, body: body, key: Vector.key, secret: Vector.secret, nowSeconds: signedAt),
            body: body)
    }

    @Test("the vectors are accepted, with their parameters in any order and any case of names", arguments: requestVectors)
    func vectors(vector: RequestVector) throws {
        var request = request(vector)
        #expect(try verify(request) == Vector.key)
        request.parameters.reverse()
        #expect(try verify(request) == Vector.key)
        request.parameters = request.parameters.map { ($0.name.uppercased(), $0.value) }
        #expect(try verify(request) == Vector.key)
    }

    @Test("signing gives the vectors", arguments: requestVectors.filter { $0.name != "H4" })
    func signing(vector: RequestVector) {
        let query = RequestAuth.signedQuery(
            method: vector.method, path: vector.path,
            query: vector.query.map { parameter in
                let parts = parameter.split(separator: "=", maxSplits: 1).map(String.init)
                return (parts[0], parts[1])
            }, body: Array(vector.body.utf8), key: Vector.key, secret: Vector.secret, nowSeconds: signedAt)
        #expect(query.last?.name == "auth_signature")
        #expect(query.last?.value == vector.signature)
        #expect(query.first { $0.name == "body_md5" }?.value == vector.md5)
    }

    @Test("anything changed in a vector is refused", arguments: requestVectors)
    func changes(vector: RequestVector) {
        let original = request(vector)
        for bit in 0..<vector.signature.utf8.count * 8 {
            var request = original
            var bytes = Array(vector.signature.utf8)
            bytes[bit / 8] ^= 1 << (bit % 8)
            request.parameters[request.parameters.count - 1].value = text(bytes)
            #expect(throws: RequestAuth.Refusal.self) { try verify(request) }
        }
        var request = original
        request.method = request.method == "GET" ? "POST" : "GET"
        #expect(throws: RequestAuth.Refusal.self) { try verify(request) }
        request = original
        request.path += "/x"
        #expect(throws: RequestAuth.Refusal.self) { try verify(request) }
        request = original
        request.body.append(0x20)
        #expect(throws: RequestAuth.Refusal.self) { try verify(request) }
        request = original
        request.parameters.insert(("extra", "1"), at: 0)
        #expect(throws: RequestAuth.Refusal.self) { try verify(request) }
        request = original
        request.parameters[0].value = "second-key"
        #expect(throws: RequestAuth.Refusal.self) { try verify(request) }
    }

    @Test("each missing or wrong parameter has the text of the pusher-signature gem, in its order")
    func texts() {
        let without = { (names: String...) in
            var request = request(requestVectors[0])
            request.parameters.removeAll { names.contains($0.name) }
            return request
        }
        let with = { (name: String, value: String) in
            var request = without(name)
            request.parameters.append((name, value))
            return request
        }
        let cases: [(HTTPRequest, String)] = [
            (without("auth_key", "auth_version", "auth_timestamp", "auth_signature"), "Missing parameter: auth_key"),
            (with("auth_key", "nobody"), "Unknown auth_key"), (without("auth_version", "auth_timestamp"), "Version required"),
            (with("auth_version", "2.0"), "Version not supported"), (without("auth_timestamp"), "Timestamp required"),
            (with("auth_timestamp", "soon"), "Timestamp invalid: auth_timestamp must be whole seconds since 1970"),
            (with("auth_timestamp", "-9223372036854775808"), "Timestamp invalid: auth_timestamp must be whole seconds since 1970"),
            (
                with("auth_signature", "bad"),
                #"Invalid signature: you should have sent HmacSHA256Hex("POST\n/apps/3/events\nauth_key=278d425bdf160c739803&auth_timestamp=1353088179&auth_version=1.0&body_md5=ec365a775a4cd0599faeb73354201b6f", your_secret_key), but you sent "bad""#
            ),
        ]
        for (request, message) in cases {
            #expect(throws: RequestAuth.Refusal.self) { try verify(request) }
            do {
                _ = try verify(request)
            } catch {
                #expect(error.message == message)
                #expect(!error.message.contains(Vector.secret))
            }
        }
    }

    @Test("a skew of 599 s is accepted and 600 s refused, both ways")
    func skew() throws {
        let request = request(requestVectors[1])
        #expect(try verify(request, now: signedAt + 599) == Vector.key)
        #expect(try verify(request, now: signedAt - 599) == Vector.key)
        #expect(throws: RequestAuth.Refusal.self) { try verify(request, now: signedAt - 600) }
        do {
            _ = try verify(request, now: signedAt + 600)
            Issue.record("accepted")
        } catch {
            #expect(
                error.message
                    == "Timestamp expired: Given timestamp (2012-11-16T17:49:39Z) not within 600s of server time (2012-11-16T17:59:39Z)")
        }
    }

    @Test("a body needs a body_md5 that is its own")
    func bodyMD5() throws {
        var withoutMD5 = signed("POST", "/apps/3/events")
        withoutMD5.body = Array("{}".utf8)
        #expect { try verify(withoutMD5) } throws: { "\($0)".hasPrefix("Missing parameter: body_md5") }
        var otherBody = signed("POST", "/apps/3/events", body: "{}")
        #expect(try verify(otherBody) == Vector.key)
        otherBody.body = Array("{ }".utf8)
        #expect { try verify(otherBody) } throws: { "\($0)".hasPrefix("Invalid body_md5") }
        otherBody.body = []
        #expect { try verify(otherBody) } throws: { "\($0)".hasPrefix("Invalid body_md5") }
    }

    @Test(
        "a path is accepted as it was signed: encoded, or without a proxy's prefix",
        arguments: [
            ("/apps/3/users/a%20b/terminate_connections", "/apps/3/users/a b/terminate_connections"),
            ("/apps/3/users/ann%40example.com/terminate_connections", "/apps/3/users/ann@example.com/terminate_connections"),
            ("/apps/3/users/ann@example.com%20x/terminate_connections", "/apps/3/users/ann@example.com x/terminate_connections"),
            ("/apps/3/users/Zo%C3%AB/terminate_connections", "/apps/3/users/Zoë/terminate_connections"),
            ("/apps/3/channels/a%3Db%2Cc", "/apps/3/channels/a=b,c"), ("/apps/3/channels", "/hub/apps/3/channels"),
            ("/apps/3/channels/a%2Cb", "/hub/v1/apps/3/channels/a,b"),
        ])
    func paths(signedPath: String, receivedPath: String) throws {
        var request = signed("GET", signedPath)
        request.path = receivedPath
        #expect(try verify(request) == Vector.key)
        request.path = receivedPath + "x"
        #expect(throws: RequestAuth.Refusal.self) { try verify(request) }
    }

    @Test("arrays are accepted as the pusher-signature gem signs them and as PHP does")
    func arrays() throws {
        let gem = signed("GET", "/apps/3/channels", [("k[]", "b"), ("k[]", "a"), ("z", "1")])
        #expect(try verify(gem) == Vector.key)
        // Equal names keep their order, which a signature made and checked here alone would not show.
        var refused = gem
        refused.parameters[refused.parameters.count - 1].value = "bad"
        #expect { try verify(refused) } throws: { "\($0)".contains("&k[]=b&k[]=a&z=1\"") }
        var php = signed("GET", "/apps/3/channels", [("k", "b,a"), ("z", "1")])
        php.parameters.removeAll { $0.name == "k" }
        php.parameters.append(("k[0]", "b"))
        php.parameters.append(("k[1]", "a"))
        #expect(try verify(php) == Vector.key)
        php.parameters.append(("k[2]", "c"))
        #expect(throws: RequestAuth.Refusal.self) { try verify(php) }
        // The order sent counts, not that of the names: `k[10]` sorts before `k[2]`.
        let values = (0...10).map { "v\($0)" }
        var long = signed("GET", "/apps/3/channels", [("k", values.joined(separator: ","))])
        long.parameters.removeAll { $0.name == "k" }
        for (index, value) in values.enumerated() { long.parameters.append(("k[\(index)]", value)) }
        #expect(try verify(long) == Vector.key)
    }

    @Test("requests of random parts never crash")
    func random() {
        let seed = UInt64.random(in: 0...UInt64.max)
        print("RequestAuth random seed: \(seed)")
        var generator = SeededRandom(state: seed)
        let names = ["auth_key", "auth_timestamp", "auth_version", "auth_signature", "body_md5", "k[]", "]", "[", ""]
        for _ in 0..<5000 {
            var request = request(requestVectors[0])
            for _ in 0..<generator.next() % 4 {
                request.parameters.append((names[Int(generator.next() % UInt64(names.count))], text(generator.bytes(upTo: 12))))
            }
            request.parameters.shuffle(using: &generator)
            if generator.next() % 2 == 0 { request.parameters.removeLast() }
            request.path = text(generator.bytes(upTo: 20))
            #expect(throws: RequestAuth.Refusal.self, "seed \(seed)") { try verify(request) }
        }
    }
}
