import HubCore
import Synchronization
import Testing

@testable import HubAPI

@Suite("The metrics' route")
struct MetricsResourceTests {
    /// Readings that end when the test says so.
    private final class Readings: Sendable {
        private let state = Mutex<[@Sendable (String) -> Void]>([])
        var count: Int { state.withLock { $0.count } }

        func read(_ done: @escaping @Sendable (String) -> Void) { state.withLock { $0.append(done) } }
        func end(_ index: Int, _ text: String) { state.withLock { $0[index] }(text) }
    }

    private func request(_ method: String = "GET", authorization: String? = nil) -> HTTPRequest {
        HTTPRequest(method: method, path: "/metrics", query: [], headers: authorization.map { ["authorization": $0] } ?? [:], body: [])
    }

    @Test("who asks while a reading is under way gets the same one, and who asks later a new one")
    func shared() {
        let readings = Readings()
        let resource = MetricsResource(access: .everybody, read: readings.read)
        let answers = (0..<4).map { _ in PendingAnswer() }
        for answer in answers[..<3] { #expect(resource.respond(to: request(), later: LateAnswer { answer.answer($0) }) == nil) }
        #expect(readings.count == 1)
        readings.end(0, "first")
        #expect(answers[..<3].allSatisfy { $0.response?.text == "first" && $0.response?.status == 200 })
        #expect(answers[0].response?.contentType == "text/plain; version=0.0.4; charset=utf-8")
        #expect(resource.respond(to: request("HEAD"), later: LateAnswer { answers[3].answer($0) }) == nil)
        #expect(readings.count == 2 && answers[3].response == nil)
        readings.end(1, "second")
        #expect(answers[3].response?.text == "second")
    }

    @Test("no more wait than may, and they do not keep others out for good")
    func bounded() {
        let readings = Readings()
        let resource = MetricsResource(access: .everybody, read: readings.read)
        for _ in 0..<MetricsResource.waitingMax { #expect(resource.respond(to: request(), later: LateAnswer { _ in }) == nil) }
        #expect(resource.respond(to: request(), later: LateAnswer { _ in })?.status == 503)
        readings.end(0, "")
        #expect(resource.respond(to: request(), later: LateAnswer { _ in }) == nil)
    }

    @Test("who may read them is asked before anything is read")
    func access() throws {
        let readings = Readings()
        let closed = try #require(MetricsResource(access: .nobody, read: readings.read).respond(to: request(), later: LateAnswer { _ in }))
        #expect(closed.status == 403 && closed.error.contains("metrics.token"))
        let guarded = MetricsResource(access: .token("0123456789abcdef"), read: readings.read)
        for wrong in [nil, "Bearer", "Bearer 0123456789abcde", "Bearer 0123456789abcdeF", "Basic 0123456789abcdef", "0123456789abcdef"] {
            let answer = try #require(
                guarded.respond(to: request(authorization: wrong), later: LateAnswer { _ in }), "\(wrong ?? "nothing")")
            #expect(answer.status == 401 && answer[header: "WWW-Authenticate"] == "Bearer" && !answer.text.contains("0123"))
        }
        #expect(readings.count == 0)
        #expect(
            guarded.respond(to: request(authorization: "bearer  0123456789abcdef"), later: LateAnswer { _ in }) == nil
                && readings.count == 1)
    }

    @Test("it is read, not written")
    func methods() throws {
        let resource = MetricsResource(access: .everybody) { _ in }
        for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
            let answer = try #require(resource.respond(to: request(method), later: LateAnswer { _ in }))
            #expect(answer.status == 405 && answer[header: "Allow"] == "GET, HEAD")
        }
    }
}
