import HubCore
import HubCrypto
import HubTesting
import Testing

@testable import HubAPI

@Suite("The console's door")
struct ConsoleTests {
    @Test("there is nothing without a way in, signed or not")
    func off() async throws {
        let stage = try RouterStage()
        for path in ["//console", "//console/", "//console/app.js", "//console/api/session", "//console/api/apps/1/channels"] {
            #expect(try await stage.send("GET", path, sign: false).status == 404, "\(path)")
            #expect(try await stage.send("GET", path).status == 404, "\(path), signed")
        }
    }

    @Test("its files come with a tag, answer HEAD, and are not sent twice")
    func files() async throws {
        let console = try ConsoleStage()
        let page = try await console.send("GET", "")
        #expect(page.status == 200 && page.contentType == "text/html; charset=utf-8" && page.text.hasPrefix("<!doctype html>"))
        let tag = try #require(page[header: "ETag"])
        for known in [tag, "\"other\", \(tag)", "W/\(tag)", "*"] {
            let again = try await console.send("GET", "", headers: ["if-none-match": known])
            #expect(again.status == 304 && again.body.isEmpty && again[header: "ETag"] == tag)
        }
        #expect(try await console.send("GET", "", headers: ["if-none-match": "\"other\""]).status == 200)
        #expect(try await console.send("HEAD", "app.js").status == 200)
        #expect(try await console.send("GET", "app.js").contentType == "text/javascript; charset=utf-8")
        #expect(try await console.send("POST", "app.js")[header: "Allow"] == "GET, HEAD")
        for path in ["nothing.js", "app.js/x", "../health", "Web/app.js"] {
            #expect(try await console.send("GET", path).status == 404, "\(path)")
        }
        let bare = try await console.stage.send("GET", "//console", sign: false)
        #expect(bare.status == 301 && bare[header: "Location"] == "/console/")
        #expect(ConsoleFiles.all.values.reduce(0) { $0 + $1.body.count } <= 150_000, "the whole console over the wire")
    }

    @Test("every module that a script imports is there")
    func imports() throws {
        for (name, file) in ConsoleFiles.all where name.hasSuffix(".js") {
            let text = String(decoding: file.body, as: UTF8.self)
            for part in text.split(separator: "\"./").dropFirst() {
                let imported = String(part.prefix { $0 != "\"" })
                #expect(ConsoleFiles.all[imported] != nil, "\(name) imports \(imported)")
            }
        }
    }

