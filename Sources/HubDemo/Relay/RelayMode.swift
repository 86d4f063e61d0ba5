/// The state of a phone's network, as the relay between phone and hub plays it.
package enum RelayMode: String, Sendable {
    /// Bytes go both ways.
    case open
    /// The app is suspended: its sockets stay, and nobody reads or writes them. Afterwards it reads what has come.
    case held
    /// Airplane mode: no byte passes, and no close frame either. Afterwards the phone has another address, so its former connections
    /// are lost to it. The hub still believes in them, until it gives them up by itself.
    case silent
}
