/// A person in a session.
package struct Participant: Sendable, Equatable {
    /// Id of the app.
    package var app: String
    /// The session's `id`.
    package var session: String
    /// The identity that presence channels, devices and `{user}` use; unique in the app.
    package var user: String
    /// The store's own number, unique over all apps, which clients get as a numeric `id`.
    package var number: Int64
    /// Name shown to others.
    package var name: String
    /// E-mail address; nil if unknown.
    package var email: String?
    /// Role; nil for none.
    package var role: String?
    /// Milliseconds since 1970.
    package var joinedAt: Int64
    /// Way in which a join recognises the participant; nil if the backend made the participant, whom no join finds.
    package var joinedBy: JoinIdentity?

    /// A participant as stored.
    package init(
        app: String, session: String, user: String, number: Int64, name: String, email: String?, role: String?, joinedAt: Int64,
        joinedBy: JoinIdentity? = nil
    ) {
        self.app = app
        self.session = session
        self.user = user
        self.number = number
        self.name = name
        self.email = email
        self.role = role
        self.joinedAt = joinedAt
        self.joinedBy = joinedBy
    }
}

/// Way in which a join recognises somebody who has joined before.
package enum JoinIdentity: String, Sendable { case email, device }
