import Foundation
import Testing

@testable import LoadTesting

@Suite("The HTML page of a report")
struct ReportPageTests {
    @Test("a run's page holds its figures, plots, settings and machine, in this order")
    func structure() throws {
        let outline = try Outline(ReportPage.html(ReportSamples.report()))
        #expect(try outline.texts(of: "h1") == ["fanout: ws://127.0.0.1:6001"])
        #expect(try outline.texts(of: "h2") == ["Settings", "Machine"])
        #expect(try outline.texts(of: "h3") == ["publish to delivery: percentiles, logarithmic", "deliveries, 1/s"])
        #expect(try outline.texts(of: "@aria-label") == ["publish to delivery: percentiles", "deliveries"])
        #expect(
            try outline.rows().prefix(4) == [
                ["Figure", "Value"], ["deliveries", "1,234,567"], ["server CPU per delivery", "0.400 µs"], ["lost", "0"],
            ])
        #expect(try outline.rows().contains(["pusher", "100,000", "400 µs", "800 µs", "2 ms", "4.80 ms", "24 ms"]))
        #expect(try outline.rows().contains(["cores", "4"]))
    }

    @Test("the percentile plot counts nines across and decades down, and says the units")
    func axes() throws {
        let outline = try Outline(ReportPage.html(ReportSamples.report()))
        let labels = try outline.texts(of: "text")
        for label in ["50 %", "90 %", "99 %", "99.9 %", "99.99 %", "max", "100 µs", "1 ms", "10 ms", "8 s", "100k"] {
            #expect(labels.contains(label), "\(label) is not among \(labels)")
        }
    }

    @Test("a comparison has warnings first, then targets with verdicts, then every server's rounds")
    func comparison() throws {
        let outline = try Outline(ReportPage.html(ReportSamples.comparison()))
        #expect(
            try outline.texts(of: "h2") == [
                "Targets", "fan-out, 1 outstanding", "fan-out, 16 outstanding", "Settings", "Machine",
            ])
        #expect(try outline.texts(of: "li").first == "other work took 12 % of the machine")
        #expect(try outline.rows().contains(["CPU per delivery", "1.08", "<= 1.15", "met"]))
        #expect(try outline.rows().contains { $0.first == "a sixth of nchan" && $0.last == "missed" })
        #expect(try outline.rows().contains(["unknown", "not measured", ">= 0.5", ""]))
        #expect(try outline.texts(of: "td").contains("0.426 (0.410 to 0.443) µs"))
        #expect(try outline.rows().contains { $0.first == "nchan" && $0.contains("4.47 ms4.30 ms to 4.64 ms") })
        #expect(try outline.texts(of: "p").contains("lost: 0 for all"))
        // Three servers in one plot, with a band each and a key.
        #expect(try outline.texts(of: "li").filter { $0 == "floor-join" }.count == 4)
        #expect(try outline.texts(of: "polygon").count == 6)
        #expect(try outline.texts(of: "polyline").count == 12)
    }

    @Test("whatever comes from outside is text, wherever it stands")
    func escapes() throws {
        let evil = "</title><script>alert('x' & \"y\")</script>\u{0}\u{1b}"
        var report = ReportSamples.report(scenario: evil, target: evil, dialect: evil)
        report.started = evil
        report.settings = [.init(evil, evil)]
        report.machine = [.init(evil, evil)]
        report.figures = [.init(evil, 1, evil)]
        report.latencies = [ReportSamples.latency(evil, scale: 3), ReportSamples.latency("\"\u{301} onload=\"\u{301}alert(1)", scale: 3)]
        report.timelines = [.init(name: evil, unit: evil, secondsPerPoint: 1, points: [1, 2])]
        report.warnings = [evil]
        let other = ReportSamples.report(scenario: evil, dialect: "\"\u{301} onload=\"\u{301}alert(1)")
        let target = ReportSet.Target(name: evil, scenario: evil, figure: evil, server: evil, base: evil, atMost: 1)
        let html = try ReportPage.html(ReportSet(title: evil, reports: [report, report, other], targets: [target], warnings: [evil]))
        let outline = try Outline(html)
        let seen = "</title><script>alert('x' & \"y\")</script>\u{fffd}\u{fffd}"
        #expect(!html.contains("<script") && !html.contains("\u{1b}") && !html.contains("\u{0}"))
        #expect(try !outline.attributes().contains { $0.hasPrefix("on") })
        #expect(try outline.texts(of: "title").first == seen)
        #expect(try outline.texts(of: "h1") == [seen])
        #expect(try outline.rows().contains([seen, seen]))
        #expect(try outline.texts(of: "li").contains(seen))
    }

    @Test("the page loads nothing and runs nothing")
    func selfContained() throws {
        let html = try ReportPage.html(ReportSamples.comparison())
        let outline = try Outline(html)
        let names = Set(try outline.attributes())
        #expect(names.isDisjoint(with: ["src", "href", "xlink:href", "style", "srcset", "data", "action"]))
        #expect(!html.contains("url(") && !html.contains("@import"))
        #expect(html.contains("content=\"default-src 'none'; style-src 'unsafe-inline'\""))
        #expect(html.contains("color-scheme: light dark"))
    }

    @Test("empty and odd reports still make a whole page", arguments: [0, 1, 2, 3])
    func odd(_ which: Int) throws {
        var report = LoadReport(scenario: "s", target: "t", dialect: "d", started: "", seconds: 0)
        switch which {
        case 1:
            report.latencies = [.init(name: "none", count: 0, minimum: 0, mean: 0, maximum: 0, percentiles: [])]
            report.timelines = [.init(name: "none", unit: "", secondsPerPoint: 1, points: [])]
        case 2:
            report.latencies = [
                .init(name: "one", count: 1, minimum: 0, mean: 0, maximum: 0, percentiles: [.init(percent: 100, microseconds: 0)])
            ]
            report.timelines = [.init(name: "zero", unit: "1/s", secondsPerPoint: 0, points: [0])]
            report.figures = [.init("negative", -1_234.5, "%"), .init("none", .nan)]
        case 3:
            report.timelines = [.init(name: "broken", unit: "1/s", secondsPerPoint: 0.5, points: [.nan, .infinity, 3])]
            report.figures = [.init("infinite", .infinity, "us")]
        default: break
        }
        let html = try ReportPage.html(report)
        _ = try Outline(html)
        #expect(!html.contains("nan") && !html.contains("inf\""))
    }

    @Test("percentiles' labels keep apart, however many values there are", arguments: [0.0, 50, 90, 99, 99.9, 99.99, 99.999, 100])
    func percentilesKeepApart(_ last: Double) {
        let axis = Axis.percentiles(to: last)
        let shares = axis.ticks.map { axis.share($0.value) }
        // The widest, 99.9999 %, takes some 60 of 664 units, and half of it lies on each side.
        #expect(zip(shares.dropFirst(2), shares.dropFirst(3)).allSatisfy { $1 - $0 >= 0.09 })
        #expect(shares[1] - shares[0] >= 0.04 && shares.last == 1)
    }

    @Test("a plot's labels keep apart", arguments: [(1.0, 3.0), (40, 90), (1, 60_000_000), (900, 1_100), (7, 7)])
    func labelsKeepApart(_ bounds: (Double, Double)) {
        let axis = Axis.logarithmic(from: bounds.0, to: bounds.1) { NumberText.duration(microseconds: $0) }
        let shares = axis.ticks.filter { $0.label != nil }.map { axis.share($0.value) }
        #expect(shares.count >= 2)
        #expect(zip(shares, shares.dropFirst()).allSatisfy { $1 - $0 >= 0.05 })
        #expect(axis.share(bounds.0) >= 0 && axis.share(bounds.1) <= 1)
    }
}
