package import HubCore

/// A game, quiz or order, whose participants get events.
package struct Session: Sendable, Equatable {
    /// Id of the session's app.
    package var app: String
    /// Name that the backend gave, unique in the app; `{session}` in a channel's name stands for it.
    package var id: String
    /// The store's own number, unique over all apps.
    package var number: Int64
    /// Name of its channel definition (`quiz`).
    package var definition: String
    /// Join code, unique in the app while the session lives; compared in upper case. Nil for none.
    package var joinCode: String?
    /// Attributes that the backend gave.
    package var attributes: [String: JSONValue]
    /// Milliseconds since 1970.
    package var createdAt: Int64

    /// A session as stored.
    package init(
        app: String, id: String, number: Int64, definition: String, joinCode: String?, attributes: [String: JSONValue],
        createdAt: Int64
    ) {
        self.app = app
        self.id = id
        self.number = number
        self.definition = definition
        self.joinCode = joinCode
        self.attributes = attributes
        self.createdAt = createdAt
    }
}

extension Session {
    /// The numeric `session_id` that clients get: the backend's id if it is a number, else the store's own.
    package var clientNumber: Int64 {
        guard let own = Int64(id), own >= 0, String(own) == id else { return number }
        return own
    }
}
