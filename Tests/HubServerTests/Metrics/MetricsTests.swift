import HubAPI
import HubChannels
import HubConfiguration
import HubCore
import HubDelivery
import HubOutbox
import HubPush
import HubScaleOut
import HubStorage
import HubTesting
import OutboxTesting
import Synchronization
import Testing

@testable import HubServer

/// The counters of the server's parts, and their format.
@Suite("Metrics")
struct MetricsTests {
    private func sample(_ text: MetricsText, _ line: String) -> String? {
        text.text.split(separator: "\n").first { $0.hasPrefix(line + " ") }.map { String($0.dropFirst(line.utf8.count + 1)) }
    }

    @Test("decisions, receipts and escalations are those that were carried out, by bounded labels")
    func delivery() async throws {
        let stage = try DeliveryStage(loops: 1)
        try await stage.session()
        try await stage.session(user: "v")
        stage.start()
        let connection = try await stage.connect(device: "phone")
        let event = try #require(try await stage.publish(try PendingPublish()).first?.events.first?.id)
        _ = try await stage.publish(try PendingPublish("unheard-of"))
        // The user u looks at the app and answers; v is away and is pushed to at once.
        stage.delivery.report([.state(connection, .foreground, keepsWorking: false), .pinged(events: [1], cursor: 1)], loop: 0)
        stage.delivery.report([.receipt(connection, cursor: 1, byApplication: false)], loop: 0)
        _ = try await stage.recipient(of: event) { $0.confirmedAt != nil }
        await stage.stop()
        let figures = stage.delivery.counters.withLock { $0 }
        #expect(figures.published == 2 && figures.confirmed == 1 && figures.openEvents == 0)
        var text = MetricsText()
        text.delivery(figures, waiting: stage.delivery.waitingCount)
        #expect(sample(text, #"tandem_events_total{policy="critical"}"#) == "1")
        #expect(sample(text, #"tandem_events_total{policy="notify"}"#) == "0")
        #expect(sample(text, #"tandem_decisions_total{policy="critical",reach="live",decision="awaited"}"#) == "1")
        #expect(sample(text, #"tandem_decisions_total{policy="critical",reach="absent",decision="pushed"}"#) == "1")
        #expect(sample(text, #"tandem_receipts_total{by="pong"}"#) == "1")
        #expect(sample(text, "tandem_attended_connections") == "1")
        for word in ["game", "phone", "token", event] { #expect(!text.text.contains(word), "\(word) is no label") }
    }

    @Test("who was pushed to because no receipt came is counted by what had been known, and words of other versions as other")
    func escalations() {
        var figures = DeliveryCounters()
        func target(_ reason: String) -> Escalation.Target {
            Escalation.Target(user: "u", device: nil, policy: .notify, wait: 1, recipient: 0, reason: reason)
        }
        let work: [PushPlan.Work] = [
            .push(event: "e", [target("live"), target("grace_server"), target("of a later version")], settled: []),
            .confirmed(event: "e", recipients: [1, 2], at: 0), .confirmedLate(event: "e", recipient: 3, at: 0), .closed(event: "e"),
        ]
        for work in work { figures.planned(work) }
        var text = MetricsText()
        text.delivery(figures, waiting: 0)
        #expect(
            sample(text, #"tandem_escalations_total{reach="live"}"#) == "1"
                && sample(text, #"tandem_escalations_total{reach="grace_server"}"#) == "1")
        #expect(
            sample(text, #"tandem_escalations_total{reach="other"}"#) == "1"
                && sample(text, #"tandem_escalations_total{reach="bg"}"#) == "0")
        #expect(sample(text, "tandem_confirmed_total") == "2")
    }

    @Test("the outbox tells what waits, for what and for how long, and how pushes ended")
    func outbox() async throws {
        let test = try TestStore()
        try await test.device()
        let outbox = test.outbox(ScriptedGateway([.rejected(reason: "BadTopic")], holds: false))
        await outbox.enqueue([try await test.commitPush(event: "later", delayMilliseconds: 60_000)])
        await outbox.enqueue([try await test.commitPush(event: "refused")])
        _ = try await test.row("refused") { $0.state == .failed }
        await outbox.enqueue([try await test.commitPush(event: "taken")])
        _ = try await test.row("taken") { $0.state == .accepted }
        // The counter follows the row.
        var figures = await outbox.figures
        for _ in 0..<1_000 where figures.counts.ended[.accepted] == nil {
            try await Task.sleep(for: .milliseconds(5))
            figures = await outbox.figures
        }
        #expect(figures.queued == 1 && figures.parked.isEmpty && figures.oldestDueMilliseconds == 0)
        var text = MetricsText()
        text.outbox(figures)
        #expect(
            sample(text, #"tandem_pushes_ended_total{state="failed"}"#) == "1"
                && sample(text, #"tandem_pushes_ended_total{state="accepted"}"#) == "1")
        #expect(
            sample(text, #"tandem_pushes_ended_total{state="expired"}"#) == "0"
                && sample(text, #"tandem_push_attempt_seconds_count{provider="fcm"}"#) == "2")
        #expect(sample(text, "tandem_outbox_waiting") == "1" && sample(text, "tandem_outbox_overflowed") == "0")
        await outbox.close()
    }

    @Test("lanes of one name are told apart, and each has one state")
    func lanes() {
        var text = MetricsText()
        var stopped = LaneCounters(name: "fcm project p", provider: .fcm)
        stopped.state = .stopped
        stopped.rate = 12.5
        text.lanes([LaneCounters(name: "fcm project p", provider: .fcm), stopped, LaneCounters(name: "apns", provider: .apns)])
        let states = text.text.split(separator: "\n").filter { $0.hasPrefix("tandem_push_lane_state{") }
        #expect(states.count == 9 && Set(states.map { $0.dropLast(2) }).count == 9 && states.count { $0.hasSuffix("} 1") } == 3)
        #expect(text.text.contains(#"tandem_push_lane_rate{lane="apns",provider="apns"} +Inf"#) && text.text.contains("} 12.5\n"))
    }

    @Test("PostgreSQL and the partitions have rows where it is the store, and another store has none")
    func postgres() throws {
        var figures = PostgresFigures()
        figures.owned = [0: 7, 63: 9]
        (figures.takeovers, figures.beats, figures.failedBeats, figures.sinceBeat) = (5, 12, 1, 250)
        (figures.calls.connections, figures.calls.failed, figures.calls.writerRoundTrips) = (8, 3, 40)
        figures.isFailing = true
        var text = MetricsText()
        text.postgres(figures)
        #expect(sample(text, "tandem_postgres_partitions_owned") == "2" && sample(text, "tandem_postgres_takeovers_total") == "5")
        #expect(sample(text, #"tandem_postgres_beats_total{outcome="answered"}"#) == "12")
        #expect(sample(text, #"tandem_postgres_beats_total{outcome="failed"}"#) == "1")
        #expect(sample(text, "tandem_postgres_beat_age_seconds") == "0.25" && sample(text, "tandem_postgres_failing") == "1")
        #expect(sample(text, "tandem_postgres_connections_total") == "8")
        #expect(sample(text, #"tandem_postgres_calls_failed_total{how="unanswered"}"#) == "3")
        #expect(sample(text, #"tandem_postgres_round_trips_total{link="writer"}"#) == "40")
        #expect(try DeliveryStage(loops: 1).test.store.postgres == nil)
    }

    @Test("the way between nodes has rows for each Redis server, and none for what is not known yet")
    func backplane() {
        var (node, stream) = (NodeFigures(), StreamFigures())
        (node.beats, node.missedBeats, node.declaredDead, node.connections) = (12, 1, 2, 3)
        (stream.read, stream.appended, stream.failed, stream.doubles, stream.gaps, stream.kept) = (50, 20, 4, 5, 6, 7)
        (stream.sinceRead, stream.probe, stream.sinceProbe) = (.milliseconds(250), .microseconds(1_500), .milliseconds(500))
        var text = MetricsText()
        text.backplane(
            BackplaneFigures(
                isConnected: true, deaths: 1, others: 2, messageVersion: 1,
                servers: [
                    .init(name: "a:1", node: node, stream: stream), .init(name: "b:2", node: NodeFigures(), stream: StreamFigures()),
                ]), skipped: 3)
        #expect(sample(text, "tandem_backplane_connected") == "1" && sample(text, "tandem_backplane_other_nodes") == "2")
        #expect(sample(text, "tandem_backplane_deaths_total") == "1" && sample(text, "tandem_backplane_message_version") == "1")
        #expect(sample(text, "tandem_backplane_messages_skipped_total") == "3")
        for (name, value) in [
            (#"beats_total{server="a:1",outcome="answered"}"#, "12"), (#"beats_total{server="a:1",outcome="missed"}"#, "1"),
            (#"declared_dead_total{server="a:1"}"#, "2"), (#"connections_total{server="a:1"}"#, "3"),
            (#"entries_total{server="a:1",what="read"}"#, "50"), (#"entries_total{server="a:1",what="appended"}"#, "20"),
            (#"entries_total{server="a:1",what="failed"}"#, "4"), (#"entries_total{server="a:1",what="double"}"#, "5"),
            (#"gaps_total{server="a:1"}"#, "6"), (#"entries_kept{server="a:1"}"#, "7"), (#"read_age_seconds{server="a:1"}"#, "0.25"),
            (#"probe_seconds{server="a:1"}"#, "0.0015"), (#"probe_age_seconds{server="a:1"}"#, "0.5"),
            (#"entries_total{server="b:2",what="read"}"#, "0"),
        ] {
            #expect(sample(text, "tandem_backplane_\(name)") == value, "\(name)")
        }
        #expect(!text.text.contains(#"probe_seconds{server="b:2"}"#) && !text.text.contains(#"read_age_seconds{server="b:2"}"#))
    }

    @Test("they are everybody's where only this machine reaches the hub, nobody's elsewhere, and the token's where there is one")
    func access() {
        var configuration = Configuration()
        for (host, access) in [("127.0.0.1", .everybody), ("localhost", .everybody), ("0.0.0.0", .nobody), ("hub.example", .nobody)]
            as [(String, MetricsAccess)]
        {
            configuration.listen.host.value = host
            #expect(configuration.metricsAccess == access, "\(host)")
        }
        configuration.metrics.token = "0123456789abcdef"
        #expect(configuration.metricsAccess == .token("0123456789abcdef"))
    }

    @Test("the process tells of itself what the system knows")
    func process() {
        let facts = ProcessFacts.now()
        #expect(facts.residentBytes > 1 << 20 && facts.virtualBytes > facts.residentBytes)
        #expect(facts.openDescriptors > 2 && facts.descriptorsMax >= facts.openDescriptors)
        #expect(facts.cpuSeconds > 0 && facts.threads > 0)
        let now = Double(SystemTime().wallMilliseconds) / 1000
        #expect(facts.startSeconds < now + 1 && facts.startSeconds > now - 86_400)
    }
}
