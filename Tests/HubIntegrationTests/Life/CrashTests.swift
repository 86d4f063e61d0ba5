import Foundation
import HubCore
import Testing

/// Accepted events survive a killed process, and no push that a gateway has taken is sent again.
@Suite struct CrashTests {
    private struct Runs {
        var before: JSONValue
        var after: JSONValue
    }

    /// Runs a scenario that ends its hub, starts another one on the same data, and lets that one finish.
    /// - Parameter requests: how many each of the two gateways that keep the hub waiting gets in the end, at least.
    private func crash(_ scenario: String, requests: Int, end: ChildProcess.End = .init(code: 9, wasSignalled: true)) async throws -> Runs {
        try await Stage.run(seconds: 20) { stage in
            let gateways = try await stage.gateways()
            let first = try await stage.hub(gateways: gateways)
            let before = try await stage.python("life/crash.py", scenario, hub: first, gateways: gateways)
            #expect(try await first.process.waitForEnd() == end)
            let second = try await stage.hub(gateways: gateways)
            let after = try await stage.python(
                "life/crash.py", "afterwards", hub: second, gateways: gateways, environment: ["REQUESTS": "\(requests)"])
            #expect(after["people"] == ["Ben", "Cleo", "Dora"])
            return Runs(before: before, after: after)
        }
    }

    /// Every request to a device bears the same ids, so that a device that got both shows one.
    private func checkSameIDs(_ requests: JSONValue?) {
        for name in ["nid", "apns_id", "ts"] {
            #expect(Set((requests?.arrayValue ?? []).map { $0[name] ?? .null }).count == 1, "\(name) changed")
        }
    }

    @Test func killedRightAfterTheAnswer() async throws {
        let runs = try await crash("at_once", requests: 1)
        for device in ["b", "c", "d"] {
            let known = runs.before[device]?.count ?? 0
            // The hub was killed before any answer: what it had sent, if it had, may or may not have arrived, and is sent again.
            #expect(known <= 1)
            #expect(runs.after[device]?.count == known + 1, "\(device): \(known) before, \(runs.after[device]?.count ?? 0) after")
            checkSameIDs(runs.after[device])
        }
    }

    @Test func killedHalfWay() async throws {
        let runs = try await crash("half_way", requests: 2)
        // Sent and not answered: again, under the same ids.
        #expect(runs.before["b"]?.count == 1)
        #expect(runs.after["b"]?.count == 2)
        checkSameIDs(runs.after["b"])
        // Refused for the moment: again until it is accepted, once.
        #expect(runs.before["c"]?[0]?["status"] == 503)
        #expect((runs.after["c"]?.arrayValue ?? []).map { $0["status"] } == [503, 200])
        checkSameIDs(runs.after["c"])
        // Accepted and written down: never again.
        #expect(runs.before["d"]?.count == 1)
        #expect(runs.after["d"]?.count == 1)
    }

    @Test func publishedAgainUnderTheSameKeys() async throws {
        let result = try await Stage.run(seconds: 20) { stage in
            let first = try await stage.hub()
            let before = try await stage.python("life/crash.py", "keyed_publishes", hub: first)
            #expect(try await first.process.waitForEnd() == ChildProcess.End(code: 9, wasSignalled: true))
            let answered = try required(before["answered"], "answered")
            return try await stage.python(
                "life/crash.py", "keyed_retries", hub: try await stage.hub(),
                environment: ["ANSWERED": answered.text, "STORE": stage.folder.appendingPathComponent("data/tandem.db").path])
        }
        #expect(result["statuses"] == [200] && result["same"] == true && result["answered_are_replayed"] == true)
        // The kill came in between: some had no answer, and were published by the second hub or replayed, never both.
        #expect((100..<300).contains(result["answered"]?.intValue ?? 0) && result["some_were_new"] == true)
        #expect(result["events"] == 300 && result["numbers"] == 300 && result["ids"] == true)
    }

    @Test func endedInOrder() async throws {
        let runs = try await crash("drained", requests: 2, end: .init(code: 0, wasSignalled: false))
        for device in ["b", "c"] {
            #expect(runs.before[device]?.count == 1)
            #expect(runs.after[device]?.count == 2)
            checkSameIDs(runs.after[device])
        }
        #expect(runs.after["d"]?.count == 1)
    }

    @Test func whoWasThereIsWaitedFor() async throws {
        try await Stage.run(seconds: 20) { stage in
            let first = try await stage.hub()
            let store = ["STORE": stage.folder.appendingPathComponent("data/tandem.db").path]
            let before = try await stage.python("life/crash.py", "attended", hub: first, environment: store)
            // On a first start nobody is on the way back: who is not there is not waited for.
            #expect(before["known"] == ["absent"])
            #expect(try await first.process.waitForEnd() == ChildProcess.End(code: 9, wasSignalled: true))
            let after = try await stage.python("life/crash.py", "awaited", hub: try await stage.hub())
            #expect(after["known"] == ["grace_server"])
        }
    }
}
