import HubCore
import HubDefinitions
import HubDelivery

/// A message between nodes; `DeliveryMessage` without the parts that no simulated fault concerns.
enum NodeMessage {
    case hello(isQuestion: Bool)
    case reports([DeliveryBook.Report])
    case publish(Int)
    case published(asker: UInt64, Int, isTaken: Bool)
    case event(NodeRelease)
    case wasLetOut(number: UInt64, ticket: UInt64)
    case prove(node: UInt64, event: UInt64, [ConnectionID])
    case replay(node: UInt64, ConnectionID, token: UInt64, [Int])
    case ask(round: UInt64)
    case heard(asker: UInt64, round: UInt64)
    case attend(round: UInt64, partitions: Set<Int32>)
    case attended(asker: UInt64, round: UInt64)
    /// Redis' own word: a run was declared dead.
    case dead(UInt64)
}

/// An event on its way to the subscribers of all nodes.
struct NodeRelease {
    let event: Int
    /// The owner's run.
    let owner: UInt64
    let attendedUpTo: [UInt64: UInt64]?
    let receipt: UInt64?
    let isAgain: Bool
    let serial: UInt64
}

/// An item of a node's delivery task.
enum NodeWord {
    case item(DeliveryBook.Item)
    case reports(UInt64, [DeliveryBook.Report])
    case publish(Int, of: UInt64)
    /// A publish that waits in the store.
    case row(Int)
    case joined(UInt64)
    case left(UInt64)
    case gap(UInt64)
    case restarted
    case wasLetOut(UInt64, number: UInt64, ticket: UInt64)
    case heard(UInt64, round: UInt64)
    case attended(UInt64, round: UInt64)
    case attendedNoMore(round: UInt64)
    case owned(Set<Int32>)
    /// The same as `joined`, `left` and `owned`, when decided publishes are stored.
    case joins(UInt64)
    case leaves(UInt64)
    case owns(Set<Int32>)
    case taken(round: UInt64)
}

/// Partitions that have just come to a node.
struct NodeTakeover {
    let round: UInt64
    var partitions: Set<Int32>
    var awaited: Set<UInt64>
    var held: [NodeWord] = []
    var arrivals: [Arrival] = []
    var isReading = false
}

/// A publish as its backend knows it, and what became of it.
final class NodePublish {
    let index: Int
    let channel: Int
    let lifetime: Int64
    let id: PublishID
    /// Where the backend asked, and in which run of that node.
    let asker: Int
    var isAnswered = false
    /// It waits in the store, because its owner did not answer.
    var isRow = false
    /// It is published later, because clocks differ.
    var isLate = false
    /// The publish's events; more than one only where a rule is broken.
    var events: [Int] = []

    init(index: Int, channel: Int, lifetime: Int64, id: PublishID, asker: Int) {
        (self.index, self.channel, self.lifetime, self.id, self.asker) = (index, channel, lifetime, id, asker)
    }
}

/// A stored event with the truth about each of its recipients.
final class NodeEvent {
    struct Cell {
        var seenAt: Int64?
        /// It came to the phone after its end by the true time.
        var cameTooLate = false
        /// It was a replay, or was read in the background before: also after a push it surprises nobody.
        var isSeenAgain = false
        /// It was seen at a node that began after the event.
        var isOfYounger = false
        /// A receipt came to some node.
        var answeredAt: Int64?
        /// A receipt lay at a node that stood still.
        var lyingAt: Int64?
        /// A receipt came to the owner of that time.
        var receiptAt: Int64?
        /// The owner of that time waited no more.
        var fellDueAt: Int64?
        var pushDecidedAt: Int64?
        var atCommit = false
        var shownAt: Int64?
        var end: String?
    }

    enum Retiming { case early, late }

    let publish: Int
    let record: EventRecord
    /// On the simulation's clock.
    let committedAt: Int64
    /// How far its owner's wall clock was ahead of the true time.
    let ahead: Int64
    /// It ends earlier or later than it does, by the clock of an owner that has read it.
    var retimed: Retiming?
    let lifetime: Int64
    let users: [String]
    let notes: [RecipientNote]
    var cells: [Cell]
    var confirmed: [Bool]
    var settled: [Bool]
    var isOpen: Bool
    /// The book's number of the owner of that time.
    var number: UInt64?

    init(publish: Int, record: EventRecord, at: Int64, ahead: Int64 = 0, lifetime: Int64, users: [String], notes: [RecipientNote]) {
        (self.publish, self.record, committedAt, self.ahead) = (publish, record, at, ahead)
        (self.lifetime, self.users, self.notes) = (lifetime, users, notes)
        cells = Array(repeating: Cell(), count: users.count)
        confirmed = Array(repeating: false, count: users.count)
        settled = notes.map { $0.choice != .awaited }
        isOpen = notes.contains { $0.choice == .awaited }
    }
}

/// A person with one phone.
struct NodePerson {
    let name: String
    let channel: Int
    let place: Int
    let device: Device
    var connection: Int?
    /// Changes whenever the person comes or goes.
    var step = 0
    /// The app is in the background, and reads unseen.
    var isHidden = false
    /// Events that were read so.
    var unseen: Set<Int> = []
    /// The newest times at which the app came to the screen or left it.
    var looks: [Int64] = []
}

/// A socket to one run of a node.
final class NodeSocket {
    let id: ConnectionID
    let person: Int
    let node: Int
    /// The process, and the run of the node that has let it in or took it along.
    let life: Int
    var run: UInt64
    var ticket: UInt64 = 0
    var since = Int64.max
    /// As the app told its node.
    var state = AppState.unknown
    var isOpenAtServer = true
    var isOpenAtClient = true
    var isCut = false
    var downAt: Int64 = 0
    var upAt: Int64 = 0
    /// Until when the phone hears late.
    var slowUntil: Int64 = 0
    /// The newest receipt that came while the node stood still; a cut later does not undo it.
    var lies: UInt64 = 0
    /// Events that the program has read lately, in sight or not, and how many it had read before them.
    var read: [(event: Int, isSeen: Bool)] = []
    var readBefore = 0

    init(id: ConnectionID, person: Int, node: SimNode) {
        (self.id, self.person, self.node, life, run) = (id, person, node.index, node.life, node.run)
    }
}

/// A push in the store.
struct NodePush {
    var record: PushRecord
    let event: Int
    let place: Int
    var isDone = false
    /// The process that has it in hand.
    var leasedBy: Int64?
    /// It is on its way to the gateway.
    var isSending = false
    /// A node that lives on gave its partition back meanwhile.
    var isGivenBack = false
}
