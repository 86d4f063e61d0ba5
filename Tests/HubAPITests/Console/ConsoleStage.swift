import HubCore
import HubCrypto
import Testing

@testable import HubAPI

/// A router with a console, and a browser's cookie jar.
final class ConsoleStage {
    /// Hashes of "the-boss-of-all" and "just-a-guest" at the least cost that is allowed: a sign-in takes a sixth of the usual time.
    static let boss = PasswordHash("scrypt.14.8.1.AAECAwQFBgcICQoLDA0ODw._N6tx_AKKMPaVAKRidodLfVwanoqP42rrIdJyaZpyws")!
    static let guest = PasswordHash("scrypt.14.8.1.EBESExQVFhcYGRobHB0eHw.NL-UPGuaG2xK1UlECCz2pqwOWnDjhy944Y7w_-uiZdA")!

    let stage: RouterStage
    private(set) var cookie: String?

    init(
        _ access: ConsoleAccess = ConsoleAccess(operatorPassword: boss, viewerPassword: guest, ticket: nil, isTLS: false),
        origins: [String] = []
    ) throws {
        stage = try RouterStage(origins: origins, console: access)
    }

    /// A request of the console's own page, with its cookie.
    func send(
        _ method: String, _ path: String, _ body: String = "", query: [(name: String, value: String)] = [],
        headers: [String: String] = [:], from address: String = "192.0.2.1"
    ) async throws -> HTTPResponse {
        var all = ["host": "hub.example", "sec-fetch-site": "same-origin"]
        if method != "GET" && method != "HEAD" { all["x-tandem-console"] = "1" }
        if let cookie { all["cookie"] = "other=1; \(cookie)" }
        all.merge(headers) { $1 }
        let path = "//console/\(path)"
        return try await stage.send(
            method, path, body, query: query, headers: all.filter { !$0.value.isEmpty }, sign: false, from: address)
    }

    /// Signs in, and keeps the cookie if it comes.
    @discardableResult
    func signIn(_ password: String, from address: String = "192.0.2.1", headers: [String: String] = [:]) async throws -> HTTPResponse {
        let response = try await send("POST", "api/session", "{\"password\": \"\(password)\"}", headers: headers, from: address)
        if let value = response[header: "Set-Cookie"] { cookie = String(value.prefix { $0 != ";" }) }
        return response
    }

    func change(cookie: (String) -> String) { self.cookie = self.cookie.map(cookie) }
}
