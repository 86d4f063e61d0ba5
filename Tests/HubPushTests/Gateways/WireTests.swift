import Foundation
import GatewaySimulators
import HubCrypto
import HubDelivery
import HubHTTPClient
import HubTesting
import Synchronization
import Testing

@testable import HubPush

private typealias Answer = Result<HTTPAnswer, HTTPClientError>

/// An APNs lane's client with time-outs short enough for a test.
private struct RawLane: Sendable {
    let multi: CurlMulti
    private let simulation: Simulation
    private let providerToken: String

    init(_ simulation: Simulation, change: (inout CurlOptions) -> Void = { _ in }) throws {
        let configuration = simulation.apnsConfiguration
        let key = configuration.key(.sandbox)
        providerToken = try APNsProviderToken(
            key: ES256PrivateKey(pem: key.pem), keyID: key.id, teamID: configuration.teamID, time: simulation.clock
        ).current().text
        var options = CurlOptions(name: "raw")
        options.primesConnections = true
        options.inFlightMaxHTTP1 = 1
        options.totalTimeout = .milliseconds(1500) * SlowBuild.factor
        options.caFile = configuration.caFile
        options.answerHeaders = ["retry-after", "apns-id"]
        change(&options)
        multi = try CurlMulti(options)
        self.simulation = simulation
    }

    func submit(_ number: Int, _ completion: @escaping @Sendable (Answer) -> Void) {
        let headers = [
            ("apns-topic", simulation.apnsConfiguration.topic), ("apns-push-type", "alert"), ("apns-priority", "10"),
            ("content-type", "application/json"), ("authorization", "bearer " + providerToken),
        ].map { (name: $0.0, value: $0.1) }
        let call = HTTPCall(
            method: "POST", url: simulation.gateways.apnsSandboxURL + "/3/device/" + apnsTarget(number).token, headers: headers,
            body: Array(#"{"aps":{"alert":{"title":"T"}}}"#.utf8))
        multi.submit(call, completion: completion)
    }

    /// How many of these calls, all submitted in one go, were answered with 200.
    func burst(_ numbers: Range<Int>) async -> Int {
        let good = Mutex(0)
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let left = Mutex(numbers.count)
            for number in numbers {
                submit(number) { answer in
                    if answer.status == 200 { good.withLock { $0 += 1 } }
                    if left.withLock({
                        $0 -= 1
                        return $0 == 0
                    }) {
                        continuation.resume()
                    }
                }
            }
        }
        return good.withLock { $0 }
    }

    func answer(_ number: Int) async -> Answer {
        await withCheckedContinuation { continuation in submit(number) { continuation.resume(returning: $0) } }
    }
}

extension APNsProviderToken.Token {
    fileprivate var text: String { if case .token(let text) = self { text } else { "" } }
}

extension Result where Success == HTTPAnswer, Failure == HTTPClientError {
    fileprivate var code: CurlCode? { if case .failure(let error) = self, case .transport(let code) = error.reason { code } else { nil } }
    fileprivate var status: Int? { if case .success(let answer) = self { answer.status } else { nil } }
}

extension Simulation {
    /// Pushes messages to `apnsTarget` of their numbers, side by side. The next round repeats those that a lost connection took, as the
    /// outbox does.
    /// - Returns: numbers that are left after `rounds`.
    fileprivate func push(_ numbers: some Sequence<Int>, rounds: Int = 1) async -> Set<Int> {
        let messages = Dictionary(uniqueKeysWithValues: numbers.map { ($0, message()) })
        var missing = Set(messages.keys)
        for _ in 0..<rounds where !missing.isEmpty {
            await withTaskGroup(of: (Int, PushOutcome).self) { group in
                for number in missing {
                    guard let message = messages[number] else { continue }
                    group.addTask { (number, await self.apns.outcome(message, apnsTarget(number))) }
                }
                for await (number, outcome) in group {
                    switch outcome {
                    case .accepted: missing.remove(number)
                    case .retry(_, let reason): if RetryCause(reason: reason) != .transport { Issue.record("\(reason)") }
                    default: Issue.record("\(outcome.name) \(outcome.reason ?? "")")
                    }
                }
            }
        }
        return missing
    }

