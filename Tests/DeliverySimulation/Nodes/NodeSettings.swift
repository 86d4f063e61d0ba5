/// Settings of a run with several nodes. The same settings give the same run, step by step.
package struct NodeSettings: Sendable {
    /// Everything that happens follows from it.
    package var seed: UInt64
    /// Event-recipient pairs to publish.
    package var pairs: Int
    package var nodes = 3
    package var channels = 24
    package var participantsPerChannel = 25
    /// Between two faults, on average, in milliseconds; 0: none.
    package var faultInterval: Int64 = 20_000
    /// A rule that is broken on purpose, to see it caught.
    package var broken: NodeRule?

    package init(seed: UInt64, pairs: Int) {
        self.seed = seed
        self.pairs = pairs
    }
}

/// Rules between nodes that the simulation can break in how it drives the parts.
package enum NodeRule: String, CaseIterable, Sendable {
    /// A new owner asks nobody who is present: the unknown count as absent.
    case noAttend = "no-attend"
    /// A new owner that has not reached the others within a second and a half asks them no more.
    case questionGivenUp = "question-given-up"
    /// A node that stood still hands on what it reads, and sends what it had in hand.
    case noDeadline = "no-deadline"
    /// Each try of a publish makes events of its own.
    case noPublishIDs = "no-publish-ids"
    /// A new owner does not hear who was written an event before.
    case letOutIgnored = "let-out-ignored"
    /// A commit whose answer was lost stays, and nobody acts on it.
    case unknownStays = "unknown-stays"
    /// A new owner does not look at what the former one left open.
    case noTakeover = "no-takeover"
    /// A new owner sends replays before it awaits the open events.
    case replayAtOnce = "replay-at-once"
    /// A node that joins anew does not tell who is present on it.
    case silentGreeting = "silent-greeting"
    /// A former owner commits on.
    case noFence = "no-fence"
    /// Entries that were in a lost memory of Redis are not appended again in the new one.
    case noSecondAppend = "no-second-append"
    /// A node takes a new memory for the former one: it reads on at its place there, appends nothing again, and says nothing of itself.
    case epochIgnored = "epoch-ignored"
    /// A node does not say who is present on it in a new memory. The others may have declared it dead in the former one.
    case silentEpoch = "silent-epoch"
    /// Others are not given up who have never come to a new memory, or whose death a node missed that joins anew.
    case lostStay = "lost-stay"
    /// The stream is trimmed by a node's own clock, which is minutes ahead.
    case trimByClock = "trim-by-clock"
    /// Readers tell news from doubles by the ids of the entries.
    case pollByID = "poll-by-id"
    /// Nobody is asked for the receipts that lie there before a push falls due.
    case noQuestion = "no-question"
    /// A node counts as dead by the time of its last beat, on its clock.
    case leaseByClock = "lease-by-clock"
    /// A node writes the newest version that it reads.
    case versionAtOnce = "version-at-once"
    /// A node that stops hands nothing over.
    case abruptStop = "abrupt-stop"
}
