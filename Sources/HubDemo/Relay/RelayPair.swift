internal import Glibc

/// One connection of a phone: the socket of its app, and the one to the hub. Belongs to the relay's thread.
struct RelayPair {
    /// One direction: bytes that were read at one side and wait to be written at the other.
    struct Lane {
        var waiting: [UInt8] = []
        /// The reading side has ended.
        var isOver = false

        /// More is read only when this has left, so a slow reader slows its writer down.
        var hasRoom: Bool { waiting.isEmpty && !isOver }
    }

    /// The app's socket; -1 once closed.
    private(set) var app: Int32
    /// The hub's socket; -1 once closed.
    private(set) var hub: Int32
    private var up = Lane()
    private var down = Lane()
    /// The phone has lost this connection in airplane mode: its bytes go nowhere.
    private(set) var isLost = false

    private static let chunkBytes = 16 * 1024

    init(app: Int32, hub: Int32) {
        self.app = app
        self.hub = hub
    }

    /// The events that poll(2) is to wait for at each side.
    var interest: (app: Int32, hub: Int32) {
        if isLost { return (0, 0) }
        return (
            (up.hasRoom ? POLLIN : 0) | (down.waiting.isEmpty ? 0 : POLLOUT),
            (down.hasRoom ? POLLIN : 0) | (up.waiting.isEmpty ? 0 : POLLOUT)
        )
    }

    /// Moves what can be moved. False: the pair is over.
    mutating func move() -> Bool {
        if isLost { return true }
        Self.read(app, into: &up)
        Self.read(hub, into: &down)
        guard Self.write(&up, to: hub), Self.write(&down, to: app) else { return false }
        // When one side has ended, the other gets the rest, and then its end.
        return !(up.isOver && up.waiting.isEmpty) && !(down.isOver && down.waiting.isEmpty)
    }

    /// The phone has no network any more.
    mutating func lose() { isLost = true }

    /// The phone's new network resets the app's side. The hub's side stays, silent.
    mutating func resetApp() {
        guard app >= 0 else { return }
        var linger = Glibc.linger(l_onoff: 1, l_linger: 0)
        unsafe setsockopt(app, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<Glibc.linger>.size))
        Glibc.close(app)
        app = -1
    }

    /// Whether the hub has given a lost connection up.
    var isGivenUp: Bool {
        var byte: UInt8 = 0
        while true {
            let count = unsafe recv(hub, &byte, 1, Int32(MSG_DONTWAIT))
            if count > 0 { continue }
            return count == 0 || errno != EAGAIN
        }
    }

    /// Ends both sides.
    mutating func close() {
        if app >= 0 { Glibc.close(app) }
        if hub >= 0 { Glibc.close(hub) }
        app = -1
        hub = -1
    }

    private static func read(_ socket: Int32, into lane: inout Lane) {
        guard lane.hasRoom else { return }
        var bytes = [UInt8](repeating: 0, count: chunkBytes)
        let count = unsafe Glibc.read(socket, &bytes, bytes.count)
        if count > 0 {
            lane.waiting = Array(bytes.prefix(count))
        } else if count == 0 || errno != EAGAIN && errno != EINTR {
            lane.isOver = true
        }
    }

    /// False if the socket takes nothing any more.
    private static func write(_ lane: inout Lane, to socket: Int32) -> Bool {
        guard !lane.waiting.isEmpty else { return true }
        let count = unsafe lane.waiting.withUnsafeBytes { unsafe send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
        if count > 0 { lane.waiting.removeFirst(count) }
        return count > 0 || errno == EAGAIN || errno == EINTR
    }
}