    @Test("every answer keeps other pages and injected code out", arguments: ["", "app.js", "nothing", "api/session", "api/apps"])
    func headers(path: String) async throws {
        let console = try ConsoleStage(origins: ["*"])
        let answer = try await console.send("GET", path, headers: ["origin": "https://evil.example"])
        let policy = try #require(answer[header: "Content-Security-Policy"])
        #expect(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"))
        #expect(answer[header: "X-Frame-Options"] == "DENY" && answer[header: "X-Content-Type-Options"] == "nosniff")
        #expect(answer[header: "Referrer-Policy"] == "no-referrer")
        #expect(answer[header: "Access-Control-Allow-Origin"] == nil, "cors.origins is not for the console")
        if path.hasPrefix("api") { #expect(answer[header: "Cache-Control"] == "no-store") }
    }

    @Test("a password opens it for twelve hours, with a cookie that no script reads")
    func session() async throws {
        let console = try ConsoleStage()
        #expect(try await console.send("GET", "api/session").status == 401)
        let answer = try await console.signIn("the-boss-of-all")
        #expect(answer.status == 200 && answer.json["role"] == "operator")
        let cookie = try #require(answer[header: "Set-Cookie"])
        for part in ["; HttpOnly", "; SameSite=Strict", "; Path=/console;", "; Max-Age=43200"] { #expect(cookie.contains(part), "\(part)") }
        #expect(!cookie.contains("Secure"))
        #expect(try await console.send("GET", "api/session").json["role"] == "operator")
        console.stage.clock.advance(seconds: 12 * 3600 - 1)
        #expect(try await console.send("GET", "api/session").status == 200)
        console.stage.clock.advance(seconds: 1)
        #expect(try await console.send("GET", "api/session").status == 401)
        #expect(try await console.send("GET", "api/apps").status == 401)
    }

    @Test("the cookie is secure where the browser speaks TLS")
    func secure() async throws {
        let access = ConsoleAccess(operatorPassword: ConsoleStage.boss, viewerPassword: nil, ticket: nil, isTLS: true)
        #expect(try await ConsoleStage(access).signIn("the-boss-of-all")[header: "Set-Cookie"]?.hasSuffix("; Secure") == true)
        let proxied = try await ConsoleStage().signIn("the-boss-of-all", headers: ["origin": "https://hub.example"])
        #expect(proxied[header: "Set-Cookie"]?.hasSuffix("; Secure") == true)
    }

    @Test("a changed cookie opens nothing, and one of another password neither")
    func forged() async throws {
        let console = try ConsoleStage()
        try await console.signIn("just-a-guest")
        #expect(try await console.send("GET", "api/apps").status == 200)
        console.change { $0.replacing("=viewer.", with: "=operator.") }
        #expect(try await console.send("GET", "api/apps").status == 401, "another role")
        console.change { $0.replacing("=operator.", with: "=viewer.") }
        #expect(try await console.send("GET", "api/apps").status == 200)
        console.change { String($0.dropLast()) + ($0.hasSuffix("0") ? "1" : "0") }
        #expect(try await console.send("GET", "api/apps").status == 401, "another code")
        let other = ConsoleSessions(ConsoleAccess(operatorPassword: ConsoleStage.boss, viewerPassword: nil, ticket: nil, isTLS: false))
        let own = ConsoleSessions(ConsoleAccess(operatorPassword: ConsoleStage.guest, viewerPassword: nil, ticket: nil, isTLS: false))
        #expect(other.cookieName != own.cookieName, "browsers keep one jar for all ports of a host")
    }

    @Test("signing out ends the session, whoever still has the cookie")
    func signOut() async throws {
        let console = try ConsoleStage()
        try await console.signIn("just-a-guest")
        let answer = try await console.send("DELETE", "api/session")
        #expect(answer.status == 200 && answer[header: "Set-Cookie"]?.contains("Max-Age=0") == true)
        #expect(try await console.send("GET", "api/apps").status == 401)
    }

    @Test("a session that was signed out on another node is refused, and one that was not is let in")
    func signedOutElsewhere() async throws {
        let (console, other) = (try ConsoleStage(), try ConsoleStage())
        let now = console.stage.clock.wallSeconds
        let api = try #require(console.stage.console)
        try await console.signIn("just-a-guest")
        try await other.signIn("the-boss-of-all")
        #expect(api.signedOut(now: now).isEmpty)
        // The cookie of one session is known to both nodes.
        let there = try #require(other.stage.console)
        #expect(try await other.send("DELETE", "api/session").status == 200)
        let ended = there.signedOut(now: now)
        #expect(ended.count == 1 && ended.values.first == now + 12 * 3600 && ended.keys.first?.hasPrefix("operator.") == true)
        api.noteSignedOut(Array(ended.keys) + ["", "viewer.1", "viewer.x.y", "king.9.z"], now: now)
        #expect(api.signedOut(now: now) == ended)
        #expect(try await console.send("GET", "api/apps").status == 200, "another session")
        let cookie = try #require(other.cookie)
        console.change { _ in cookie }
        #expect(try await console.send("GET", "api/apps").status == 401)
        console.stage.clock.advance(seconds: 13 * 3600)
        #expect(api.signedOut(now: console.stage.clock.wallSeconds).isEmpty, "an expired session needs no memory")
    }

    @Test("five tries a minute and address, right ones included")
    func tries() async throws {
        let console = try ConsoleStage()
        for number in 1...5 { #expect(try await console.signIn("wrong-\(number)-wrong").status == 401) }
        let answer = try await console.signIn("the-boss-of-all")
        #expect(answer.status == 429 && answer[header: "Retry-After"] == "60" && answer[header: "Set-Cookie"] == nil)
        #expect(try await console.signIn("the-boss-of-all", from: "192.0.2.2").status == 200, "another address")
        console.stage.clock.advance(seconds: 61)
        #expect(try await console.signIn("the-boss-of-all").status == 200)
    }

    @Test("a bounded number of passwords waits for its check")
    func waiting() async throws {
        let console = try ConsoleStage()
        let pending = (0..<20).map { number in
            console.stage.start(
                "POST", "//console/api/session", "{\"password\": \"wrong-wrong\"}", headers: ["x-tandem-console": "1"], sign: false,
                from: "198.51.100.\(number)")
        }
        #expect(pending.contains { $0.response?.status == 503 }, "refused at once")
        #expect(await eventually { pending.allSatisfy { $0.response != nil } })
        #expect(pending.filter { $0.response?.status == 401 }.count >= ConsoleDoor.waitingMax)
    }

    @Test("the link of the start opens it once")
    func ticket() async throws {
        let ticket = ConsoleAccess.newTicket()
        let console = try ConsoleStage(ConsoleAccess(operatorPassword: nil, viewerPassword: nil, ticket: ticket, isTLS: false))
        #expect(try await console.send("POST", "api/session", "{\"ticket\": \"\(ticket)x\"}").status == 401)
        #expect(try await console.send("POST", "api/session", "{\"password\": \"the-boss-of-all\"}").status == 401)
        let first = try await console.send("POST", "api/session", "{\"ticket\": \"\(ticket)\"}")
        #expect(first.status == 200 && first.json["role"] == "operator")
        #expect(try await console.send("POST", "api/session", "{\"ticket\": \"\(ticket)\"}").status == 401)
        let access = ConsoleAccess(operatorPassword: ConsoleStage.boss, viewerPassword: nil, ticket: ticket, isTLS: false)
        #expect(!"\(access)".contains(ticket) && !String(reflecting: access).contains(ConsoleStage.boss.text))
    }
}
