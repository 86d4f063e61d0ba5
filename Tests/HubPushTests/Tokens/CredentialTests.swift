import Foundation
import HubCore
import HubCrypto
import HubHTTPClient
import HubJSON
import HubTesting
import Synchronization
import Testing

@testable import HubPush

private func minutes(_ count: UInt64) -> UInt64 { count * 60 * nanosecondsPerSecond }

private func claims(_ token: String) throws -> (header: JSONValue, claims: JSONValue, signed: [UInt8], signature: [UInt8]) {
    let parts = token.split(separator: ".").map(String.init)
    try #require(parts.count == 3)
    return (
        try json(try #require(Base64URL.decode(parts[0]))), try json(try #require(Base64URL.decode(parts[1]))),
        Array((parts[0] + "." + parts[1]).utf8), try #require(Base64URL.decode(parts[2]))
    )
}

@Suite("APNsTokenSchedule")
struct APNsTokenScheduleTests {
    @Test("signs at once, keeps the token 45 minutes, then signs again")
    func ages() {
        var schedule = APNsTokenSchedule()
        #expect(schedule.decide(now: 5) == .sign)
        schedule.signed("a", now: 5)
        #expect(schedule.decide(now: 5 + minutes(45) - 1) == .use("a"))
        #expect(schedule.decide(now: 5 + minutes(45)) == .sign)
        schedule.signed("b", now: 5 + minutes(45))
        #expect(schedule.decide(now: 5 + minutes(46)) == .use("b"))
    }

    @Test("an expired token is replaced once per 20 minutes, however many complain")
    func floor() {
        var schedule = APNsTokenSchedule()
        schedule.signed("a", now: 0)
        #expect(schedule.expired("a", now: minutes(19)) == .wait(minutes(1)))
        #expect(schedule.expired("a", now: minutes(20)) == .sign)
        schedule.signed("b", now: minutes(20))
        #expect(schedule.expired("a", now: minutes(20)) == .use("b"))
        #expect(schedule.expired("b", now: minutes(21)) == .wait(minutes(19)))
    }

    @Test("too many updates: back to the older token, and no signing for 20 minutes")
    func tooMany() {
        var schedule = APNsTokenSchedule()
        schedule.signed("a", now: 0)
        schedule.signed("b", now: minutes(45))
        schedule.tooManyUpdates(now: minutes(46))
        #expect(schedule.decide(now: minutes(50)) == .use("a"))
        #expect(schedule.decide(now: minutes(66)) == .sign)
    }

    @Test("too many updates with an older token past its hour keeps the newer one")
    func tooManyButOld() {
        var schedule = APNsTokenSchedule()
        schedule.signed("a", now: 0)
        schedule.signed("b", now: minutes(59))
        schedule.tooManyUpdates(now: minutes(61))
        #expect(schedule.decide(now: minutes(62)) == .use("b"))
    }
}

@Suite("APNsProviderToken")
struct APNsProviderTokenTests {
    @Test("the token is ES256 with a raw signature, key id, team and an integer time, and verifies")
    func token() throws {
        let key = ES256PrivateKey.generate()
        let clock = ManualClock()
        let provider = APNsProviderToken(key: key, keyID: "KEY1234567", teamID: "TEAM123456", time: clock)
        guard case .token(let token) = try provider.current() else { throw PayloadFault(reason: "no token") }
        let parts = try claims(token)
        #expect(parts.header == ["alg": "ES256", "kid": "KEY1234567"])
        #expect(parts.claims == ["iss": "TEAM123456", "iat": .int(now / 1000)])
        #expect(parts.signature.count == 64)
        #expect(try ES256PublicKey(pem: key.publicKeyPEM).isValid(signature: parts.signature, for: parts.signed))
        #expect(!token.contains("="))
        #expect(try provider.current() == .token(token))
    }

    @Test("a flood of complaints signs once per 20 minutes")
    func flood() throws {
        let clock = ManualClock()
        let provider = APNsProviderToken(key: .generate(), keyID: "KEY1234567", teamID: "TEAM123456", time: clock)
        guard case .token(let first) = try provider.current() else { throw PayloadFault(reason: "no token") }
        for _ in 0..<100 { #expect(try provider.replacement(for: first) == .wait(.seconds(20 * 60))) }
        clock.advance(seconds: 20 * 60)
        var seen: Set<String> = []
        for _ in 0..<100 { if case .token(let token) = try provider.replacement(for: first) { seen.insert(token) } }
        #expect(seen.count == 1)
        #expect(!seen.contains(first))
    }
}

@Suite("AccessTokenCache")
struct AccessTokenCacheTests {
    private let second = nanosecondsPerSecond

    @Test("one fetch for all who wait, and a refresh in the background five minutes before the end")
    func lives() {
        var cache = AccessTokenCache()
        #expect(cache.decide(now: 0) == .wait(fetch: true))
        #expect(cache.decide(now: 0) == .wait(fetch: false))
        cache.arrived("a", lifetime: 3600 * second, now: 0)
        #expect(cache.decide(now: 3300 * second) == .use("a", fetch: false))
        #expect(cache.decide(now: 3301 * second) == .use("a", fetch: true))
        #expect(cache.decide(now: 3302 * second) == .use("a", fetch: false))
        #expect(cache.decide(now: 3595 * second) == .wait(fetch: false))
        cache.arrived("b", lifetime: 3600 * second, now: 3596 * second)
        #expect(cache.decide(now: 3597 * second) == .use("b", fetch: false))
    }

    @Test("a failed refresh goes on serving the old token and waits before the next")
    func failedRefresh() {
        var cache = AccessTokenCache()
        _ = cache.decide(now: 0)
        cache.arrived("a", lifetime: 3600 * second, now: 0)
        #expect(cache.decide(now: 3400 * second) == .use("a", fetch: true))
        cache.failed(AccessTokenFault(isRetryable: true, after: nil, reason: "x"), now: 3400 * second)
        #expect(cache.decide(now: 3409 * second) == .use("a", fetch: false))
        #expect(cache.decide(now: 3410 * second) == .use("a", fetch: true))
    }

    @Test("failures hold off the next request: doubling, as asked, or long when final")
    func holds() {
        var cache = AccessTokenCache()
        let retryable = AccessTokenFault(isRetryable: true, after: nil, reason: "x")
        var at: UInt64 = 0
        for wait in [10, 20, 40, 80, 160, 320, 600, 600] as [UInt64] {
            #expect(cache.decide(now: at) == .wait(fetch: true))
            cache.failed(retryable, now: at)
            #expect(
                cache.decide(now: at + (wait - 1) * second) == .fail(AccessTokenFault(isRetryable: true, after: .seconds(1), reason: "x")))
            at += wait * second
        }
        var asked = AccessTokenCache()
        _ = asked.decide(now: 0)
        asked.failed(AccessTokenFault(isRetryable: true, after: .seconds(45), reason: "x"), now: 0)
        #expect(asked.decide(now: 44 * second) != .wait(fetch: true))
        #expect(asked.decide(now: 45 * second) == .wait(fetch: true))
        var final = AccessTokenCache()
        _ = final.decide(now: 0)
        final.failed(AccessTokenFault(isRetryable: false, after: nil, reason: "x"), now: 0)
        #expect(final.decide(now: 599 * second) != .wait(fetch: true))
        #expect(final.decide(now: 600 * second) == .wait(fetch: true))
    }

    @Test("only the refused token is forgotten")
    func invalidates() {
        var cache = AccessTokenCache()
        _ = cache.decide(now: 0)
        cache.arrived("a", lifetime: 3600 * second, now: 0)
        cache.invalidate("old")
        #expect(cache.decide(now: 1) == .use("a", fetch: false))
        cache.invalidate("a")
        #expect(cache.decide(now: 1) == .wait(fetch: true))
    }
}

@Suite("FCMAccessToken")
struct FCMAccessTokenTests {
    @Test("the assertion is what Google asks for, and verifies")
    func assertion() throws {
        let account = try ServiceAccount(json: ServiceAccount.file(key: rsaKey, tokenURI: "https://oauth2.googleapis.com/token"))
        let call = try FCMAccessToken.request(account, wallSeconds: 1000)
        #expect(call.url == "https://oauth2.googleapis.com/token")
        #expect(call.headers.first?.value == "application/x-www-form-urlencoded")
        let body = String(decoding: call.body, as: UTF8.self)
        let prefix = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion="
        try #require(body.hasPrefix(prefix))
        let parts = try claims(String(body.dropFirst(prefix.count)))
        #expect(parts.header == ["alg": "RS256", "typ": "JWT", "kid": "key-1"])
        #expect(
            parts.claims == [
                "iss": "push@demo-project.iam.gserviceaccount.com", "scope": "https://www.googleapis.com/auth/firebase.messaging",
                "aud": "https://oauth2.googleapis.com/token", "iat": 1000, "exp": 4600,
            ])
        #expect(try RS256PublicKey(pem: rsaKey.publicKeyPEM).isValid(signature: parts.signature, for: parts.signed))
    }

    @Test(
        "answers of the token endpoint",
        arguments: [
            (400, "{\"error\":\"invalid_grant\",\"error_description\":\"SECRET\"}", false, "token endpoint: invalid_grant"),
            (401, "{\"error\":\"invalid_client\"}", false, "token endpoint: invalid_client"),
            (400, "{\"error\":\"temporarily_unavailable\"}", true, "token endpoint: temporarily_unavailable"),
            (400, "{\"error\":\"internal_failure\"}", true, "token endpoint: internal_failure"),
            (400, "{\"error\":\"server_error\"}", true, "token endpoint: server_error"), (408, "", true, "token endpoint: http 408"),
            (429, "", true, "token endpoint: http 429"), (500, "", true, "token endpoint: http 500"),
            (502, "<html>", true, "token endpoint: http 502"), (503, "", true, "token endpoint: http 503"),
            (504, "", true, "token endpoint: http 504"), (403, "<html>", false, "token endpoint: http 403"),
            (200, "{}", true, "token endpoint: 200 without a token"),
            (200, "{\"access_token\":\"t\",\"expires_in\":0}", true, "token endpoint: 200 without a token"),
        ])
    func faults(status: Int, body: String, retryable: Bool, reason: String) {
        let answer = HTTPAnswer(status: status, version: .http2, headers: ["retry-after": "7"], body: Array(body.utf8))
        guard case .failure(let fault) = FCMAccessToken.read(.success(answer), now: now) else {
            Issue.record("a token out of nothing")
            return
        }
        // Somebody who asks for less is no outage, and neither is an answer that cannot be used.
        let isOutage = retryable && status != 429 && status != 200
        #expect(fault == AccessTokenFault(isRetryable: retryable, after: .seconds(7), reason: reason, isOutage: isOutage))
    }

    @Test("a token comes with its lifetime; a transport error may be retried")
    func reads() throws {
        let answer = HTTPAnswer(status: 200, version: .http2, body: Array("{\"access_token\":\"t\",\"expires_in\":3599}".utf8))
        let token = try FCMAccessToken.read(.success(answer), now: now).get()
        #expect(token == ("t", 3599 * nanosecondsPerSecond))
        let error = HTTPClientError(reason: .transport(.couldNotConnect), delivery: .notSent, detail: "refused")
        guard case .failure(let fault) = FCMAccessToken.read(.failure(error), now: now) else { return }
        #expect(fault.isRetryable)
    }

    @Test("waiting is bounded")
    func bounded() async throws {
        let account = try ServiceAccount(json: ServiceAccount.file(key: rsaKey, tokenURI: "https://oauth2.googleapis.com/token"))
        let pending = Mutex<[HTTPCompletion]>([])
        let access = FCMAccessToken(account: account, time: ManualClock()) { _, completion in pending.withLock { $0.append(completion) } }
        let ends = Mutex((tokens: 0, faults: 0))
        for _ in 0..<FCMAccessToken.waitersMax + 5 {
            access.withToken { result in
                ends.withLock { if case .success = result { $0.tokens += 1 } else { $0.faults += 1 } }
            }
        }
        #expect(ends.withLock { $0 } == (0, 5))
        #expect(pending.withLock { $0.count } == 1)
        let answer = HTTPAnswer(status: 200, version: .http2, body: Array("{\"access_token\":\"t\",\"expires_in\":3599}".utf8))
        for completion in pending.withLock({ $0 }) { completion(.success(answer)) }
        #expect(ends.withLock { $0 } == (FCMAccessToken.waitersMax, 5))
        #expect(access.requests == 1)
    }
}

