import HubCore
import HubDefinitions
import HubDelivery
import HubTesting
import Testing

/// Receipts leave out what an earlier one of their connection has said.
@Suite("Receipts that were judged before")
struct JudgedReceiptsTests {
    /// Two stages that go the same way; one judges each receipt anew.
    private struct Pair {
        var stages = [EscalationStage(), EscalationStage()]
        var random: SeededRandom
        var now: Int64 = 0
        /// Cursor of the last PING, and of each connection's last receipt.
        var cursor: UInt64 = 0
        var read: [Int: UInt64] = [:]
        var users: [Int: String] = [:]
        var events: [UInt64] = []

        init(seed: UInt64) {
            random = SeededRandom(state: seed)
            stages[1].forgets = true
        }

        mutating func each(_ work: (inout EscalationStage) -> Void) { for index in stages.indices { work(&stages[index]) } }

        /// - Returns: what both say, in words.
        mutating func step() -> [[String]] {
            let slot = Int.random(in: 0..<6, using: &random)
            let id = ConnectionID.of(slot)
            switch Int.random(in: 0..<14, using: &random) {
            case 0, 1:
                let (policy, device) = (Policy.critical, Bool.random(using: &random) ? "/phone" : "")
                let users = ["ann\(device)", "bob"]
                let number = UInt64(events.count + 1)
                each { [now] in $0.publish(policy, to: users, wait: 3000, lifetime: 60_000, at: now) }
                cursor += 1
                each { [cursor] in $0.escalation.pinged(number, loop: 0, cursor: cursor) }
                events.append(number)
            case 2:
                users[slot] = Bool.random(using: &random) ? "ann" : "bob"
                let device = Bool.random(using: &random) ? "phone" : nil
                each { [users] in $0.attach(id, users[slot] ?? "", device: device) }
            case 3:
                let state: AppState = [.foreground, .background].randomElement(using: &random) ?? .unknown
                let keeps = Bool.random(using: &random)
                each { $0.book.setState(id, state, keepsWorking: keeps) }
            case 4:
                each { $0.book.disconnected(id) }
                (users[slot], read[slot]) = (nil, nil)
            case 5:
                guard let user = users[slot], let event = events.suffix(5).randomElement(using: &random) else { break }
                cursor += 1
                each { [cursor, now] in $0.replay("e\(event)", user, to: id, cursor: cursor, at: now) }
            case 6:
                guard let user = users[slot] else { break }
                each { [now] in $0.escalation.leftScreen(app: "1", channel: "c", user: user, device: nil, now: now) }
            case 7: each { [events] in $0.book.restart(id, channel: "c", firstEvent: UInt64(events.count)) }
            case 8:
                guard let event = events.suffix(5).randomElement(using: &random) else { break }
                let ticket = UInt64.random(in: 0...5, using: &random)
                each { $0.escalation.setAttended(event, loop: 0, upTo: ticket) }
            case 9: now += Int64.random(in: 1...9000, using: &random)
            default:
                let upTo = UInt64.random(in: (read[slot] ?? 0)...max(cursor, read[slot] ?? 0), using: &random)
                read[slot] = upTo
                each { [now] in $0.pong(id, upTo, at: now) }
            }
            let words = [stages[0].advance(to: now), stages[1].advance(to: now)]
            // The questions of this step are written behind it.
            for word in words[0] where word.hasPrefix("prove e") {
                guard let number = word.split(separator: " ").dropFirst().first.flatMap({ UInt64($0.dropFirst()) }) else { continue }
                cursor += 1
                each { [cursor] in $0.escalation.proving(number, loop: 0, cursor: cursor) }
            }
            return words
        }
    }

    @Test("they have the same effects as receipts that are judged anew", arguments: 0..<200)
    func same(seed: Int) {
        var pair = Pair(seed: UInt64(seed))
        for step in 0..<400 {
            let words = pair.step()
            guard words[0] == words[1] else {
                Issue.record("seed \(seed), step \(step): \(words[0]), but anew \(words[1])")
                return
            }
        }
    }
}
