import HubCore
import Testing

@testable import HubServer

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