    /// Makes the gateway end its connections, and pushes until a new one has been opened for it.
    fileprivate func reconnect(_ end: () -> Void) async {
        let before = gateways.traffic(.apns).connections
        end()
        for _ in 0..<1000 where gateways.traffic(.apns).connections == before { _ = await push([0]) }
    }
}

@Suite("Connections to the gateways", .timeLimit(.minutes(10 * SlowBuild.factor)))
struct WireTests {
    @Test("after the gateway has closed every connection, the next push takes the TLS session up again")
    func resumesAfterClose() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        #expect(await simulation.push([1]).isEmpty)
        #expect(simulation.gateways.traffic(.apns).resumedHandshakes == 0)
        for count in 1...3 {
            await simulation.reconnect { simulation.gateways.closeConnections(.apns) }
            #expect(simulation.gateways.traffic(.apns).connections == count + 1)
            #expect(simulation.gateways.traffic(.apns).resumedHandshakes == count)
        }
        // FCM's token endpoint has a client, and so a session, of its own.
        #expect(await simulation.fcm.outcome(simulation.message(), fcmTarget("device")).name == "accepted")
        simulation.gateways.closeConnections(.fcm)
        for _ in 0..<1000 where simulation.gateways.traffic(.fcm).connections == 2 {
            // The end may come in the middle of a push.
            switch await simulation.fcm.outcome(simulation.message(), fcmTarget("device")) {
            case .accepted: break
            case .retry(_, let reason): #expect(RetryCause(reason: reason) == .transport, "\(reason)")
            case let outcome: Issue.record("\(outcome.name) \(outcome.reason ?? "")")
            }
        }
        #expect(simulation.gateways.traffic(.fcm).resumedHandshakes == 1)
    }

    @Test("APNs over HTTP/1.1 is a failure: a retry, counted, and one alarm")
    func apnsOverHTTP1() async throws {
        let simulation = try Simulation { $0.apnsSpeaksHTTP2 = false }
        defer { simulation.stop() }
        for _ in 0..<3 {
            let outcome = await simulation.apns.outcome(simulation.message(), apnsTarget())
            #expect(outcome.name == "retry" && outcome.reason?.contains("HTTP/2") == true, "\(outcome)")
        }
        #expect(simulation.alarms == [.apnsWithoutHTTP2])
        #expect(simulation.reports.alarms == [.apnsWithoutHTTP2: 3])
        #expect(simulation.apns.counters(.sandbox).answeredOverHTTP1 == 3)
    }

