package import HubDefinitions

/// One thing that has just happened in an app, for somebody who looks.
package struct LiveFact: Sendable, Equatable {
    /// Sorts of facts.
    package enum Kind: String, Sendable, CaseIterable {
        case join, leave, event, decision, receipt, push
    }

    /// The fact itself. Times are milliseconds.
    package enum Detail: Sendable, Equatable {
        /// A subscription to a channel with a definition began.
        case join(socket: String)
        /// Such a subscription ended.
        case leave(socket: String?)
        /// An event was published. Only an event that is kept has an id, a policy, recipients and a sequence.
        case event(name: String, id: String?, policy: Policy?, recipients: Int?, sequence: Int64?)
        /// A recipient's state and decision at the commit.
        case decision(event: String, RecipientNote)
        /// A recipient's receipt, so long after the commit.
        case receipt(event: String, after: Int64)
        /// The result of an attempt, or the end of a push.
        case push(event: String, nid: String, device: String, PushState, answer: String?, attempt: Int)

        /// Sort of the fact.
        package var kind: Kind {
            switch self {
            case .join: .join
            case .leave: .leave
            case .event: .event
            case .decision: .decision
            case .receipt: .receipt
            case .push: .push
            }
        }
    }

    /// Milliseconds since 1970.
    package var at: Int64
    /// The channel's name; nil if it is not known.
    package var channel: String?
    /// The person's user id; nil if it is about nobody in particular.
    package var user: String?
    /// The fact itself.
    package var detail: Detail

    /// A fact about a person, a channel, or both.
    package init(at: Int64, channel: String?, user: String?, _ detail: Detail) {
        self.at = at
        self.channel = channel
        self.user = user
        self.detail = detail
    }
}

/// The facts that one listener wants.
package struct LiveFilter: Sendable, Equatable {
    /// Id of the app.
    package var app: String
    /// The only channel; nil: all of them.
    package var channel: String?
    /// The only person; nil: everybody.
    package var user: String?
    /// Sorts of facts.
    package var kinds: Set<LiveFact.Kind>

    /// All facts of the app unless given.
    package init(app: String, channel: String? = nil, user: String? = nil, kinds: Set<LiveFact.Kind> = Set(LiveFact.Kind.allCases)) {
        self.app = app
        self.channel = channel
        self.user = user
        self.kinds = kinds
    }

    func wants(_ kind: LiveFact.Kind, app: String, channel: String?, user: String?) -> Bool {
        wants(kind, app: app, channel: channel) && (self.user == nil || self.user == user)
    }

    /// Whether it wants the fact of some person.
    func wants(_ kind: LiveFact.Kind, app: String, channel: String?) -> Bool {
        kinds.contains(kind) && self.app == app && (self.channel == nil || self.channel == channel)
    }
}

/// Facts for one listener since its last question.
package struct LivePage: Sendable, Equatable {
    /// Tells the listener from all others of the process.
    package var listener: UInt64
    /// At most `LiveListener.keptMax`, in order.
    package var facts: [LiveFact]
    /// Names the place behind the last fact.
    package var cursor: String
    /// Facts before these are missing: the listener is new, asked too late, or of another process.
    package var isGap: Bool
    /// Facts that were left out because more than `LiveListener.perSecondMax` came in a second, or because a loop would have waited.
    package var skipped: UInt64
    /// Number of the listener's question.
    let question: UInt64

    /// Nothing has happened, and nothing is missing.
    package var isEmpty: Bool { facts.isEmpty && !isGap && skipped == 0 }
}
