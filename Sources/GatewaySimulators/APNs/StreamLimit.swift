import Synchronization

/// SETTINGS_MAX_CONCURRENT_STREAMS of the simulated APNs: 1 until a connection's first success, then more
/// (docs/protocol.md, 9.6). The second value changes while connections live, to play a gateway that slows a client down.
final class StreamLimit: Sendable {
    let beforeSuccess: Int
    private let value: Mutex<Int>

    init(beforeSuccess: Int, afterSuccess: Int) {
        self.beforeSuccess = beforeSuccess
        value = Mutex(afterSuccess)
    }

    var afterSuccess: Int {
        get { value.withLock { $0 } }
        set { value.withLock { $0 = newValue } }
    }
}
