import Foundation
import HubCore
import HubTesting
import Testing

@testable import HubTransport

/// The cases of `AutobahnCases`, all of them, against a loop that echoes, and mistakes that Autobahn does not make.
@Suite("Autobahn's cases", .blocking)
struct AutobahnTests {
    /// Echoes messages of both kinds, up to half a megabyte: the longest of the cases has a quarter.
    private static func withEcho<Result>(_ options: LoopOptions? = nil, _ body: (TestServer) throws -> Result) throws -> Result {
        var roomy = LoopOptions()
        roomy.messageBytesMax = 1 << 19
        var behaviour = Behaviour()
        behaviour.binary = { loop, connection, bytes in
            var frame = Frame.text(bytes)
            frame[0] = 0x82
            loop.send(frame, to: connection)
        }
        return try withServer(options: options ?? roomy, behaviour, body)
    }

    /// Holds every conversation, some at a time, and expects that nothing is left of them.
    private static func hold(_ cases: [WireCase], _ server: TestServer) throws {
        let bystander = try server.client()
        let outcomes = Recorder<(name: String, outcome: WireClient.Outcome?)>()
        let (lanes, port) = (16, server.port)
        try concurrently(lanes) { lane in
            for index in stride(from: lane, to: cases.count, by: lanes) {
                outcomes.append((cases[index].number, WireClient(port: port, path: "/app/key")?.hold(cases[index])))
            }
        }
        let all = outcomes.all
        #expect(all.count == cases.count)
        for (name, outcome) in all where outcome?.complaints != [] {
            Issue.record("\(name): \(outcome?.complaints.joined(separator: "; ") ?? "no upgrade")")
        }
        let passed = all.count { $0.outcome?.complaints == [] }
        let strict = all.count { $0.outcome?.complaints == [] && $0.outcome?.isStrict == true }
        print("\(passed) of \(cases.count) conversations passed, \(strict) of them strictly")
        try bystander.sendText("still here")
        #expect(try bystander.frame().text == "still here")
        #expect(try eventually { try server.on { $0.connectionCount == 1 && $0.assemblies.isEmpty && $0.queues.isEmpty } })
    }

    @Test("the table has 247 cases, as many in each section as the suite, each number once")
    func counts() {
        let cases = AutobahnCases.all
        let closes = cases.count(where: \.isAboutClosing)
        print("Autobahn's cases: \(cases.count), without an echo: \(AutobahnCases.withoutEcho.count), about closing: \(closes)")
        #expect(cases.count == 247 && Set(cases.map(\.number)).count == 247)
        #expect(Dictionary(grouping: cases, by: \.section).mapValues(\.count) == AutobahnCases.counts)
    }

    @Test("what the table takes for UTF-8 is what the standard library takes for it")
    func sequences() {
        for item in AutobahnCases.all where item.section == 6 {
            guard case .closedByClient = item.end, let text = item.answers.first else { continue }
            #expect(String(validating: text.payload, as: UTF8.self) != nil, "\(item)")
        }
    }

    @Test("each ends as the RFC wants it", arguments: AutobahnCases.counts.keys.sorted())
    func ends(section: Int) throws {
        try Self.withEcho { server in try Self.hold(AutobahnCases.all.filter { $0.section == section }, server) }
    }

    @Test("so do other mistakes, however they are cut into segments", arguments: [nil, 1, 3])
    func others(count: Int?) throws {
        try Self.withEcho { server in
            try Self.hold(WireCases.all.map { item in count.map { item.inPieces(of: $0, named: "\(item) by \($0)") } ?? item }, server)
        }
    }

    /// Autobahn's section 9 within our own bound.
    @Test("messages up to the bound are taken, longer ones end with 1009")
    func limits() throws {
        let options = LoopOptions()
        try Self.withEcho(options) { server in try Self.hold(WireCases.limits(messageBytesMax: options.messageBytesMax), server) }
    }

    private static let echoPort = ProcessInfo.processInfo.environment["ECHO_LOOP_PORT"].flatMap { Int($0) }

    /// `ECHO_LOOP_PORT=9001 swift test --filter AutobahnTests/echoLoop` is there for a client such as Autobahn's own, for ten minutes or
    /// until somebody connects to `/app/stop`.
    @Test("an echo loop for clients of others", .enabled(if: echoPort != nil), .timeLimit(.minutes(15)))
    func echoLoop() throws {
        var options = LoopOptions()
        options.messageBytesMax = 1 << 24
        options.sendQueueBytesMax = 1 << 26
        var behaviour = Behaviour()
        behaviour.binary = { loop, connection, bytes in
            var frame = Frame.text(bytes)
            frame[0] = 0x82
            loop.send(frame, to: connection)
        }
        let socket = try ListeningSocket(host: "127.0.0.1", port: Self.echoPort ?? 0)
        let server = try TestServer(options: options, socket: socket, behaviour)
        defer { server.stop() }
        print("echo loop at port \(server.port)")
        _ = eventually(seconds: 600) {
            server.seen.all.contains { if case .opened(_, "/app/stop", _) = $0 { true } else { false } }
        }
    }
}
