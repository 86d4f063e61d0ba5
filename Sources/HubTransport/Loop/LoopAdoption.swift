internal import Glibc

/// Newcomers: the descriptors that the acceptor handed over, taken in a few at a time.
///
/// When thousands of clients come back at once, each of them costs a handshake, an upgrade and its subscriptions, and all that is ready
/// at the same time is handled in one turn of the loop. A bounded number for each turn keeps turns short, so that publishes and
/// established connections have theirs between them; who waits here has been accepted and waits some milliseconds longer.
extension Loop {
    /// Takes what was handed over and has its turn. Called when the loop is woken.
    func adoptNewcomers() {
        handle.adoptions.drain(into: &newcomers.arriving)
        newcomers.take()
        // Behind the drain: a descriptor that was handed over after a replacement is not adopted before it.
        if let certificate = handle.takeCertificate() { native.use(certificate) }
        var left = LoopOptions.adoptionsPerTurnMax
        while left > 0, let newcomer = newcomers.next() {
            adopt(newcomer)
            left -= 1
        }
    }

    /// At the end of a turn: whoever still waits is next in the following one, which begins at once.
    func recallNewcomers() {
        if !newcomers.isEmpty { handle.waker.wake() }
    }

    /// The loop ends: who waits is turned away.
    func dismissNewcomers() {
        while let newcomer = newcomers.next() {
            Glibc.close(newcomer.descriptor)
            handle.released(isRequest: newcomer.isRequest)
        }
    }
}

/// Descriptors in the order of their coming. Owned by one loop.
struct Newcomers {
    /// What the mailbox gave last; its storage goes back there.
    var arriving: [Newcomer] = []
    private var waiting: [Newcomer] = []
    private var head = 0

    var isEmpty: Bool { head == waiting.count }
    var count: Int { waiting.count - head }

    /// Puts what arrived behind those who wait.
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