    @Test("FCM over HTTP/1.1 works, is counted, and said once")
    func fcmOverHTTP1() async throws {
        let simulation = try Simulation { $0.fcmSpeaksHTTP2 = false }
        defer { simulation.stop() }
        let accepted = await withTaskGroup(of: Bool.self) { group in
            for number in 0..<40 {
                group.addTask { await simulation.fcm.outcome(simulation.message(), fcmTarget("device-\(number)")).name == "accepted" }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(accepted == 40)
        #expect(simulation.fcm.counters.answeredOverHTTP1 == 40)
        #expect(simulation.lines.text.components(separatedBy: "push gateway answered without HTTP/2").count == 2)
        #expect(simulation.gateways.traffic(.fcm).overHTTP1 <= FCMGateway.connectionsMax + 1)
    }

    @Test("a refused stream was not processed: the push is sent again, arrives once, and no cascade of connections follows")
    func refusedStreams() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        #expect(await simulation.push([999]).isEmpty)
        for number in stride(from: 0, to: 100, by: 10) {
            try simulation.gateways.setFault(.init(action: .refuse, times: 1), token: apnsTarget(number).token)
        }
        #expect(await simulation.push(0..<100, rounds: 3).isEmpty)
        let requests = simulation.gateways.requests(provider: .apns).filter { $0.token != apnsTarget(999).token }
        let accepted = requests.filter { $0.status == 200 }
        #expect(accepted.count == 100 && Set(accepted.map(\.identifier)).count == 100)
        #expect(requests.count == 110)
        let traffic = simulation.gateways.traffic(.apns)
        #expect(traffic.connections <= 11 && traffic.streamsBeyondLimit == 0, "\(traffic)")
    }

    @Test("after a GOAWAY or a close the next connection again gets one request alone until its 200", arguments: [true, false])
    func primesAgain(primes: Bool) async throws {
        let simulation = try Simulation { $0.apnsGreetingDelayMilliseconds = 100 }
        defer { simulation.stop() }
        let gateways = simulation.gateways
        let lane = try RawLane(simulation) {
            $0.primesConnections = primes
            $0.totalTimeout = .seconds(10) * SlowBuild.factor
        }
        #expect(await lane.answer(1).status == 200)
        for round in 0..<4 {
            // Between bursts, and in the middle of one.
            let isGoAway = round.isMultiple(of: 2)
            let before = gateways.traffic(.apns).connections
            if isGoAway { gateways.goAway(.apns) } else { gateways.closeConnections(.apns) }
            for _ in 0..<20 where gateways.traffic(.apns).connections == before {
                async let first = lane.burst(0..<10)
                // The second wave finds a connection whose peer has not said a word yet.
                _ = await eventually(within: .seconds(1)) { gateways.traffic(.apns).connections > before }
                async let second = lane.burst(10..<100)
                _ = await (first, second)
            }
            try gateways.setFault(.init(action: isGoAway ? .goaway : .close, times: 1), token: apnsTarget(150).token)
            _ = await lane.burst(100..<300)
            if primes { #expect(await lane.burst(0..<100) == 100) }
        }
        let traffic = gateways.traffic(.apns)
        // Without priming, streams beyond the limit are what follows: the count sees them.
        #expect((traffic.streamsBeyondLimit == 0) == primes && traffic.connections >= 5, "\(traffic)")
        #expect(lane.multi.counters.inFlightPeak > 1)
    }

    @Test("a black hole: time-outs leave the outcome open, after three in a row the connection is given up, and a new one works")
    func blackHole() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        let lane = try RawLane(simulation)
        #expect(await lane.answer(1).status == 200)
        simulation.gateways.freezeConnections(.apns)
        // Until the order has reached the gateway's thread.
        var answer = await lane.answer(2)
        for _ in 0..<1000 where answer.status == 200 { answer = await lane.answer(2) }
        for number in 3...4 {
            #expect(answer.code == .operationTimedOut)
            if case .failure(let error) = answer { #expect(error.delivery == .outcomeUnknown) }
            #expect(lane.multi.counters.renewals == 0)
            answer = await lane.answer(number)
        }
        #expect(answer.code == .operationTimedOut)
        #expect(await lane.answer(5).status == 200)
        #expect(lane.multi.counters.renewals == 1)
        let traffic = simulation.gateways.traffic(.apns)
        #expect(traffic.connections == 2 && traffic.resumedHandshakes == 1, "\(traffic)")
    }

    @Test("a peer that accepts and never says a word: not sent, in the time to connect")
    func silentListener() async throws {
        let server = try LocalHTTPServer { _ in .silence }
        defer { server.stop() }
        var options = CurlOptions(name: "raw")
        options.connectTimeout = .milliseconds(200)
        let multi = try CurlMulti(options)
        for _ in 0..<4 {
            let answer: Answer = await withCheckedContinuation { continuation in
                multi.submit(HTTPCall(method: "POST", url: "https://127.0.0.1:\(server.port)/")) { continuation.resume(returning: $0) }
            }
            #expect(answer.code == .operationTimedOut)
            if case .failure(let error) = answer { #expect(error.delivery == .notSent) }
        }
        #expect(multi.counters.failed == 4)
    }

    @Test("the kernel ends a connection whose bytes nobody acknowledges for 15 seconds")
    func userTimeout() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        #expect(await simulation.push([1]).isEmpty)
        #expect(OpenSocket.all(peerPort: simulation.gateways.apnsSandboxPort).map(\.userTimeout) == [15_000])
    }

    @Test("ENHANCE_YOUR_CALM on every connection: each push ends, and requests and connections stay within libcurl's own bound")
    func enhanceYourCalm() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        #expect(await simulation.push([999]).isEmpty)
        try simulation.gateways.setFault(.init(action: .calm), token: "*", provider: .apns)
        let count = 20
        #expect(await simulation.push(0..<count).count == count)
        let traffic = simulation.gateways.traffic(.apns)
        let requests = simulation.gateways.requests(provider: .apns).count - 1
        // One attempt, and at most five repetitions of libcurl's.
        #expect(
            requests <= 6 * count && traffic.connections <= 1 + 6 * count, "\(requests) \(traffic) \(simulation.apns.counters(.sandbox))")
        simulation.gateways.removeAllFaults()
        #expect(await simulation.push(0..<count, rounds: 3).isEmpty)
    }

