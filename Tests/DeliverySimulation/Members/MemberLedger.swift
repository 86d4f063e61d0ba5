import Foundation
import HubChannels
import HubCore
import HubScaleOut
import HubTesting
import PusherProtocol
import RedisModel

/// Was every coming and going told, once, and none that did not happen?
extension MemberSimulation {
    /// Time after which everybody has to know of a change, in milliseconds: the lingering, a late beat, the way, and the wait of webhooks.
    private static let knownMax: Int64 = 13_000

    /// For so long after the loss of a memory, some nodes may have read a change in the lost one, and others have not.
    static let lossMax: Int64 = 30_000

    func isCalm(for milliseconds: Int64) -> Bool { now >= faultUntil + milliseconds && rolling == nil && isRedisUp }

    func isWell(_ node: MemberNode) -> Bool {
        node.isUp && node.isConnected && !node.isStopped && !node.isCut && !node.isLeaving && node.slowUntil < now
            && now - 10_000 > node.wellSince
    }

    // MARK: A client library

    func announced(_ frames: [[UInt8]], _ node: MemberNode, _ channel: ChannelName) {
        let changes = frames.flatMap { FrameText.changes(String(decoding: $0, as: UTF8.self)) }
        for number in node.sockets where sockets[number].knownSince != nil && sockets[number].membership.channel == channel {
            for (user, isAdded) in changes {
                let wasKnown = sockets[number].known.contains(user)
                if wasKnown == isAdded {
                    report.unexplained += 1
                    violation("\(user) is told \(isAdded ? "added" : "removed") once more in \(channel) on node \(node.index)")
                }
                if isAdded { sockets[number].known.insert(user) } else { sockets[number].known.remove(user) }
            }
        }
        report.seenOnSocket += changes.count
    }

    func acknowledged(_ numbers: [Int], _ frame: [UInt8]) {
        let known = FrameText.ids(String(decoding: frame, as: UTF8.self))
        for number in numbers where sockets[number].isOpen {
            (sockets[number].known, sockets[number].knownSince) = (known, now)
            let user = devices[sockets[number].device].user
            // Whoever is back may go at once.
            users[user].endsAt = 0
            if !known.contains(users[user].name) { violation("\(users[user].name) is acknowledged without being in the list") }
        }
    }

    // MARK: What Redis tells all nodes

    /// Reads what the last call has told.
    func readAlong(_ redis: RedisModel) {
        guard redis === self.redis, let epoch = redis.perform(RedisCommand("GET", texts: [Self.epochKey])).text else { return }
        let events = ScaleOutKeys(prefix: Self.prefix, epoch: epoch).events
        if judged.events != events { judged = (events, .zero) }
        let reply = redis.perform(RedisCommand("XREAD COUNT 1000 STREAMS", texts: [events, "\(judged.position)"]))
        guard let entries = (try? StreamEntry.read(reply))?.first?.entries, let last = entries.last else { return }
        judged.position = last.id
        for node in nodes where node.isUp && node.redis === redis { planRead(node, after: between(1, 4)) }
        for entry in entries {
            guard let announcement = entry.announcement, case .removed(let name) = announcement.event else { continue }
            report.pairs += 1
            judgeRemoval(name)
        }
    }

    private func judgeRemoval(_ name: String) {
        guard let number = Int(name.dropFirst()) else { return }
        let user = users[number]
        let there = user.open.first { isWell(nodes[sockets[$0].node]) && (sockets[$0].knownSince ?? .max) < now }
        if let there {
            report.unexplained += 1
            violation("\(name) is told removed, and is there: socket \(there) on node \(sockets[there].node)")
        }
        guard user.open.isEmpty, lossAt < now - 30_000 else { return }
        let gone = now - user.since
        if now < user.endsAt {
            report.unexplained += 1
            violation("\(name) is told removed \(gone) ms after \(user.end == .killed ? "the kill" : "being sent away")")
        }
        if user.end == .killed, user.channel > 0, isLonely(user.since) {
            report.rescues["killed node to member_removed", default: []].append(gone)
        }
    }

    /// Nothing but the kill of that time is wrong.
    private func isLonely(_ kill: Int64) -> Bool { lonelyKill == kill && now < kill + 8000 }

