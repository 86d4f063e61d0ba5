import Foundation
import Testing

@testable import LoadTesting

@Suite("Tables and files of reports")
struct ReportTableTests {
    @Test("a run's table")
    func table() {
        #expect(
            ReportTable.text(ReportSamples.report()) == """
                fanout: ws://127.0.0.1:6001

                fanout
                  deliveries                    1,234,567
                  server CPU per delivery, us       0.400
                  lost                                  0

                  latency                 count     50 %     90 %   99 %    99.9 %     max
                  publish to delivery   100,000   400 µs   800 µs   2 ms   4.80 ms   24 ms

                """)
    }

    @Test("a comparison's table has a column for each server, targets and warnings")
    func comparison() {
        let text = ReportTable.text(ReportSamples.comparison())
        for line in [
            "                                                tandem               floor-join                 nchan",
            "  server CPU per delivery, us   0.426 (0.410 to 0.443)   0.395 (0.380 to 0.410)   4.47 (4.30 to 4.64)",
            "  CPU per delivery           1.08   <= 1.15       ok",
            "  unknown            not measured    >= 0.5",
            "warning: other work took 12 % of the machine",
        ] {
            #expect(text.contains(line), "\(line) is not in\n\(text)")
        }
    }

    @Test("a terminal is not told anything by what a server said")
    func control() {
        var report = ReportSamples.report(target: "ws://x/\u{1b}]0;y\u{7}")
        report.warnings = ["a\u{9b}31mb"]
        let text = ReportTable.text(report)
        #expect(!text.unicodeScalars.contains { $0.properties.generalCategory == .control && $0 != "\n" })
    }

    @Test("files are written alike every time, and read back as one report, a list or a set")
    func files() throws {
        let report = ReportSamples.report()
        let set = ReportSamples.comparison()
        let file = try ReportFile.json(report)
        let text = String(decoding: file, as: UTF8.self)
        #expect(try ReportFile.json(report) == file)
        #expect(text.hasPrefix("{\n  \"dialect\" : \"pusher\",\n  \"figures\" : [\n") && text.hasSuffix("}\n"))
        #expect(text.contains("\"target\" : \"ws://127.0.0.1:6001\""))
        #expect(try ReportFile.read(file, path: "a.json", title: "one") == ReportSet(title: "one", reports: [report]))
        #expect(try ReportFile.read(ReportFile.json(set), path: "a.json", title: "one") == set)
        let list = try JSONEncoder().encode([report, report])
        #expect(try ReportFile.read(list, path: "a.json", title: "two") == ReportSet(title: "two", reports: [report, report]))
    }

    @Test("a file of something else is named")
    func otherFile() {
        #expect {
            try ReportFile.read(Data("{}".utf8), path: "x.json", title: "")
        } throws: {
            "\($0)" == "x.json is not a load test's report: give the JSON file that a run of tandem-loadtest wrote"
        }
    }

    @Test("numbers are printed with three digits that count")
    func numbers() {
        #expect(
            [0, 0.0412, 1.234, 12.34, 123.4, 1_234.5, -1_234_567].map(NumberText.plain) == [
                "0", "0.041", "1.23", "12.3", "123", "1,235", "-1,234,567",
            ])
        #expect(
            [0, 999, 1_500, 1_000_000, 61_500_000].map { NumberText.duration(microseconds: $0) } == [
                "0 µs", "999 µs", "1.50 ms", "1 s", "61.5 s",
            ])
        #expect([0, 250, 0.5, 10_000, 1_500_000].map(NumberText.short) == ["0", "250", "0.5", "10k", "1.5M"])
    }

    @Test("median and range")
    func spread() {
        #expect(Spread([]) == nil)
        #expect(Spread([3])?.text() == "3")
        #expect(Spread([3, 1, 2])?.text() == "2 (1 to 3)")
        #expect(Spread([1, 2, .nan, 3, 4])?.median == 2.5)
    }

    @Test("servers are told apart by URL where all speak the same dialect")
    func groups() {
        let same = ReportSet(title: "", reports: [ReportSamples.report(target: "ws://a"), ReportSamples.report(target: "ws://b")])
        #expect(same.groups.map { $0.servers.map(\.name) } == [["ws://a", "ws://b"]])
        #expect(ReportSamples.comparison().groups.map { $0.servers.map(\.rounds.count) } == [[3, 3, 3], [3, 3, 3]])
    }

    @Test("a bound is kept by the median of the ratios of each round")
    func outcome() {
        let set = ReportSamples.comparison()
        #expect(set.targets.map { set.outcome(of: $0)?.isMet } == [true, false, nil])
        var unbound = set.targets[0]
        unbound.atMost = nil
        #expect(set.outcome(of: unbound)?.ratio.text() == "1.08" && set.outcome(of: unbound)?.isMet == nil)
    }
}
