internal import HubCore

/// The rule for event names (docs/protocol.md, 2.2): a length and no more. Any character is allowed, since Laravel
/// publishes class names with backslashes.
///
/// Prefixes are compared as bytes, as clients do: to `String.hasPrefix` a colon with a combining accent is no colon.
package enum EventName {
    /// Unicode scalars; server SDKs check the same limit.
    package static let charactersMax = 200

    /// Names of the protocol itself, which neither publishers nor clients may use.
    package static func isReserved(_ name: String) -> Bool {
        reserved.begins(name) || reservedInside.begins(name)
    }

    /// The only names under which clients may send.
    package static func isClientEvent(_ name: String) -> Bool { ofClients.begins(name) }

    private static let reserved: StaticString = "pusher:"
    private static let reservedInside: StaticString = "pusher_internal:"
    private static let ofClients: StaticString = "client-"
}
