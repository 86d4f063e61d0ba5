import GRDB
internal import HubDefinitions
internal import HubDelivery
internal import Synchronization

/// Sessions and their rosters that were read lately, until one of their rows changes.
///
/// Most publishes of a session meet the roster of the publish before, and reading 10,000 people takes longer than deciding for them. SQLite
/// tells of each changed row in the writer's thread, whatever statement changed it. Nobody else writes to the file.
final class RosterCache: TransactionObserver, Sendable {
    /// A roster as it was read.
    struct Roster: Sendable {
        /// Nil: there is no such session.
        var session: Session?
        /// In the order of `Participant.number`.
        var entries: [RosterEntry] = []
        /// Row ids of the devices, in no particular order.
        var devices: [Int64] = []
    }

    private struct Kept {
        let app: String
        let session: String
        let row: Session?
        let entries: [RosterEntry]
        /// In their order.
        let devices: [Int64]
        let bytes: Int

        func holds(participant number: Int64) -> Bool {
            RosterCache.contains(entries, number) { $0.participant.number }
        }

        func holds(device row: Int64) -> Bool { RosterCache.contains(devices, row) { $0 } }
    }

    /// Changes of one transaction.
    private struct Changes {
        var sessions: Set<Int64> = []
        var participants: Set<Int64> = []
        var devices: Set<Int64> = []
        /// Rows came, or too many changed to be named.
        var isAny = false
        var isNone: Bool { !isAny && count == 0 }
        var count: Int { sessions.count + participants.count + devices.count }
    }

    private struct State {
        /// The newest use last.
        var kept: [Kept] = []
        /// Grows with each commit that changed sessions, people or devices.
        var version: UInt64 = 0
        var changes = Changes()

        /// Adds up few rosters only.
        var bytes: Int { kept.reduce(0) { $0 + $1.bytes } }
    }

    /// Estimated bytes of all kept rosters: some 30,000 people with a device each. A larger roster is not kept.
    static let bytesMax = 32 << 20
    /// Estimated bytes of a participant or a device without its texts.
    private static let rowBytes = 400
    /// Kept rosters. If exceeded, the one used longest ago is dropped.
    static let rostersMax = 64
    private static let rowsMax = 100
    private let state = Mutex(State())

    /// The roster as the last commit left it; nil: it has to be read.
    func roster(app: String, session: String) -> [RosterEntry]? { kept(app: app, session: session)?.entries }

    /// The session as the last commit left it; nil: it has to be read.
    func session(app: String, id: String) -> Session? { kept(app: app, session: id)?.row }

    private func kept(app: String, session: String) -> Kept? {
        state.withLock { state in
            guard let place = state.kept.lastIndex(where: { $0.session == session && $0.app == app }) else { return nil }
            if place == state.kept.indices.last { return state.kept[place] }
            let kept = state.kept.remove(at: place)
            state.kept.append(kept)
            return kept
        }
    }

    /// Names the state before a read.
    var version: UInt64 { state.withLock { $0.version } }

    /// Keeps a roster, unless a session, people or devices have changed since.
    /// - Parameter version: before the read.
    func keep(_ roster: Roster, app: String, session: String, version: UInt64) {
        let bytes = Self.bytes(of: roster)
        guard bytes <= Self.bytesMax else { return }
        let kept = Kept(
            app: app, session: session, row: roster.session, entries: roster.entries, devices: roster.devices.sorted(), bytes: bytes)
        state.withLock { state in
            guard state.version == version, !state.kept.contains(where: { $0.app == app && $0.session == session }) else { return }
            state.kept.append(kept)
            while state.bytes > Self.bytesMax || state.kept.count > Self.rostersMax { state.kept.removeFirst() }
        }
    }

    /// Texts of strangers count by their length: names, addresses, tokens.
    private static func bytes(of roster: Roster) -> Int {
        roster.entries.reduce(0) { sum, entry in
            let person = entry.participant.name.utf8.count + (entry.participant.email?.utf8.count ?? 0) + rowBytes
            return sum + person + entry.devices.reduce(0) { $0 + ($1.token?.utf8.count ?? 0) + rowBytes }
        }
    }

    private static func contains<Element>(_ sorted: [Element], _ key: Int64, _ keyOf: (Element) -> Int64) -> Bool {
        var (low, high) = (0, sorted.count)
        while low < high {
            let middle = (low + high) / 2
            if keyOf(sorted[middle]) < key { low = middle + 1 } else { high = middle }
        }
        return low < sorted.count && keyOf(sorted[low]) == key
    }

    // MARK: TransactionObserver, on the writer's thread

    private static let tables: Set<String> = ["participant", "device", "session"]

    func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool { Self.tables.contains(eventKind.tableName) }

    func databaseDidChange(with event: DatabaseEvent) {
        state.withLock { state in
            switch (event.tableName, event.kind) {
            // Only an empty roster can be kept of a session that comes. Its first person drops it.
            case ("session", .insert): return
            case ("session", .update): state.changes.sessions.insert(event.rowID)
            case ("participant", .update), ("participant", .delete): state.changes.participants.insert(event.rowID)
            case ("device", .update), ("device", .delete): state.changes.devices.insert(event.rowID)
            default: state.changes.isAny = true
            }
            if state.changes.count > Self.rowsMax { state.changes = Changes(isAny: true) }
        }
    }

    func databaseDidCommit(_ db: Database) {
        state.withLock { state in
            let changes = state.changes
            if changes.isNone { return }
            state.kept.removeAll { kept in
                changes.isAny || kept.row.map { changes.sessions.contains($0.number) } ?? false
                    || changes.participants.contains(where: kept.holds(participant:))
                    || changes.devices.contains(where: kept.holds(device:))
            }
            state.version += 1
            state.changes = Changes()
        }
    }

    func databaseDidRollback(_ db: Database) { state.withLock { $0.changes = Changes() } }
}
