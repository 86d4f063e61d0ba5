package import HubCrypto

/// Ways into the console. No description contains a hash or the ticket.
package struct ConsoleAccess: Sendable, CustomStringConvertible, CustomReflectable {
    /// Hash of the password of operators, who may act.
    package let operatorPassword: PasswordHash?
    /// Hash of the password of viewers, who may only look.
    package let viewerPassword: PasswordHash?
    /// Opens the console once, for an operator: the last part of the link that the start prints.
    package let ticket: String?
    /// Whether browsers reach the hub by TLS of its own.
    package let isTLS: Bool

    /// - Parameters:
    ///   - operatorPassword: nil: no operator signs in by password.
    ///   - viewerPassword: nil: there are no viewers.
    ///   - ticket: nil: there is no link that opens the console once.
    package init(operatorPassword: PasswordHash?, viewerPassword: PasswordHash?, ticket: String?, isTLS: Bool) {
        self.operatorPassword = operatorPassword
        self.viewerPassword = viewerPassword
        self.ticket = ticket
        self.isTLS = isTLS
    }

    /// A ticket that nobody can guess.
    package static func newTicket() -> String { Base64URL.encode(SecureRandom.bytes(ticketBytes)) }

    package var description: String { hasPassword ? "by password" : ticket == nil ? "closed" : "by link" }
    package var customMirror: Mirror { Mirror(self, children: ["ways": description]) }

    /// Whether a password opens the console.
    var hasPassword: Bool { operatorPassword != nil || viewerPassword != nil }

    /// Signs sessions: the same on all nodes with the same passwords, and another one after a change of them.
    var sessionKey: HMACKey {
        let parts = [operatorPassword?.text, viewerPassword?.text, ticket].map { $0 ?? "" }
        return HMACKey(Digest.sha256(Array("tandem console\n\(parts.joined(separator: "\n"))".utf8)))
    }

    private static let ticketBytes = 24
}

/// Rights of somebody who has signed in to the console.
enum ConsoleRole: String, Sendable {
    /// Only looks.
    case viewer
    /// Looks and acts.
    case `operator`
}
