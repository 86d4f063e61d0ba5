import Foundation
import HubCore
import HubCrypto
import Testing

@testable import HubAPI

@Suite("Browser apps of other origins")
struct CrossOriginTests {
    static let good = ["origin": "https://good.example"]
    static let evil = ["origin": "https://evil.example"]

    @Test(
        "learn before they send what they may send, without a signature", arguments: ["//apps/1/events", "//apps/1/channels", "//me/state"])
    func preflight(path: String) async throws {
        let stage = try RouterStage(origins: ["https://good.example"])
        let allowed = try await stage.send("OPTIONS", path, headers: Self.good, sign: false)
        #expect(allowed.status == 200 && allowed.text == "{}")
        #expect(allowed[header: "Access-Control-Allow-Origin"] == "https://good.example" && allowed[header: "Vary"] == "Origin")
        let methods = allowed[header: "Access-Control-Allow-Methods"]?.split(separator: ", ") ?? []
        #expect(Set(methods).isSuperset(of: ["GET", "POST", "PUT", "PATCH", "DELETE"]))
        let headers = allowed[header: "Access-Control-Allow-Headers"]?.split(separator: ", ") ?? []
        #expect(
            Set(headers).isSuperset(of: [
                "Authorization", "Content-Type", "Idempotency-Key", "X-Client-Id", "X-Pusher-Library", "X-Requested-With",
            ]))
        let refused = try await stage.send("OPTIONS", path, headers: Self.evil, sign: false)
        #expect(refused.status == 403 && refused.error.contains("cors.origins"))
        #expect(refused[header: "Access-Control-Allow-Origin"] == nil && refused[header: "Vary"] == "Origin")
    }

    @Test("may read answers, refusals as well, that come at once and that come later")
    func answers() async throws {
        let stage = try RouterStage(origins: ["https://good.example", "https://better.example"])
        for (method, path, sign, status) in [
            ("GET", "/channels", true, 200), ("GET", "/channels", false, 401), ("PUT", "/events", true, 405),
            ("GET", "/nothing", true, 404),
            ("POST", "/events", true, 400), ("GET", "//nothing", false, 404), ("PUT", "//me/state", false, 401),
            ("GET", "//health", false, 200),
        ] {
            let good = try await stage.send(method, path, headers: Self.good, sign: sign)
            #expect(good.status == status, "\(method) \(path): \(good.text)")
            #expect(good[header: "Access-Control-Allow-Origin"] == "https://good.example" && good[header: "Vary"] == "Origin", "\(path)")
            #expect(good[header: "Access-Control-Expose-Headers"]?.contains("Idempotency-Replayed") == true)
            let evil = try await stage.send(method, path, headers: Self.evil, sign: sign)
            #expect(evil.status == status && evil[header: "Access-Control-Allow-Origin"] == nil && evil[header: "Vary"] == "Origin")
            let native = try await stage.send(method, path, sign: sign)
            #expect(native.status == status && native[header: "Access-Control-Allow-Origin"] == nil)
        }
    }

    @Test("are all let in by *")
    func everybody() async throws {
        let stage = try RouterStage(origins: ["*"])
        #expect(try await stage.send("OPTIONS", "/events", headers: Self.evil, sign: false)[header: "Access-Control-Allow-Origin"] == "*")
        #expect(try await stage.send("GET", "/channels", headers: Self.evil)[header: "Access-Control-Allow-Origin"] == "*")
    }

    @Test("find nothing of it when nobody is listed")
    func off() async throws {
        let stage = try RouterStage()
        let preflight = try await stage.send("OPTIONS", "/events", headers: Self.good, sign: false)
        #expect(preflight.status == 403 && preflight.headers.isEmpty)
        #expect(try await stage.send("GET", "/channels", headers: Self.good).headers.isEmpty)
    }

    @Test("import the companion, wherever they come from")
    func companion() async throws {
        let stage = try RouterStage()
        let file = try await stage.send("GET", "//client/tandem.js", headers: Self.evil, sign: false)
        #expect(file.status == 200 && file.text.contains("export function tandem(pusher, channel, { hub, token })"))
        #expect(file[header: "Access-Control-Allow-Origin"] == "*")
        #expect(try await stage.send("POST", "//client/tandem.js", sign: false).status == 405)
        // Base64 of its own alphabet, filled up.
        let digest = Digest.sha256(Array(file.text.utf8))
        let hash = Base64URL.encode(digest).replacing("-", with: "+").replacing("_", with: "/") + "="
        let page = URL(fileURLWithPath: #filePath).appendingPathComponent("../../../../docs/clients.md").standardized
        #expect(try String(contentsOf: page, encoding: .utf8).contains("sha256-\(hash)"), "docs/clients.md needs the hash sha256-\(hash)")
    }
}