@Suite("Credentials")
struct CredentialTests {
    @Test("a service account with literal \\n in its key is read")
    func literalNewlines() throws {
        let file = ServiceAccount.file(key: rsaKey, tokenURI: "https://oauth2.googleapis.com/token") { members in
            members["private_key"] = .string(rsaKey.pem.replacingOccurrences(of: "\n", with: "\\n"))
        }
        #expect(try FCMConfiguration(serviceAccount: file).projectID == "demo-project")
    }

    @Test(
        "what is wrong with a service account is named",
        arguments: [
            ("type", .string("authorized_user"), "type"), ("project_id", nil, "project_id"), ("project_id", "a/../b", "project_id"),
            ("client_email", nil, "client_email"), ("private_key", "SECRET", "private_key"), ("private_key_id", "", "private_key_id"),
            ("token_uri", "http://example.com/token", "token_uri"),
        ] as [(String, JSONValue?, String)])
    func serviceAccount(key: String, value: JSONValue?, names: String) throws {
        let file = ServiceAccount.file(key: rsaKey, tokenURI: "https://oauth2.googleapis.com/token") { $0[key] = value }
        let error = try #require(throws: PushConfigurationError.self) { try FCMConfiguration(serviceAccount: file) }
        #expect(error.message.contains("\"\(names)\""))
        #expect(!error.message.contains("SECRET"))
    }