    // MARK: Webhooks

    func noteFact(_ announcement: Announcement, _ node: MemberNode) {
        guard let channel = announcement.place.flatMap({ places.firstIndex(of: $0) }) else { return }
        let (subject, isThere): (String, Bool)
        switch announcement.event {
        case .added(let user, _): (subject, isThere) = (user, true)
        case .removed(let user): (subject, isThere) = (user, false)
        case .occupied: (subject, isThere) = ("", true)
        case .vacated: (subject, isThere) = ("", false)
        case .count, .info, .dead: return
        }
        if facts[node.index][channel]?[subject] == isThere, now < lossAt + Self.lossMax {
            report.duplicates["read again by one node, whose memory of Redis was lost", default: 0] += 1
        } else if facts[node.index][channel]?[subject] == isThere {
            report.unexplained += 1
            violation("webhooks of node \(node.index) hear again that \(subject) is \(isThere ? "there" : "gone") in \(channel)")
        }
        facts[node.index][channel, default: [:]][subject] = isThere
        guard !subject.isEmpty, let name = ChannelName(places[channel].channel) else { return }
        note(
            ChannelFact(
                app: 0, channel: name, event: isThere ? .memberAdded(user: subject) : .memberRemoved(user: subject),
                position: announcement.id), node)
    }

    // MARK: Calm times

    /// Every second: where all is well, everybody knows who is there.
    func check() {
        schedule(1000, .check)
        guard isCalm(for: 20_000) else { return }
        var (there, gone) = (Array(repeating: Set<String>(), count: places.count), Array(repeating: Set<String>(), count: places.count))
        for user in users {
            if user.open.contains(where: { now - (sockets[$0].knownSince ?? now) > Self.knownMax }) {
                there[user.channel].insert(user.name)
            }
            if user.open.isEmpty, now - user.since > Self.knownMax { gone[user.channel].insert(user.name) }
        }
        for user in there.joined().sorted() where told[user] == false { lost("the app's server does not know that \(user) is there") }
        for user in gone.joined().sorted() where told[user] == true { lost("the app's server does not know that \(user) is gone") }
        for node in nodes where isWell(node) {
            for number in node.sockets {
                guard let since = sockets[number].knownSince, now - since > 1000 else { continue }
                let channel = users[devices[sockets[number].device].user].channel
                for user in there[channel].subtracting(sockets[number].known).sorted() {
                    lost("\(user) is there, and socket \(number) does not know")
                }
                for user in gone[channel].intersection(sockets[number].known).sorted() {
                    lost("\(user) is gone, and socket \(number) does not know")
                }
            }
            for (channel, told) in facts[node.index].sorted(by: { $0.key < $1.key }) {
                for user in there[channel].sorted() where told[user] == false {
                    lost("webhooks of node \(node.index) miss that \(user) is there")
                }
                for user in gone[channel].sorted() where told[user] == true {
                    lost("webhooks of node \(node.index) miss that \(user) is gone")
                }
            }
        }
        report.changes["looks at calm times", default: 0] += 1
    }

    private func lost(_ text: String) {
        report.lost += 1
        violation(text)
    }

    func violation(_ text: String) {
        report.violationCount += 1
        if report.violations.count < 10 { report.violations.append("\(now) ms: \(text)") }
    }
}

/// Texts of the server's events about members, as far as the judge reads them.
private enum FrameText {
    /// Users that joined frames name, and whether they were added.
    static func changes(_ text: String) -> [(user: String, isAdded: Bool)] {
        text.components(separatedBy: "pusher_internal:member_").dropFirst().compactMap { part in
            part.components(separatedBy: "user_id\\\":\\\"").dropFirst().first.map {
                (String($0.prefix { $0 != "\\" }), part.hasPrefix("added"))
            }
        }
    }

    /// Members of an acknowledgement.
    static func ids(_ text: String) -> Set<String> {
        guard let list = text.components(separatedBy: "\\\"ids\\\":[").dropFirst().first?.prefix(while: { $0 != "]" }) else { return [] }
        return Set(list.split(separator: ",").map { String($0).replacingOccurrences(of: "\\\"", with: "") })
    }
}
