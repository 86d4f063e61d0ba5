internal import HubAPI
internal import HubChannels
internal import HubCore
internal import HubDelivery
internal import PusherProtocol

/// Words between the delivery tasks of several nodes. All nodes read all messages, in one order.
///
/// A message about a channel names no receiver: the node that owns the channel's partition acts on it.
enum DeliveryMessage: Sendable {
    /// A node takes part.
    case hello(Hello)
    /// Reports of the sender's loop about its connections.
    case reports(loop: Int, [NodeLoopReport])
    /// A backend's publish at the sender. Each owner of some of its channels decides about these.
    case publish(ForwardedPublish)
    /// The answer of one owner.
    case published(asker: UInt64, ticket: UInt64, PublishedPart)
    /// An event on its way to the subscribers on all nodes.
    case event(ReleasedEvent)
    /// The event had been handed to the sender's loops: subscribers up to these tickets were written it. `number` is the owner's.
    case wasLetOut(number: UInt64, tickets: [UInt64])
    /// Work of the owner for connections of one node.
    case connections(node: UInt64, ConnectionWork)
    /// Every node has its loops report what has come; each answers with `heard`.
    case ask(round: UInt64)
    case heard(asker: UInt64, round: UInt64, newcomers: Int)
    /// The sender owns these partitions from now on: every node reports who is present in their channels, then answers `attended`.
    case attend(round: UInt64, partitions: PartitionSet)
    case attended(asker: UInt64, round: UInt64)
    /// An order that came in at the sender over HTTP. With a ticket every node answers `done`.
    case order(AttendanceOrder, ticket: UInt64?)
    case done(asker: UInt64, ticket: UInt64)
    /// A question about the people in a channel, for its owner.
    case presence(ticket: UInt64, app: String, channel: String, users: [String])
    case present(asker: UInt64, ticket: UInt64, [String: ParticipantPresence])
    /// A question about an event that is not published, and the answer of the channel's owner.
    case forecast(ForwardedForecast)
    case forecasted(asker: UInt64, ticket: UInt64, ForecastAnswer)
    /// Pushes of these events are committed, and some may be of people whom another node owns.
    case pushes(events: [String])

    struct Hello: Sendable, Equatable {
        /// The random bits of the node's socket ids.
        var tag: UInt64
        var moreTag: UInt64
        var loopCount: Int
        /// Every other node answers with its own.
        var isQuestion: Bool
    }

    /// Work for connections, which are named as their own node knows them.
    enum ConnectionWork: Sendable {
        case roles(ConnectionID, channel: String, [String]?)
        case replay(ConnectionID, channel: String, token: UInt64, frames: [UInt8])
        case prove(event: UInt64, [ConnectionID])
    }

    enum AttendanceOrder: Sendable {
        case received(AppReceipt)
        case deviceState(app: String, user: String, device: String, AppState, keepsWorking: Bool)
        case signed(socket: String, app: String, user: String, device: String, channel: String?)
        case removed(app: String, session: String, definition: String, users: [String], isOver: Bool)
        case rosterChanged(app: String, session: String, user: String)

        /// Whether it says something still when it comes late. Where an app was then, and what it had read, does not.
        var isKept: Bool {
            switch self {
            case .removed, .rosterChanged, .signed: true
            case .received, .deviceState: false
            }
        }
    }
}

/// A loop's report with names that all nodes know.
enum NodeLoopReport: Sendable, Equatable {
    case attached(ConnectionID, app: String, channel: String, user: String?, isBrowser: Bool, ticket: UInt64?)
    case present(
        ConnectionID, app: String, channel: String, user: String?, isBrowser: Bool, ticket: UInt64, state: AppState, keepsWorking: Bool)
    case presentUpTo(ticket: UInt64)
    case detached(ConnectionID, channel: String)
    case state(ConnectionID, AppState, keepsWorking: Bool)
    case disconnected(ConnectionID, mayReturn: Bool)
    case pinged(events: [UInt64], cursor: UInt64)
    case proving(event: UInt64, cursor: UInt64)
    case replayed(ConnectionID, tokens: [UInt64], cursor: UInt64)
    case receipt(ConnectionID, cursor: UInt64)
}

/// A publish that came in at another node than the owner of its channels.
struct ForwardedPublish: Sendable {
    struct Request: Sendable {
        var name: String
        var channels: [String]
        var data: DataLiteral
        var excluded: SocketID?
        /// The events' ids are made of it, so that a publish that is taken twice has the same.
        var id: PublishID
    }

    /// Names the publish to its sender.
    var ticket: UInt64
    var app: String
    var requests: [Request]
    /// Somebody may have published it already: the owner looks for the events first.
    var mayBeKnown: Bool
    /// The idempotency key of the request. An owner publishes once under it, whatever nodes are asked.
    var key: String?
}

/// One owner's answer about its channels in a publish.
enum PublishedPart: Sendable {
    /// The channels, by the index of the request and the index there, with the event's id; nil: nothing is kept of the event.
    case taken([(request: Int, channel: Int, event: String?)])
    case refused([(request: Int, channel: Int)], PublishRefusal)
}

/// An event for the sockets of all nodes.
struct ReleasedEvent: Sendable {
    var app: String
    var channel: String
    var name: String
    var data: DataLiteral
    var eventID: String?
    /// Roles that get it; nil: everybody.
    var roles: [String?]?
    /// The last ticket of each loop that the owner knew, by node. Nil: all subscribers get it.
    var attendedUpTo: [UInt64: [UInt64]]?
    /// The owner's number of the event.
    var receipt: UInt64?
    var excluded: SocketID?
    /// An earlier owner may have let it out.
    var isAgain: Bool
    /// Names the event among all of its sender.
    var serial: UInt64
}

/// Partitions, a bit each.
struct PartitionSet: Sendable, Equatable {
    var bits: UInt64 = 0

    init(_ partitions: some Sequence<Int32> = []) { for partition in partitions { insert(partition) } }

    init(bits: UInt64) { self.bits = bits }

    mutating func insert(_ partition: Int32) {
        precondition((0..<Partition.count).contains(partition), "partition \(partition)")
        bits |= 1 << UInt64(partition)
    }

    func contains(_ partition: Int32) -> Bool { bits & 1 << UInt64(partition) != 0 }
    func contains(app: String, channel: String) -> Bool { contains(Partition.of(MemberPlace(app: app, channel: channel))) }
    var isEmpty: Bool { bits == 0 }
    func subtracting(_ other: PartitionSet) -> PartitionSet { PartitionSet(bits: bits & ~other.bits) }
    func union(_ other: PartitionSet) -> PartitionSet { PartitionSet(bits: bits | other.bits) }
    func intersection(_ other: PartitionSet) -> PartitionSet { PartitionSet(bits: bits & other.bits) }
}
