package import HubDefinitions

/// A person whom a search found.
package struct FoundPerson: Sendable, Equatable {
    /// Rows that a search reads for the beginning of a name. One person may have many of them.
    package static let namedRowsMax = 200

    /// User id.
    package var user: String
    /// The newest place on a roster; nil: only devices are known.
    package var participant: Participant?
    /// Whether the user has a device row.
    package var isRegistered: Bool

    /// A person as stored.
    package init(user: String, participant: Participant?, isRegistered: Bool) {
        self.user = user
        self.participant = participant
        self.isRegistered = isRegistered
    }
}

/// The events that somebody asks for.
package struct EventSearch: Sendable, Equatable {
    /// Id of the app.
    package var app: String
    /// The only channel; nil: all of them.
    package var channel: String?
    /// The name, or its beginning; nil: any.
    package var name: String?
    /// Whether `name` is a beginning.
    package var isBeginning: Bool
    /// Id of the last event of the page before; nil: the newest events.
    package var after: String?

    /// The newest events of the app unless given.
    package init(app: String, channel: String? = nil, name: String? = nil, isBeginning: Bool = false, after: String? = nil) {
        self.app = app
        self.channel = channel
        self.name = name
        self.isBeginning = isBeginning
        self.after = after
    }

    /// Most events that one call looks at for a name.
    package static let candidatesMax = 50_000
    /// The same in one channel.
    package static let channelCandidatesMax = 5_000
    /// Most events of one page.
    package static let pageMax = 100
    /// Most events that a search by a beginning of the id looks at, and most sessions of all apps by one of the join code.
    package static let idCandidatesMax = 1_000
}

/// A page of events, the newest first. Events of one millisecond come in no particular order, except in one channel.
package struct FoundEvents: Sendable, Equatable {
    /// The page.
    package var events: [EventRecord]
    /// `EventSearch.after` of the next page; nil: nothing is left.
    package var next: String?

    /// A page as stored.
    package init(events: [EventRecord], next: String?) {
        self.events = events
        self.next = next
    }
}

/// Finds people, sessions and events by the beginnings of their names. Every look-up is bounded. Callable from any thread.
package protocol SearchStore: Sendable {
    /// People of the app whose user id begins with the text, in order, then people whose name does, whatever the case of ASCII letters.
    func people(app: String, beginning text: String, limit: Int) async throws -> [FoundPerson]
    /// Sessions whose id begins with the text, in order, then those whose join code does, in any case. It looks at
    /// `EventSearch.idCandidatesMax` codes of all apps.
    func sessions(app: String, beginning text: String, limit: Int) async throws -> [Session]
    /// A person's places on rosters, the newest first.
    func places(app: String, user: String, limit: Int) async throws -> [Participant]
    /// Events of the app whose id begins with the text, among the first `EventSearch.idCandidatesMax` of all apps.
    func events(app: String, idBeginning text: String, limit: Int) async throws -> [EventRecord]
    /// The newest events. One call looks at a bounded number of them for a name, so a page may be short and still have a `next`.
    /// An event of `after` that is gone has nothing after it.
    /// - Parameter limit: at most `EventSearch.pageMax`.
    func newestEvents(_ search: EventSearch, limit: Int) async throws -> FoundEvents
}

extension String {
    /// A text behind every text that begins with this one, in the order of bytes.
    package var endOfBeginnings: String { self + "\u{10FFFF}" }
}
