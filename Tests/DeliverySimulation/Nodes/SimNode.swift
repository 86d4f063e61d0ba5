import HubCore
import HubDelivery
import HubScaleOut

/// One node: a process with the values that ship. A kill takes all of it.
final class SimNode {
    enum Step {
        case effect(DeliveryBook.Effect)
        case word(NodeWord)
    }

    enum Phase { case items, commit, end, rest }

    let index: Int
    /// Names this run between nodes; a node that was declared dead takes another.
    var run: UInt64 = 0
    /// The process.
    var life = 0
    var isUp = false
    /// Until when the process stands still.
    var isStopped = false
    /// Has heard that it was declared dead, and joins anew.
    var isJoining = false
    /// Stands still with its next commit under way.
    var stopsAtCommit = false
    /// Nothing comes from it to Redis, or from there to it.
    var isUnheard = false
    var isDeaf = false
    var isCut: Bool { isUnheard || isDeaf }
    /// Runs in short turns only.
    var isSlow = false
    var waiting: [NodeSimulation.Action] = []

    var owning: NodeOwning
    var operation: NodeOperation

    /// Listens: it has taken part once.
    var hasBegun: Bool { isUp && operation.takesPartSince != nil }
    var letsIn: Bool { hasBegun && !operation.isDraining }

    // The delivery task.
    var book: DeliveryBook
    /// When the commit under way, or the plan's write, was decided.
    var committingAt: Int64 = 0
    var writingAt: Int64 = 0
    var plan = PushPlan()
    /// The other nodes' loops in the book, by their runs.
    var table: [UInt64: Range<Int>] = [:]
    var inbox: [NodeWord] = []
    var steps = StepStack<Step>()
    var phase = Phase.rest
    var isTurnPlanned = false
    var committing: DeliveryBook.Batch?
    /// Commits without an answer: their events, and the waiting publishes that they ended.
    var unknown: [(events: [Int], rows: [Int], fence: [Int32: Int64])] = []
    var owned: Set<Int32> = []
    /// As the task was told last.
    var told: Set<Int32> = []
    var takeovers: [NodeTakeover] = []
    var lastRound: UInt64 = 0
    var lastSerial: UInt64 = 0
    var numbers: [UInt64: Int] = [:]
    /// The publish's index, by the number that the book knows it by, and who asked.
    var commands: [UInt64: (publish: Int, of: UInt64?)] = [:]
    var lastCommand: UInt64 = 0
    var rowsTaken: Set<Int> = []
    var work: [PushPlan.Work] = []
    var isPlanning = false
    var writing: PushPlan.Write?

    // The loop.
    var lastTicket: UInt64 = 0
    var lastCursor: UInt64 = 0
    var subscribers: [[Int]]
    var letOut = RecentTable<String, UInt64>(countMax: 100_000, ageMax: 60_000)
    var alone: Set<UInt64> = []
    /// Publishes that came in here and are not answered.
    var asked: Set<Int> = []

    // The ways to Redis and to PostgreSQL.
    var received = ReceivedNumbers()
    var lastNumber: UInt64 = 0
    /// Own messages that Redis may lose, by number, from `firstWord` on.
    var sent = SentEntries()
    var words: [UInt64: NodeMessage] = [:]
    var firstWord: UInt64 = 1
    /// Own messages that fail if they are not appended in time.
    var passing: [(number: UInt64, deadline: Int64)] = []
    var watch = NodeWatch()
    /// Others that have greeted lately.
    var greeted: Set<UInt64> = []
    /// Others that have not come to the memory that is read, and are declared dead with the next beat.
    var absent: Set<UInt64> = []
    var giveUps: UInt64 = 0
    /// Memories that the connections reach, and those that they were greeted by last.
    var (writerRoute, readerRoute) = (0, 0)
    var (writer, reader) = (0, 0)
    /// The next entry to read, and the newest id that was read in any memory.
    var position = 0
    var lastRead = StreamID.zero
    var trim = TrimPoint()
    var trimAt: Int64 = 0
    var isReadPlanned = false
    /// When the last beat left that Redis has answered.
    var beatAt = Int64.min / 2

    init(index: Int, process: Int64, versions: MessageVersions, book: consuming DeliveryBook, channels: Int) {
        self.index = index
        owning = NodeOwning(process: process)
        operation = NodeOperation(versions)
        self.book = book
        subscribers = Array(repeating: [], count: channels)
    }
}
