import HubChannels
import HubCore
import HubCrypto
import HubDefinitions
import PusherProtocol
import Testing

@testable import HubAPI

@Suite("ParticipantToken")
struct ParticipantTokenTests {
    private let now: Int64 = 1_767_920_400
    private let app = App(index: 0, id: "1", secrets: ["alpha-key": "alpha-secret", "beta-key": "beta-secret"])
    private let other = App(index: 1, id: "2", secrets: ["other-key": "other-secret"])
    private let ann = Participant(
        app: "1", session: "s1", user: "42", number: 42, name: "Ann", email: nil, role: nil, joinedAt: 0, joinedBy: .email)
    private var apps: AppDirectory { AppDirectory([app, other]) }

    private func issue(_ app: App? = nil) -> String {
        ParticipantToken.issue(app: app ?? self.app, participant: ann, device: "phone", scope: .join, nowSeconds: now) {
            Array(repeating: 7, count: $0)
        }
    }

    private func signed(_ header: JSONValue, _ payload: JSONValue, secret: String = "alpha-secret") -> String {
        let text = Base64URL.encode(header.serialized()) + "." + Base64URL.encode(payload.serialized())
        return text + "." + Base64URL.encode(HMAC.sha256(key: secret.utf8, message: text.utf8))
    }

    private var payload: [String: JSONValue] {
        ["app": "1", "session": "s1", "sub": "42", "device": "phone", "iat": .int(now), "exp": .int(now + 60), "jti": "x"]
    }
    private let header: JSONValue = ["alg": "HS256", "kid": "alpha-key", "typ": "JWT"]

    private func isAccepted(_ token: String, apps: AppDirectory? = nil, at seconds: Int64? = nil) -> Bool {
        (try? ParticipantToken.verify(token, apps: apps ?? self.apps, nowSeconds: seconds ?? now)) != nil
    }

    @Test("is the JWT that any library would make")
    func vector() throws {
        // python3: hmac.new(b"alpha-secret", b64url(header) + b"." + b64url(payload), "sha256"), both with sorted keys
        #expect(issue() == ParticipantTokenTests.expected)
    }

    private static let expected =
        "eyJhbGciOiJIUzI1NiIsImtpZCI6ImFscGhhLWtleSIsInR5cCI6IkpXVCJ9"
        + ".eyJhcHAiOiIxIiwiZGV2aWNlIjoicGhvbmUiLCJleHAiOjE3NjgwMDY4MDAsImlhdCI6MTc2NzkyMDQwMCwianRpIjoiMDcwNzA3MDcwNzA3MDcwNzA3MDcwNzA3MDcwNzA3MDciLCJudW1iZXIiOjQyLCJzY29wZSI6ImpvaW4iLCJzZXNzaW9uIjoiczEiLCJzdWIiOiI0MiJ9"
        + ".kId-LQVeEUckTqsrhIPHtCuvi7L0L2EgqCRtfajjtKY"

    @Test("is good until its last second")
    func lifetime() throws {
        let token = issue()
        let (claims, app) = try ParticipantToken.verify(token, apps: apps, nowSeconds: now + 86_399)
        #expect(app.id == "1" && claims.user == "42" && claims.device == "phone" && claims.session == "s1" && claims.issuedAt == now)
        #expect(throws: ParticipantToken.Refusal.expired) { try ParticipantToken.verify(token, apps: apps, nowSeconds: now + 86_400) }
    }

    @Test("two tokens of one second differ")
    func unique() {
        let make = { ParticipantToken.issue(app: app, participant: ann, device: "d", scope: .join, nowSeconds: now) }
        #expect(make() != make())
    }

    @Test("every flipped bit, every cut and every addition is refused")
    func tampering() {
        let token = Array(issue().utf8)
        for index in token.indices {
            for bit in 0..<7 {
                var changed = token
                changed[index] ^= 1 << UInt8(bit)
                #expect(!isAccepted(String(decoding: changed, as: UTF8.self)), "byte \(index) bit \(bit)")
            }
            #expect(!isAccepted(String(decoding: token[..<index], as: UTF8.self)))
        }
        for more in [".", "A", "=", " ", ".x"] { #expect(!isAccepted(issue() + more)) }
        #expect(!isAccepted(issue() + String(repeating: "A", count: 5000)))
    }

    @Test("the algorithm is ours to choose", arguments: ["none", "None", "HS512", "RS256", "hs256", ""])
    func algorithms(name: String) {
        let header: JSONValue = ["alg": .string(name), "kid": "alpha-key", "typ": "JWT"]
        #expect(!isAccepted(signed(header, .object(payload))))
        let unsigned = Base64URL.encode(header.serialized()) + "." + Base64URL.encode(JSONValue.object(payload).serialized()) + "."
        #expect(!isAccepted(unsigned))
        #expect(isAccepted(signed(self.header, .object(payload))))
    }

    @Test("critical extensions, unknown keys and another key's secret are refused")
    func headers() {
        #expect(!isAccepted(signed(["alg": "HS256", "kid": "alpha-key", "crit": ["b64"]], .object(payload))))
        #expect(!isAccepted(signed(["alg": "HS256"], .object(payload))))
        #expect(!isAccepted(signed(["alg": "HS256", "kid": "nope"], .object(payload))))
        #expect(!isAccepted(signed(["alg": "HS256", "kid": 1], .object(payload))))
        #expect(!isAccepted(signed(header, .object(payload), secret: "beta-secret")))
        #expect(!isAccepted(signed(header, .object(payload), secret: "")))
    }

    @Test("a token belongs to the app whose key signed it")
    func otherApp() {
        #expect(!isAccepted(signed(["alg": "HS256", "kid": "other-key"], .object(payload), secret: "other-secret")))
        let own = payload.merging(["app": "2"]) { $1 }
        #expect(isAccepted(signed(["alg": "HS256", "kid": "other-key"], .object(own), secret: "other-secret")))
        #expect(!isAccepted(signed(header, .object(own))))
    }

    @Test("claims have to be there, with their types", arguments: ["app", "session", "sub", "device", "iat", "exp"])
    func claims(name: String) {
        var payload = payload
        payload[name] = .null
        #expect(!isAccepted(signed(header, .object(payload))))
        payload[name] = [:]
        #expect(!isAccepted(signed(header, .object(payload))))
    }

    @Test("tokens outlive the rotation of other keys, and end with their own")
    func rotation() {
        let token = issue()
        #expect(isAccepted(token, apps: AppDirectory([App(index: 0, id: "1", secrets: ["alpha-key": "alpha-secret"])])))
        #expect(!isAccepted(token, apps: AppDirectory([App(index: 0, id: "1", secrets: ["beta-key": "beta-secret"])])))
        #expect(!isAccepted(token, apps: AppDirectory([App(index: 0, id: "1", secrets: ["alpha-key": "changed"])])))
    }
}
