internal import Glibc
internal import HubCore

/// Adoption of the descriptors that the acceptor handed over, a few per turn.
///
/// Each new client costs a handshake, an upgrade and its subscriptions, and one turn handles everything that is ready.
/// When thousands reconnect at once, a bound per turn keeps turns short for publishes and established connections. A
/// newcomer has been accepted and only waits some milliseconds longer.
extension Loop {
    /// Adopts newcomers, up to the bound per turn. Called when the loop is woken.
    func adoptNewcomers() {
        if handle.adoptions.isOccupied {
            handle.adoptions.drain(into: &newcomers.arriving)
            newcomers.take()
        }
        // After the drain: a descriptor that was handed over after a replacement must not be adopted before it.
        if let certificate = handle.takeCertificate() { native.use(certificate) }
        var left = LoopOptions.adoptionsPerTurnMax
        while left > 0, let newcomer = newcomers.next() {
            adopt(newcomer)
            left -= 1
        }
    }

    /// Wakes the loop again at the end of a turn while newcomers wait.
    func recallNewcomers() {
        if !newcomers.isEmpty { handle.waker.wake() }
    }

    /// Closes the waiting newcomers when the loop ends.
    func dismissNewcomers() {
        while let newcomer = newcomers.next() {
            Descriptor.close(newcomer.descriptor)
            handle.released(isRequest: newcomer.isRequest)
        }
    }
}

/// Descriptors in the order of arrival. Owned by one loop.
struct Newcomers {
    /// The mailbox's last batch; the storage returns to the mailbox.
    var arriving: [Newcomer] = []
    private var waiting: [Newcomer] = []
    private var head = 0

    var isEmpty: Bool { head == waiting.count }
    var count: Int { waiting.count - head }

    /// Appends the arrived newcomers to the waiting ones.
    mutating func take() {
        waiting += arriving
        arriving.removeAll(keepingCapacity: true)
    }

    mutating func next() -> Newcomer? {
        guard head < waiting.count else { return nil }
        let newcomer = waiting[head]
        head += 1
        if head == waiting.count {
            waiting.removeAll(keepingCapacity: true)
            head = 0
        }
        return newcomer
    }
}
