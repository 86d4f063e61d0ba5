import Foundation
import HubTesting
import Synchronization
import Testing

@testable import HubHTTPClient

private typealias Outcome = Result<HTTPAnswer, HTTPClientError>

extension CurlMulti {
    fileprivate func answer(_ call: HTTPCall) async -> Outcome {
        await withCheckedContinuation { continuation in
            submit(call) { continuation.resume(returning: $0) }
        }
    }
}

extension Result where Success == HTTPAnswer, Failure == HTTPClientError {
    fileprivate var error: HTTPClientError? { if case .failure(let error) = self { error } else { nil } }
}

private func client(_ change: (inout CurlOptions) -> Void = { _ in }) throws -> CurlMulti {
    var options = CurlOptions(name: "test")
    change(&options)
    return try CurlMulti(options)
}

@Suite("CurlMulti", .timeLimit(.minutes(10 * SlowBuild.factor)))
struct CurlMultiTests {
    @Test("a call arrives as it was written, and its answer comes back")
    func roundTrip() async throws {
        let server = try LocalHTTPServer { _ in
            .answer(429, headers: [("Retry-After", " 17 "), ("X-Other", "no")], body: "slow down 🐢")
        }
        defer { server.stop() }
        let multi = try client()
        let call = HTTPCall(
            method: "POST", url: server.url + "/a?b=c", headers: [("content-type", "application/json"), ("x-empty", ""), ("x-a", "1")],
            body: Array("{\"a\":1}".utf8))
        let answer = try await multi.answer(call).get()
        #expect(answer.status == 429)
        #expect(answer.version == .http1)
        #expect(answer.headers == ["retry-after": "17"])
        #expect(String(decoding: answer.body, as: UTF8.self) == "slow down 🐢")
        #expect(answer.connectionsOpened == 1)
        let request = try #require(server.requests.first)
        #expect(request.method == "POST")
        #expect(request.path == "/a?b=c")
        #expect(request.text == "{\"a\":1}")
        #expect(request.headers["x-a"] == "1")
        #expect(request.headers["x-empty"] == "")
        #expect(request.headers["content-type"] == "application/json")
        #expect(request.headers["accept"] == nil)
        #expect(request.headers["expect"] == nil)
        multi.shutdown()
    }

