import HubCore
import Synchronization
import Testing

@testable import HubAPI

@Suite("The text of the metrics")
struct MetricsTextTests {
    @Test("a family is its help, its type and a line for each sample")
    func families() {
        var text = MetricsText()
        text.counter("a_total", "What a counts.", [.init(3, [("x", "1"), ("y", "2")]), .init(0, [("x", "2"), ("y", "")])])
        text.gauge("b", "What b is.", 7)
        text.gauge("none", "Nothing yet.", [])
        #expect(
            text.text == """
                # HELP a_total What a counts.
                # TYPE a_total counter
                a_total{x="1",y="2"} 3
                a_total{x="2",y=""} 0
                # HELP b What b is.
                # TYPE b gauge
                b 7
                # HELP none Nothing yet.
                # TYPE none gauge

                """)
    }

    @Test("help and labels are escaped, each in its own way")
    func escaping() {
        var text = MetricsText()
        text.gauge("g", "a \"quote\", a \\ and\na line", [.init(1, [("l", "a \"quote\", a \\ and\na line, ä")])])
        #expect(text.text.contains(#"# HELP g a "quote", a \\ and\na line"#))
        #expect(text.text.contains(#"g{l="a \"quote\", a \\ and\na line, ä"} 1"#))
        #expect(text.text.split(separator: "\n").count == 3)
    }

    @Test("numbers are whole where they can be, and never lose anything")
    func numbers() {
        for (number, written) in [
            (0, "0"), (1, "1"), (-2, "-2"), (0.5, "0.5"), (0.00025, "0.00025"), (1e14, "100000000000000"), (1e18, "1e+18"),
            (.infinity, "+Inf"), (-.infinity, "-Inf"), (.nan, "NaN"), (1_234_567.891, "1234567.891"),
        ] as [(Double, String)] {
            #expect(MetricsText.number(number) == written)
            if number.isFinite { #expect(Double(written) == number) }
        }
    }

    @Test("a histogram's buckets add up to its count, in seconds")
    func histograms() {
        var histogram = Histogram()
        for value in [100_000, 100_001, 1_000_000_000, 99_000_000_000] as [UInt64] { histogram.note(nanoseconds: value) }
        var text = MetricsText()
        text.histogram("h_seconds", "How long.", [([("way", "w")], histogram)])
        let lines = text.text.split(separator: "\n").map(String.init)
        #expect(lines.count == 2 + Histogram.bounds.count + 1 + 2)
        #expect(lines[1] == "# TYPE h_seconds histogram")
        #expect(lines[2] == #"h_seconds_bucket{way="w",le="0.0001"} 1"# && lines[3] == #"h_seconds_bucket{way="w",le="0.00025"} 2"#)
        #expect(lines.contains(#"h_seconds_bucket{way="w",le="0.5"} 2"#) && lines.contains(#"h_seconds_bucket{way="w",le="1"} 3"#))
        #expect(
            lines.suffix(3) == [
                #"h_seconds_bucket{way="w",le="+Inf"} 4"#, #"h_seconds_sum{way="w"} 100.000200001"#, #"h_seconds_count{way="w"} 4"#,
            ])
    }
}

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
        for answer in answers[..<3] { #expect(resource.respond(to: request()) { answer.answer($0) } == nil) }
        #expect(readings.count == 1)
        readings.end(0, "first")
        #expect(answers[..<3].allSatisfy { $0.response?.text == "first" && $0.response?.status == 200 })
        #expect(answers[0].response?.contentType == "text/plain; version=0.0.4; charset=utf-8")
        #expect(resource.respond(to: request("HEAD")) { answers[3].answer($0) } == nil)
        #expect(readings.count == 2 && answers[3].response == nil)
        readings.end(1, "second")
        #expect(answers[3].response?.text == "second")
    }

    @Test("no more wait than may, and they do not keep others out for good")
    func bounded() {
        let readings = Readings()
        let resource = MetricsResource(access: .everybody, read: readings.read)
        for _ in 0..<MetricsResource.waitingMax { #expect(resource.respond(to: request()) { _ in } == nil) }
        #expect(resource.respond(to: request()) { _ in }?.status == 503)
        readings.end(0, "")
        #expect(resource.respond(to: request()) { _ in } == nil)
    }

    @Test("who may read them is asked before anything is read")
    func access() throws {
        let readings = Readings()
        let closed = try #require(MetricsResource(access: .nobody, read: readings.read).respond(to: request()) { _ in })
        #expect(closed.status == 403 && closed.error.contains("metrics.token"))
        let guarded = MetricsResource(access: .token("0123456789abcdef"), read: readings.read)
        for wrong in [nil, "Bearer", "Bearer 0123456789abcde", "Bearer 0123456789abcdeF", "Basic 0123456789abcdef", "0123456789abcdef"] {
            let answer = try #require(guarded.respond(to: request(authorization: wrong)) { _ in }, "\(wrong ?? "nothing")")
            #expect(answer.status == 401 && answer[header: "WWW-Authenticate"] == "Bearer" && !answer.text.contains("0123"))
        }
        #expect(readings.count == 0)
        #expect(guarded.respond(to: request(authorization: "bearer  0123456789abcdef")) { _ in } == nil && readings.count == 1)
    }

    @Test("it is read, not written")
    func methods() throws {
        let resource = MetricsResource(access: .everybody) { _ in }
        for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
            let answer = try #require(resource.respond(to: request(method)) { _ in })
            #expect(answer.status == 405 && answer[header: "Allow"] == "GET, HEAD")
        }
    }
}
