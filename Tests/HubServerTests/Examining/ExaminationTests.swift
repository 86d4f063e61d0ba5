import HubConfiguration
import Testing

@testable import HubServer

@Suite("Examination of a machine")
struct ExaminationTests {
    private func configuration(_ text: String = "limits: { max_connections: 1000 }") throws -> Configuration {
        try ConfigurationParser.parse(file: ("tandem.yaml", text))
    }

    private let good: MachineFacts = {
        var facts = MachineFacts()
        (facts.descriptorsMax, facts.backlogMax, facts.memoryBytes) = (524_288, 4096, 8 << 30)
        (facts.storeFolder, facts.diskBytes) = ("./data", 50 << 30)
        return facts
    }()

    @Test("a good machine has good findings alone, each a line without a remedy")
    func nothing() throws {
        let findings = Examination.findings(try configuration(), good)
        #expect(findings.count == 5 && findings.allSatisfy { $0.level == .good && $0.remedy == nil && $0.text.hasPrefix("good: ") })
    }

    @Test("each want is found, with its remedy")
    func wants() throws {
        for (change, level, words) in [
            ({ $0.descriptorsMax = 1063 }, .warning, ["room for 999 of 1000", "LimitNOFILE"]),
            ({ $0.backlogMax = 128 }, .warning, ["128", "somaxconn"]),
            ({ $0.memoryBytes = 300 << 20 }, .warning, ["300 MiB free", "max_connections"]),
            ({ $0.isClockKept = false }, .warning, ["clock", "chrony"]),
            ({ $0.diskBytes = 512 << 20 }, .warning, ["512 MiB free"]),
            ({ $0.diskBytes = 10 << 20 }, .problem, ["10 MiB free", "503"]),
            ({ $0.diskBytes = nil }, .problem, ["the disk of ./data"]),
            ({ $0.canWriteStore = false }, .problem, ["may not write", "chown"]),
        ] as [((inout MachineFacts) -> Void, Finding.Level, [String])] {
            var facts = good
            change(&facts)
            let found = Examination.findings(try configuration(), facts).filter { $0.level != .good }
            #expect(found.count == 1 && found.first?.level == level)
            for word in words { #expect(found.first?.text.contains(word) == true, "\(found.map(\.text)): \(word)") }
        }
    }

    @Test("without a limit ten thousand connections are expected, and TLS takes more memory")
    func defaults() throws {
        var facts = good
        facts.descriptorsMax = 4096
        #expect(Examination.findings(try configuration("log_level: info"), facts)[0].fact.contains("of 10000"))
        facts.memoryBytes = 500 << 20
        let plain = Examination.findings(try configuration("limits: { max_connections: 15000 }"), facts)[2]
        let secure = Examination.findings(
            try configuration("limits: { max_connections: 15000 }\nlisten: { tls: { cert: c, key: k } }"), facts)[2]
        #expect(plain.level == .good && secure.level == .warning)
    }

    @Test("PostgreSQL has no disk here")
    func postgres() throws {
        var facts = good
        (facts.storeFolder, facts.diskBytes) = (nil, nil)
        #expect(Examination.findings(try configuration(), facts).count == 4)
    }

    @Test("the facts of this machine are read")
    func facts() throws {
        let facts = MachineFacts.now(for: try configuration("store: sqlite:/tmp/tandem.db"))
        #expect(facts.descriptorsMax > 0 && facts.backlogMax > 0 && facts.memoryBytes > 0 && (facts.diskBytes ?? 0) > 0)
        #expect(facts.storeFolder == "/tmp")
        for (path, folder) in [("/nowhere/at/all/tandem.db", "/"), ("nowhere/tandem.db", "."), ("tandem.db", "."), ("/t.db", "/")] {
            #expect(MachineFacts.now(for: try configuration("store: sqlite:\(path)")).storeFolder == folder)
        }
        #expect(MachineFacts.number(in: "MemTotal: 7 kB\nMemAvailable:   12 kB", after: "MemAvailable:") == 12)
    }

    @Test("a silent WebSocket that lives until the hub's ping is well, and its end has a remedy")
    func silence() {
        func finding(_ silence: Silence) -> Finding { Examination.silence(silence, pingInterval: .seconds(15)) }
        #expect(finding(.pinged(.seconds(15))).text == "good: public WebSocket: silent for 15 s, until the hub pinged")
        let ended = finding(.ended(.milliseconds(9_960)))
        #expect(ended.level == .problem && ended.fact.contains("after 10 s of silence") && ended.fact.contains("after 15 s"))
        #expect(ended.remedy?.contains("proxy_read_timeout") == true)
        #expect(finding(.unbroken(.seconds(20))).level == .warning)
        let refused = finding(.refused("HTTP/1.1 400 Bad Request"))
        #expect(refused.level == .problem && refused.fact.hasSuffix("HTTP/1.1 400 Bad Request"))
    }
}
