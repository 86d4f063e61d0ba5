import Testing

@testable import HubHTTPClient

@Suite("CurlCode")
struct CurlCodeTests {
    @Test(
        "codes before the first byte mean not sent, all others leave the outcome open",
        arguments: [
            (CurlCode.couldNotResolveHost, true), (.couldNotConnect, true), (.tlsConnectError, true),
            (.tlsPeerFailedVerification, true), (.tlsCAFileUnreadable, true), (.sendError, false), (.receiveError, false),
            (.http2, false), (.http2Stream, false), (.partialFile, false), (.operationTimedOut, false), (.gotNothing, false),
            (CurlCode(rawValue: 9_999), false),
        ])
    func delivery(code: CurlCode, notSent: Bool) {
        #expect(code.meansNotSent == notSent)
    }

    @Test("an unknown code keeps its number")
    func unknown() {
        #expect(CurlCode(rawValue: 9_999).rawValue == 9_999)
        #expect(CurlCode.couldNotConnect.description.lowercased().contains("connect"))
    }
}

@Suite("InFlightWindow")
struct InFlightWindowTests {
    @Test("a priming window lets one call through until one has succeeded")
    func primes() {
        var window = InFlightWindow(primes: true, limitMax: 100)
        #expect(window.limit == 1)
        window.ended(.answered)
        #expect(window.limit == 1)
        window.ended(.proved)
        #expect(window.limit == 100)
        window.ended(.failed)
        #expect(window.limit == 1)
        window.ended(.proved)
        #expect(window.limit == 100)
        window.connectionGone()
        #expect(window.limit == 1)
    }

    @Test("without priming a failure does not close the window")
    func withoutPriming() {
        var window = InFlightWindow(primes: false, limitMax: 8)
        #expect(window.limit == 8)
        window.ended(.failed)
        window.connectionGone()
        #expect(window.limit == 8)
    }

    @Test("pushing back halves the window, a window full of successes widens it by one, within its bounds")
    func throttles() {
        var window = InFlightWindow(primes: false, limitMax: 8)
        for expected in [4, 2, 1, 1] {
            window.ended(.throttled)
            #expect(window.limit == expected)
        }
        for expected in [2, 3, 4, 5, 6, 7, 8, 8] {
            for _ in 1..<window.limit { window.ended(.proved) }
            #expect(window.limit == max(1, expected - 1) || expected == 8)
            window.ended(.proved)
            #expect(window.limit == expected)
        }
        window.bound(limitMax: 2)
        #expect(window.limit == 2)
        window.ended(.proved)
        #expect(window.limit == 2)
        window.bound(limitMax: 8)
        #expect(window.limit == 2)
        window.ended(.proved)
        #expect(window.limit == 3)
    }

    @Test("what was inside at a halving halves nothing again, what came in after it does")
    func halvesOnce() {
        var window = InFlightWindow(primes: false, limitMax: 200)
        for inside in (0..<200).reversed() { window.ended(.throttled, inside: inside) }
        #expect(window.limit == 100)
        window.ended(.throttled, inside: 99)
        #expect(window.limit == 50)
        for inside in (0..<99).reversed() { window.ended(inside % 2 == 0 ? .throttled : .answered, inside: inside) }
        #expect(window.limit == 50)
    }

    @Test("a 429 about one recipient narrows nothing, a 503 does")
    func ofOneRecipient() {
        #expect(InFlightWindow.signal(status: 429, is429OfOne: true) == .answered)
        #expect(InFlightWindow.signal(status: 503, is429OfOne: true) == .throttled)
    }

    @Test("a window for peers that know nothing of each other does not narrow")
    func doesNotNarrow() {
        var window = InFlightWindow(primes: false, limitMax: 8, narrows: false)
        window.ended(.throttled)
        #expect(window.limit == 8)
    }

    @Test(
        "statuses speak about the connection",
        arguments: [
            (200, InFlightWindow.Signal.proved), (204, .proved), (410, .proved), (400, .answered), (403, .answered),
            (404, .answered), (429, .throttled), (503, .throttled), (500, .answered),
        ])
    func signals(status: Int, signal: InFlightWindow.Signal) {
        #expect(InFlightWindow.signal(status: status) == signal)
    }
}

@Suite("HTTPCall")
struct HTTPCallTests {
    @Test(
        "clear text only to this machine",
        arguments: [
            ("https://api.push.apple.com/3/device/aa", true), ("http://127.0.0.1:80/x", true), ("http://127.9.9.9/", true),
            ("http://[::1]:8080/", true), ("http://localhost/", true), ("http://example.com/", false),
            ("http://127.0.0.1.example.com/", false), ("http://127.0.0.1@example.com/", false), ("http://127.example.com/", false),
            ("ftp://127.0.0.1/", false), ("file:///etc/passwd", false), ("nonsense", false), ("", false),
            ("https://a.example\0.evil/", false),
        ])
    func clearText(url: String, allowed: Bool) {
        #expect((HTTPCall(method: "POST", url: url).fault(clearText: .loopback) == nil) == allowed)
    }

    @Test("webhooks may be clear text anywhere, but never another scheme")
    func clearTextAnywhere() {
        #expect(HTTPCall(method: "POST", url: "http://example.com/").fault(clearText: .anywhere) == nil)
        #expect(HTTPCall(method: "POST", url: "ftp://example.com/").fault(clearText: .anywhere) != nil)
    }

    @Test(
        "a header cannot smuggle another one in",
        arguments: [
            ("x-a", "b", true), ("x-a", "", true), ("x-a", "ä 🎯", true), ("x-a", "b\r\nx-c: d", false), ("x-a", "b\nc", false),
            ("x-a", "b\0", false), ("x a", "b", false), ("", "b", false), ("x:a", "b", false),
        ])
    func headers(name: String, value: String, allowed: Bool) {
        let call = HTTPCall(method: "POST", url: "https://example.com/", headers: [(name, value)])
        #expect((call.fault(clearText: .loopback) == nil) == allowed)
    }

    @Test(
        "an address that was found good stands for itself alone",
        arguments: [
            ("https://api.example.com/3/device/aa", true), ("https://api.example.com/", true), ("https://api.example.com.evil/", false),
            ("https://api.example.com:99/", false), ("http://api.example.com/", false), ("https://api.example.com/\0", false),
            ("https://api.example.com/a b", false), ("https://api.example.com", false),
        ])
    func knownOrigins(url: String, isKnown: Bool) {
        let origins = KnownOrigins()
        #expect(HTTPCall(method: "POST", url: "https://api.example.com/x").fault(clearText: .loopback, origins: origins) == nil)
        #expect(origins.contain(url) == isKnown)
        // A user name could make a later URL's host look like part of the path before it.
        origins.learn("https://user@other.example/")
        #expect(!origins.contain("https://user@other.example/"))
    }

    @Test("the fault never quotes the call")
    func faultIsSilent() throws {
        let call = HTTPCall(method: "POST", url: "http://example.com/SECRET", headers: [("x-a", "SECRET\n")])
        let fault = try #require(call.fault(clearText: .loopback))
        #expect(!fault.contains("SECRET"))
    }
}