    @Test(
        "what is wrong with APNs' values is named",
        arguments: [
            ("SECRET", "KEY1234567", "TEAM123456", "com.example.app", nil, ".p8"),
            (nil, "KEY", "TEAM123456", "com.example.app", nil, "APNS_KEY_ID"),
            (nil, "KEY1234567", "TEAM 12345", "com.example.app", nil, "APNS_TEAM_ID"),
            (nil, "KEY1234567", "TEAM123456", "", nil, "APNS_TOPIC"),
            (nil, "KEY1234567", "TEAM123456", "com.example.app", "http://example.com", "TANDEM_APNS_URL"),
        ] as [(String?, String, String, String, String?, String)])
    func apns(pem: String?, keyID: String, teamID: String, topic: String, url: String?, names: String) throws {
        let error = try #require(throws: PushConfigurationError.self) {
            try APNsConfiguration(keyPEM: pem ?? ES256PrivateKey.generate().pem, keyID: keyID, teamID: teamID, topic: topic, url: url)
        }
        #expect(error.message.contains(names))
        #expect(!error.message.contains("SECRET"))
    }

    @Test("a missing, empty, huge or wrong file is an error with its path")
    func files() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("tandem-\(UInt64.random(in: 0 ... .max))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        func path(_ name: String, _ content: Data?) throws -> String {
            let url = folder.appendingPathComponent(name)
            try content?.write(to: url)
            return url.path
        }
        let cases = [
            (try path("missing", nil), "no such file"), (try path("empty", Data()), "empty"),
            (try path("huge", Data(count: 65_537)), "larger"), (folder.path, "cannot be read"),
        ]
        for (path, says) in cases {
            let error = try #require(throws: PushConfigurationError.self) { try CredentialFile.read(path) }
            #expect(error.message.hasPrefix(path))
            #expect(error.message.contains(says))
        }
        let good = try path("good", Data("abc".utf8))
        #expect(try CredentialFile.read(good) == Array("abc".utf8))
        let error = try #require(throws: PushConfigurationError.self) { try FCMConfiguration.load(path: good) }
        #expect(error.message.hasPrefix(good))
        let key = try path("key.p8", Data(ES256PrivateKey.generate().pem.utf8))
        let loaded = try APNsConfiguration.load(keyPath: key, keyID: "KEY1234567", teamID: "TEAM123456", topic: "com.example.app")
        #expect(loaded.defaultEnvironment == .production)
    }
}
