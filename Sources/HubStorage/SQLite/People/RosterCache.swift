import GRDB
internal import HubDefinitions
internal import HubDelivery
internal import Synchronization

/// Rosters that were read lately, until one of their rows changes.
///
/// Most publishes of a session meet the roster of the publish before, and reading 10,000 people takes longer than deciding for them. SQLite
/// tells of each changed row in the writer's thread, whatever statement changed it. Nobody else writes to the file.
final class RosterCache: TransactionObserver, Sendable {
    /// A roster as it was read.
    struct Roster: Sendable {
        /// In the order of `Participant.number`.
        var entries: [RosterEntry] = []
        /// Row ids of the devices, in no particular order.
        var devices: [Int64] = []
    }

    private struct Kept {
        let app: String
        let session: String
        let entries: [RosterEntry]
        /// In their order.
        let devices: [Int64]

        func holds(participant number: Int64) -> Bool {
            RosterCache.contains(entries, number) { $0.participant.number }
        }

        func holds(device row: Int64) -> Bool { RosterCache.contains(devices, row) { $0 } }
    }

    /// Changes of one transaction.
    private enum Changes {
        case none
        case rows(participants: Set<Int64>, devices: Set<Int64>)
        /// Rows came, or too many changed to be named.
        case any
    }

    private struct State {
        /// The newest use last.
        var kept: [Kept] = []
        var people = 0
        /// Grows with each commit that changed people or devices.
        var version: UInt64 = 0
        var changes = Changes.none
    }

    /// People of all kept rosters, at some 600 bytes each. A longer roster is not kept.
    static let peopleMax = 50_000
    /// Kept rosters. If exceeded, the one used longest ago is dropped.
    static let rostersMax = 64
    private static let rowsMax = 100
    private let state = Mutex(State())

    /// The roster as the last commit left it; nil: it has to be read.
    func roster(app: String, session: String) -> [RosterEntry]? {
        state.withLock { state in
            guard let place = state.kept.lastIndex(where: { $0.app == app && $0.session == session }) else { return nil }
            let kept = state.kept.remove(at: place)
            state.kept.append(kept)
            return kept.entries
        }
    }

    /// Names the state before a read.
    var version: UInt64 { state.withLock { $0.version } }

    /// Keeps a roster, unless people or devices have changed since.
    /// - Parameter version: before the read.
    func keep(_ roster: Roster, app: String, session: String, version: UInt64) {
        guard roster.entries.count <= Self.peopleMax else { return }
        let kept = Kept(app: app, session: session, entries: roster.entries, devices: roster.devices.sorted())
        state.withLock { state in
            guard state.version == version, !state.kept.contains(where: { $0.app == app && $0.session == session }) else { return }
            state.kept.append(kept)
            state.people += kept.entries.count
            while state.people > Self.peopleMax || state.kept.count > Self.rostersMax {
                state.people -= state.kept.removeFirst().entries.count
            }
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
            var (participants, devices): (Set<Int64>, Set<Int64>) = ([], [])
            switch state.changes {
            case .any: return
            case .none: break
            case .rows(let earlier, let former): (participants, devices) = (earlier, former)
            }
            switch (event.tableName, event.kind) {
            case ("session", .update), ("session", .insert): return
            case ("participant", .update), ("participant", .delete): participants.insert(event.rowID)
            case ("device", .update), ("device", .delete): devices.insert(event.rowID)
            default:
                state.changes = .any
                return
            }
            let isMany = participants.count + devices.count > Self.rowsMax
            state.changes = isMany ? .any : .rows(participants: participants, devices: devices)
        }
    }

    func databaseDidCommit(_ db: Database) {
        state.withLock { state in
            switch state.changes {
            case .none: return
            case .any:
                state.kept = []
            case .rows(let participants, let devices):
                state.kept.removeAll { kept in
                    participants.contains(where: kept.holds(participant:)) || devices.contains(where: kept.holds(device:))
                }
            }
            state.people = state.kept.reduce(0) { $0 + $1.entries.count }
            state.version += 1
            state.changes = .none
        }
    }

    func databaseDidRollback(_ db: Database) { state.withLock { $0.changes = .none } }
}
