package import HubCore
package import HubDefinitions

extension DeliveryBook {
    /// One thing that the caller has to do. Effects are carried out in order.
    package enum Effect: Sendable {
        /// Commits the batch, and passes the outcome to `committed` before the next effect.
        case commit(Batch)
        /// Hands a committed event to every loop.
        case letOut(Release)
        /// Hands an event to every loop that an earlier owner of the channel may have handed out, or not.
        case letOutAgain(EventRecord, Release)
        /// Answers a publish: one list per request, with the event's id per channel; nil where nothing is kept of the event.
        case respond(UInt64, Result<[[String?]], PublishRefusal>)
        /// Answers a forecast: one for each channel, in order.
        case forecast(UInt64, [EventForecast])
        /// Takes these publishes now, before the next item.
        case again([Publish])
        /// The change of the definitions is in force on every loop.
        case done([UInt64])
        /// Committed pushes are due.
        case push([PushRecord])
        /// Work for the task that writes settlements and rows.
        case plan(PushPlan.Work)
        /// Asks these connections for a sign of life, on behalf of the event.
        case prove(event: UInt64, [ConnectionID])
        /// Reads the events that somebody missed; the answer is `Item.replay`.
        case read(Arrival)
        /// Sends a replay to its connection; the loop reports the token back.
        case replay(token: UInt64, Replay)
        /// Has every loop report what has come to it; each answers with `Item.heard`.
        case ask(round: UInt64)
        /// For the outbox, which asks when a push leaves.
        case comeback(Comebacks.Word)
        /// The roles that a connection stands for on a channel.
        case roles(ConnectionID, channel: String, RoleSet)
        /// The hub has signed for the connection; a nil channel is a sign-in.
        case signed(ConnectionID, channel: String?)
        case expel(Removal)
        /// Lifts the bar for the user; nil: for everybody.
        case readmit(app: String, channel: String, user: String?)
        /// These definitions are in force from now on.
        case definitions(DefinitionSet)
    }

    /// Publishes for one transaction.
    package struct Batch: Sendable {
        package var publishes: [PreparedPublish]
        /// Ends of scheduled publishes.
        package var takes: [ScheduledTake]

        package var records: [EventCommit] { publishes.flatMap(\.records) }
    }

    /// Outcome of a commit that failed.
    package enum CommitFailure: Error, Sendable {
        /// These scheduled publishes no longer wait; the others can be committed.
        case notWaiting([String])
        case store
    }

    /// One event on its way to the loops.
    package struct Release: Sendable {
        /// The publish, the index of its request, and the index of the channel there.
        package var publish: UInt64
        package var request: Int
        package var channel: Int
        /// Nil: nothing is kept of the event.
        package var eventID: String?
        /// The roles that receive the frame.
        package var roles = RoleSet.everybody
        /// Per loop, the last attendance ticket known when the surfaces were decided.
        package var attendedUpTo: [UInt64]?
        /// The event's number where a receipt is awaited.
        package var receipt: UInt64?
        /// The connection that the frame skips.
        package var excluded: ConnectionID?
    }

    /// Subscriptions that end.
    package struct Removal: Sendable {
        package struct Signed: Sendable {
            package var socket: String
            package var channel: String
            package var user: String
        }

        /// Subscriptions apart from the signed ones.
        package enum Meant: Sendable {
            case nobodyElse
            case everybody(channel: String)
            case user(String, channel: String)
            /// All channels of one session of the definition.
            case session(String, definition: String)
        }

        package var app: String
        package var meant: Meant
        /// Connections with the hub's own signature.
        package var signed: [Signed]
    }
}

/// A decided publish that is not yet committed.
package struct PreparedPublish: Sendable {
    package let publish: DeliveryBook.Publish
    package var records: [EventCommit] = []
    /// Events whose receipts are awaited after the commit.
    package var openings: [(Escalation.Opening, PushContext)] = []
    package var releases: [DeliveryBook.Release] = []
    /// Per request, the event's id per channel.
    package var outcomes: [[String?]] = []
    /// The decision for each channel, for a publish that only asks.
    private(set) var forecasts: [EventForecast] = []
    /// Recipients that further forecasts may list.
    private(set) var room = EventForecast.recipientsMax

    init(_ publish: DeliveryBook.Publish) {
        self.publish = publish
    }

    mutating func add(_ forecast: EventForecast) {
        room -= forecast.recipients.count
        forecasts.append(forecast)
    }

    /// Ends the row of a scheduled publish.
    /// - Parameter time: milliseconds since 1970.
    func take(at time: Int64) -> ScheduledTake? {
        guard case .scheduled(let id) = publish.purpose else { return nil }
        return ScheduledTake(id: id, at: time, events: records.map(\.event.id))
    }
}
