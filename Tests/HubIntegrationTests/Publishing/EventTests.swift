import Foundation
import HubCore
import HubJSON
import Testing

/// Stored events and scheduled publishes, over HTTP and by the command line.
@Suite struct EventTests {
    @Test func history() async throws {
        let result = try await Stage.run { stage in
            try await stage.python("publishing/events.py", "history", hub: try await stage.hub())
        }
        #expect(result["same"] == true && result["sequences"] == [1, 2, 3] && result["more"] == false)
        #expect(result["page"] == [[2], true])
        // Ben came after the first one.
        #expect(result["ada"] == [1, 2, 3] && result["ben"] == [2, 3])
        #expect(result["unsigned"] == 401 && result["no_token"] == 401)
    }

    @Test func receiptsAndTrail() async throws {
        try await Stage.run(seconds: 35) { stage in
            let gateways = try await stage.gateways()
            let hub = try await stage.hub(gateways: gateways)
            let result = try await stage.python("publishing/events.py", "receipts", hub: hub, gateways: gateways)
            #expect(result["frame_names_event"] == true && result["nid"] == true)
            #expect(result["foreign"] == [404, 404] && result["opened"] == [200, true] && result["received"] == [200, true])
            #expect(result["pushed"] == ["absent", "push", .null] && result["ben_confirmed"] == true)
            #expect(result["accepted"] == "accepted" && result["attempts"]?.count == 2 && result["attempts"]?[1] == "accepted")
            #expect(result["ada"]?[0] == "await_receipt" && result["ada"]?[1] == [] && result["ada"]?[2] == true)
            #expect(result["secrets"] == [false, false, false])
            try await checkTrace(stage, hub, event: result["event"]?.stringValue ?? "")
        }
    }

    private func checkTrace(_ stage: Stage, _ hub: Hub, event: String) async throws {
        func trace(_ arguments: String..., code: Int32 = 0) async throws -> ChildProcess {
            let process = try stage.start(Place.tandem, ["trace", "--url", hub.url] + arguments)
            let end = try await process.waitForEnd()
            #expect(end == ChildProcess.End(code: code, wasSignalled: false), "\(process.errors)")
            return process
        }
        let table = try await trace(event).output
        let lines = table.split(separator: "\n").map(String.init)
        #expect(lines.first?.contains(event) == true && table.contains("policy critical") && table.contains("2 recipients"))
        let header = lines.firstIndex { $0.hasPrefix("USER") } ?? 0
        #expect(header > 0 && lines.count == header + 3 && lines[header].hasSuffix("ANSWER"))
        #expect(lines[(header + 1)...].allSatisfy { $0.contains("confirmed") } && lines.last?.contains("accepted") == true)
        let json = try JSONValue(parsing: try await trace(event, "--json").output)
        let rows = json["deliveries"]?.arrayValue ?? []
        #expect(rows.count == 2 && json["recipients"] == 2)
        let user = rows.last?["user"]?.stringValue ?? ""
        let one = try await trace(event, "--user", user).output
        #expect(one.contains("why: ") && one.contains("attempt 2, "))
        for (arguments, code) in [([event, "--user", "nobody"], 1), (["00000000-0000"], 1), (["no/id"], 64)] as [([String], Int32)] {
            let process = try stage.start(Place.tandem, ["trace", "--url", hub.url] + arguments)
            #expect(try await process.waitForEnd() == ChildProcess.End(code: code, wasSignalled: false), "\(arguments)")
            #expect(process.errors.split(separator: "\n").count == 1 && process.errors.hasPrefix("tandem: "), "\(process.errors)")
        }
    }

    @Test func publishedLater() async throws {
        let result = try await Stage.run { stage in
            try await stage.python("publishing/events.py", "later", hub: try await stage.hub())
        }
        #expect(result["due"] == true && result["listed"] == 4 && result["deletes"] == [200, 404] && result["early"] == [0, 0])
        #expect(result["not_early"] == true && (0..<5_000).contains(result["late"]?.intValue ?? -1))
        #expect(result["data"] == #"{"n": 1}"# && result["event"] == true && result["state"] == "published")
        #expect(result["chats"] == ["plain", "zoned"] && result["no_event_id"] == false && result["past"] == true)
        // The session is checked when it is accepted, and again at its time.
        #expect(result["refused"] == 404 && result["failed"]?[0] == true)
        #expect(result["failed"]?[1]?.stringValue?.contains("there is no session 'tuesday'") == true)
    }

    @Test func killedAroundTheDueTime() async throws {
        let result = try await Stage.run(seconds: 35) { stage in
            let first = try await stage.hub()
            let before = try await stage.python("publishing/events.py", "later_before", hub: first)
            #expect(try await first.process.waitForEnd() == ChildProcess.End(code: 9, wasSignalled: true))
            let environment = ["BEFORE": before.text]
            return try await stage.python("publishing/events.py", "later_after", hub: try await stage.hub(), environment: environment)
        }
        // Each once, in the order of the times, by one hub or the other.
        #expect(result["numbers"] == .array((0..<60).map { .int($0) }))
        #expect(result["states"] == ["published"] && result["ids"] == true && result["not_early"] == true)
        #expect((1..<60).contains(result["by_first"]?.intValue ?? 0))
        #expect(result["replayed"] == [true, true] && result["cancelled"] == "cancelled" && result["plain"] == "published")
    }
}