    @Test("calls over one handle keep their own paths, whatever came before")
    func paths() async throws {
        let server = try LocalHTTPServer { _ in .answer(200, body: "ok") }
        let other = try LocalHTTPServer { _ in .answer(200, body: "ok") }
        defer {
            server.stop()
            other.stop()
        }
        let multi = try client()
        let paths = ["/3/device/aa", "/3/device/bb?c=d", "/a/../b", "/c#fragment", "/3/device/cc", "/", "/d%20e", "/x?y=http://z/#w"]
        for path in paths {
            #expect(try await multi.answer(HTTPCall(method: "POST", url: server.url + path, body: [0x61])).get().status == 200)
        }
        // The same handle, another host, and back.
        #expect(try await multi.answer(HTTPCall(method: "POST", url: other.url + "/elsewhere", body: [0x61])).get().status == 200)
        #expect(try await multi.answer(HTTPCall(method: "POST", url: server.url + "/back", body: [0x61])).get().status == 200)
        #expect(
            server.requests.map(\.path)
                == ["/3/device/aa", "/3/device/bb?c=d", "/b", "/c", "/3/device/cc", "/", "/d%20e", "/x?y=http://z/", "/back"])
        #expect(other.requests.map(\.path) == ["/elsewhere"])
        #expect(Set(server.requests.map { $0.headers["host"] ?? "" }).count == 1)
        multi.shutdown()
    }

    @Test("methods and empty bodies", arguments: ["GET", "DELETE", "PUT", "POST", "HEAD"])
    func methods(method: String) async throws {
        let server = try LocalHTTPServer { request in .answer(200, body: request.method == "HEAD" ? "" : "ok") }
        defer { server.stop() }
        let multi = try client()
        let answer = try await multi.answer(HTTPCall(method: method, url: server.url + "/")).get()
        #expect(answer.status == 200)
        #expect(server.requests.first?.method == method)
        #expect(server.requests.first?.body == [])
        #expect(server.requests.first?.headers["content-type"] == nil)
    }

    @Test("nothing of a call is left in the next one on the same handle")
    func handlesAreUsedAgain() async throws {
        let server = try LocalHTTPServer { request in
            .answer(request.method == "POST" ? 200 : 404, headers: [("retry-after", request.path)])
        }
        defer { server.stop() }
        let multi = try client()
        let long = String(repeating: "long", count: 5000)
        let calls: [(method: String, headers: [(name: String, value: String)], body: String)] = [
            ("POST", [("x-a", long), ("content-type", "text/plain")], long), ("POST", [("x-b", "2")], "short"), ("GET", [], ""),
            ("POST", [], ""), ("PUT", (0..<40).map { ("x-\($0)", "\($0)") }, "put"), ("POST", [("Accept", "a/b")], long),
        ]
        for (number, call) in calls.enumerated() {
            let answer = try await multi.answer(
                HTTPCall(method: call.method, url: server.url + "/\(number)", headers: call.headers, body: Array(call.body.utf8))
            ).get()
            #expect(answer.headers == ["retry-after": "/\(number)"])
        }
        let requests = server.requests
        #expect(requests.map(\.method) == calls.map(\.method))
        #expect(requests.map(\.text) == calls.map(\.body))
        for (request, call) in zip(requests, calls) {
            let own = request.headers.filter { $0.key.hasPrefix("x-") || $0.key == "content-type" || $0.key == "accept" }
            #expect(own == Dictionary(call.headers.map { ($0.name.lowercased(), $0.value) }, uniquingKeysWith: { first, _ in first }))
        }
        multi.shutdown()
    }

    @Test("a call that does not wait for multiplexing is not held up by a silent answer from the same host")
    func doesNotWait() async throws {
        let server = try LocalHTTPServer { $0.path == "/silent" ? .silence : .answer(200) }
        defer { server.stop() }
        let multi = try client {
            $0.waitsForMultiplexing = false
            $0.connectionsPerHostMax = 0
            $0.totalTimeout = .seconds(100)
        }
        multi.submit(HTTPCall(method: "POST", url: server.url + "/silent")) { _ in }
        #expect(await eventually { server.requests.count == 1 })
        #expect(try await multi.answer(HTTPCall(method: "POST", url: server.url + "/other")).get().status == 200)
        multi.shutdown()
    }

    @Test("calls reuse the connection, and a longer body than allowed is cut without ending it")
    func reuseAndCap() async throws {
        let server = try LocalHTTPServer { _ in .answer(200, body: String(repeating: "x", count: 5000)) }
        defer { server.stop() }
        let multi = try client { $0.answerBodyBytesMax = 100 }
        for _ in 0..<3 {
            let answer = try await multi.answer(HTTPCall(method: "POST", url: server.url)).get()
            #expect(answer.body.count == 100)
            #expect(answer.bodyTruncated)
        }
        #expect(server.connections == 1)
        #expect(multi.counters.connectionsOpened == 1)
        #expect(multi.counters.answered == 3)
    }

    @Test("nobody listening: not sent, and the error names no path")
    func refused() async throws {
        let server = try LocalHTTPServer { _ in .close }
        let url = server.url
        server.stop()
        let multi = try client()
        let error = try #require(await multi.answer(HTTPCall(method: "POST", url: url + "/3/device/SECRET")).error)
        // The listener's last moments may still take the connection; a refused one is what is asked about.
        #expect(
            error.reason == .transport(.couldNotConnect) || error.reason == .transport(.gotNothing)
                || error.reason == .transport(.receiveError))
        #expect((error.reason == .transport(.couldNotConnect)) == (error.delivery == .notSent))
        #expect(!error.description.contains("SECRET"))
    }

    @Test("a connection closed without an answer leaves the outcome open")
    func closed() async throws {
        let server = try LocalHTTPServer { _ in .close }
        defer { server.stop() }
        let multi = try client()
        let error = try #require(await multi.answer(HTTPCall(method: "POST", url: server.url)).error)
        #expect(error.reason == .transport(.gotNothing))
        #expect(error.delivery == .outcomeUnknown)
    }

    @Test("no answer in time leaves the outcome open, and a renewed client works again")
    func timesOut() async throws {
        let server = try LocalHTTPServer { $0.path == "/silent" ? .silence : .answer(200) }
        defer { server.stop() }
        let multi = try client {
            $0.totalTimeout = .milliseconds(100)
            $0.timeoutsBeforeRenewal = 2
        }
        for _ in 0..<2 {
            let error = try #require(await multi.answer(HTTPCall(method: "POST", url: server.url + "/silent")).error)
            #expect(error.reason == .transport(.operationTimedOut))
            #expect(error.delivery == .outcomeUnknown)
        }
        #expect(await eventually { multi.counters.renewals == 1 })
        #expect(try await multi.answer(HTTPCall(method: "POST", url: server.url + "/")).get().status == 200)
    }

    @Test("no more calls inside than the window allows, and the first goes alone when priming")
    func window() async throws {
        let inside = Mutex((now: 0, peak: 0, first: true))
        let alone = Mutex(true)
        let server = try LocalHTTPServer { _ in
            let (count, first) = inside.withLock { inside in
                inside.now += 1
                inside.peak = max(inside.peak, inside.now)
                defer { inside.first = false }
                return (inside.now, inside.first)
            }
            if first {
                // Long enough that a second call would be here if it had been let through.
                let until = ContinuousClock.now + .milliseconds(100)
                while ContinuousClock.now < until { if inside.withLock({ $0.now }) > 1 { alone.withLock { $0 = false } } }
            }
            _ = count
            inside.withLock { $0.now -= 1 }
            return .answer(200)
        }
        defer { server.stop() }
        let multi = try client {
            $0.inFlightMax = 3
            $0.inFlightMaxHTTP1 = 3
            $0.connectionsPerHostMax = 8
            $0.primesConnections = true
        }
        let url = server.url
        await withTaskGroup { group in
            for _ in 0..<40 { group.addTask { #expect(await multi.answer(HTTPCall(method: "POST", url: url)).error == nil) } }
        }
        #expect(alone.withLock { $0 })
        #expect(inside.withLock { $0.peak } <= 3)
        #expect(multi.counters.inFlightPeak == 3)
        #expect(multi.counters.inFlight == 0)
    }

    @Test("a full queue and a long wait have names of their own")
    func bounds() async throws {
        let server = try LocalHTTPServer { _ in .silence }
        defer { server.stop() }
        let multi = try client {
            $0.inFlightMax = 1
            $0.queueMax = 2
            $0.queueWaitMax = .milliseconds(200)
            // The first call has to stay inside for as long as this test may be kept waiting.
            $0.totalTimeout = .seconds(600)
        }
        let ends = Mutex<[HTTPClientError.Reason]>([])
        let call = HTTPCall(method: "POST", url: server.url)
        multi.submit(call) { _ in }
        #expect(await eventually { multi.counters.inFlight == 1 })
        for _ in 0..<3 { multi.submit(call) { outcome in ends.withLock { if let error = outcome.error { $0.append(error.reason) } } } }
        #expect(await eventually { ends.withLock { $0.count } == 3 })
        // The refusal is told on another thread, in no order with the rest.
        #expect(ends.withLock { $0.filter { $0 == .queueFull }.count } == 1)
        #expect(ends.withLock { $0.filter { $0 == .waitedTooLong }.count } == 2)
        #expect(multi.counters.refused == 1)
    }

    @Test("a call that is not to go any more when its turn comes is never sent, and the connection goes on")
    func withdrawn() async throws {
        let server = try LocalHTTPServer { _ in .answer(200) }
        defer { server.stop() }
        let multi = try client { $0.inFlightMax = 1 }
        #expect(try await multi.answer(HTTPCall(method: "POST", url: server.url + "/first")).get().status == 200)
        let asked = Mutex(0)
        let window = multi.counters.window
        let call = HTTPCall(
            method: "POST", url: server.url + "/second",
            departs: {
                asked.withLock { $0 += 1 }
                return false
            })
        let error = try #require(await multi.answer(call).error)
        #expect(error.reason == .withdrawn && error.delivery == .notSent && asked.withLock { $0 } == 1)
        #expect(try await multi.answer(HTTPCall(method: "POST", url: server.url + "/third", departs: { true })).get().status == 200)
        #expect(server.requests.map(\.path) == ["/first", "/third"] && multi.counters.window == window)
        multi.shutdown()
    }

    @Test("shutting down fails what is outstanding, each by what the peer may have seen, and is repeatable")
    func shutsDown() async throws {
        let server = try LocalHTTPServer { _ in .silence }
        defer { server.stop() }
        // The first call is silent for the whole test.
        let multi = try client { ($0.inFlightMax, $0.totalTimeout) = (1, .seconds(600)) }
        let ends = Mutex<[Int: HTTPClientError.Delivery]>([:])
        let call = HTTPCall(method: "POST", url: server.url)
        for number in 0..<3 { multi.submit(call) { outcome in ends.withLock { $0[number] = outcome.error?.delivery } } }
        #expect(await eventually { server.requests.count == 1 })
        multi.shutdown()
        #expect(ends.withLock { $0 } == [0: .outcomeUnknown, 1: .notSent, 2: .notSent])
        multi.shutdown()
        let late = try #require(await multi.answer(call).error)
        #expect(late.reason == .shutDown)
        #expect(late.delivery == .notSent)
    }

    @Test("the grace of a shutdown lets accepted calls end")
    func grace() async throws {
        let server = try LocalHTTPServer { _ in .answer(200) }
        defer { server.stop() }
        let multi = try client { $0.inFlightMax = 2 }
        let answered = Mutex(0)
        for _ in 0..<20 {
            multi.submit(HTTPCall(method: "POST", url: server.url)) { outcome in
                if outcome.error == nil { answered.withLock { $0 += 1 } }
            }
        }
        multi.shutdown(grace: .seconds(10))
        #expect(answered.withLock { $0 } == 20)
    }

    @Test("a completion may submit, shut down and release the client")
    func fromWithin() async throws {
        let server = try LocalHTTPServer { _ in .answer(200) }
        defer { server.stop() }
        let call = HTTPCall(method: "POST", url: server.url)
        let ended: [Bool] = await withCheckedContinuation { continuation in
            guard let multi = try? client() else { return continuation.resume(returning: []) }
            multi.submit(call) { first in
                multi.submit(call) { second in
                    multi.shutdown()
                    continuation.resume(returning: [first.error == nil, second.error == nil])
                }
            }
        }
        #expect(ended == [true, true])
    }

    @Test("an invalid call is refused off the caller's thread")
    func invalid() async throws {
        let multi = try client()
        let error = try #require(await multi.answer(HTTPCall(method: "POST", url: "http://example.com/")).error)
        #expect(error.reason == .invalidCall)
        #expect(error.delivery == .notSent)
    }

    @Test("many threads, one client")
    func manyThreads() async throws {
        let server = try LocalHTTPServer { .answer(200, body: $0.text) }
        defer { server.stop() }
        let multi = try client { $0.connectionsPerHostMax = 4 }
        let url = server.url
        await withTaskGroup { group in
            for number in 0..<300 {
                group.addTask {
                    let outcome = await multi.answer(HTTPCall(method: "POST", url: url, body: Array("\(number)".utf8)))
                    #expect((try? outcome.get().body) == Array("\(number)".utf8))
                }
            }
        }
        #expect(multi.counters.submitted == 300)
        #expect(server.connections <= 4)
    }
}