    @Test("slow, broken, endless and flooding answers among good ones: each push ends once, and nothing beyond the bounds is kept")
    func mixedAnswers() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        let lane = try RawLane(simulation) { $0.totalTimeout = .seconds(8) * SlowBuild.factor }
        let faults: [GatewayFault?] = [
            nil, .init(delayMilliseconds: SimulatorLimits.delayMillisecondsMax), .init(action: .html), .init(bodyBytes: 300_000),
            .init(headerBytes: 10_000),
            .init(reason: "ServiceUnavailable", bodyBytes: 40_000), nil, .init(action: .reset),
        ]
        let count = 5 * faults.count
        for number in 0..<count {
            if let fault = faults[number % faults.count] { try simulation.gateways.setFault(fault, token: apnsTarget(number).token) }
        }
        let ends = Mutex([Int: [Answer]]())
        for number in 0..<count { lane.submit(number) { answer in ends.withLock { $0[number, default: []].append(answer) } } }
        #expect(await eventually { ends.withLock { $0.count } == count })
        // A late answer to a call that timed out must not end it again.
        #expect(await eventually { lane.multi.counters.inFlight == 0 })
        #expect(await lane.answer(0).status == 200)
        for (number, answers) in ends.withLock({ $0 }) {
            #expect(answers.count == 1)
            guard let answer = answers.first else { continue }
            switch number % faults.count {
            case 0, 4, 6: #expect(answer.status == 200, "\(number): \(answer)")
            case 1: #expect(answer.code == .operationTimedOut)
            case 2: #expect(answer.status == 502)
            case 3: #expect(answer.status == 200)
            case 5: #expect(answer.status == 503)
            default: #expect(answer.code != nil)
            }
            if case .success(let answer) = answer {
                #expect(answer.body.count <= 16 * 1024 && answer.bodyTruncated == [3, 5].contains(number % faults.count))
                #expect(Set(answer.headers.keys).isSubset(of: ["retry-after", "apns-id"]))
            }
        }
    }

    @Test("libcurl's own repetition of a request is counted; over HTTP/2 a close before an answer is none, but a refused stream is one")
    func repetitionIsCounted() async throws {
        let old = try Simulation { $0.fcmSpeaksHTTP2 = false }
        defer { old.stop() }
        #expect(await old.fcm.outcome(old.message(), fcmTarget("first")).name == "accepted")
        #expect(old.fcm.counters.repeatedByLibcurl == 0)
        try old.gateways.setFault(.init(action: .close, times: 1), token: "closed")
        #expect(await old.fcm.outcome(old.message(), fcmTarget("closed")).name == "accepted")
        let requests = old.gateways.requests(provider: .fcm, token: "closed")
        #expect(requests.map(\.status) == [0, 200] && Set(requests.map(\.body)).count == 1 && Set(requests.map(\.connection)).count == 2)
        #expect(old.fcm.counters.repeatedByLibcurl == 1 && old.fcm.counters.connectionsOpened == 2, "\(old.fcm.counters)")

        let simulation = try Simulation()
        defer { simulation.stop() }
        #expect(await simulation.push([1]).isEmpty)
        try simulation.gateways.setFault(.init(action: .close, times: 1), token: apnsTarget(7).token)
        let closed = await simulation.apns.outcome(simulation.message(), apnsTarget(7))
        #expect(closed.reason?.hasSuffix("(outcome unknown)") == true, "\(closed)")
        #expect(simulation.gateways.requests(provider: .apns, token: apnsTarget(7).token).count == 1)
        #expect(simulation.apns.counters(.sandbox).repeatedByLibcurl == 0)
        #expect(await simulation.push([1]).isEmpty)
        try simulation.gateways.setFault(.init(action: .refuse, times: 1), token: apnsTarget(8).token)
        #expect(await simulation.push([8]).isEmpty)
        let refused = simulation.gateways.requests(provider: .apns, token: apnsTarget(8).token)
        #expect(refused.map(\.status) == [0, 200] && Set(refused.compactMap { $0.header("apns-id") }).count == 1)
        #expect(simulation.apns.counters(.sandbox).repeatedByLibcurl == 1)
    }

    @Test("more headers than libcurl's buffer holds spoil their own answer at most, and its outcome is open")
    func flood() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        for number in stride(from: 3, to: 60, by: 10) {
            try simulation.gateways.setFault(.init(headerBytes: 50_000), token: apnsTarget(number).token)
        }
        await withTaskGroup(of: (Int, PushOutcome).self) { group in
            for number in 0..<60 { group.addTask { (number, await simulation.apns.outcome(simulation.message(), apnsTarget(number))) } }
            for await (number, outcome) in group {
                let isGood = outcome.name == "accepted" || number % 10 == 3 && outcome.reason?.hasSuffix("(outcome unknown)") == true
                #expect(isGood, "\(number) \(outcome)")
            }
        }
    }

    @Test("libcurl resets the stream behind an answer of headers alone; one with a body it leaves alone")
    func resets() async throws {
        let simulation = try Simulation()
        defer { simulation.stop() }
        #expect(await simulation.push(0..<50).isEmpty)
        let afterEmpty = simulation.gateways.traffic(.apns).resetsReceived
        try simulation.gateways.setFault(.init(bodyBytes: 2), token: "*", provider: .apns)
        #expect(await simulation.push(0..<50).isEmpty)
        let afterBodies = simulation.gateways.traffic(.apns).resetsReceived
        // An answer whose end libcurl reads apart from its body is still reset; a newer libcurl resets none.
        #expect(afterEmpty <= 50 && afterBodies - afterEmpty <= 10, "\(afterEmpty) \(afterBodies)")
    }
}
