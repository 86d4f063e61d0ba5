internal import Glibc
internal import HubCore

/// Adoption of the descriptors that the acceptor handed over, a few per turn.
///
/// Each new client costs a handshake, an upgrade and its subscriptions, and one turn handles everything that is ready.
/// When thousands reconnect at once, a bound per turn keeps turns short for publishes and established connections. A
/// newcomer has been accepted and only waits some milliseconds longer.
extension Loop {
    /// Adopts newcomers, up to the bound per turn.
    func adoptNewcomers() {
        if handle.adoptions.isOccupied {
            handle.adoptions.drain(into: &newcomers.arriving)
            newcomers.take()
        }
        // After the drain: a descriptor that was handed over after a replacement must not be adopted before it.
        if let certificate = handle.takeCertificate() { library?.use(certificate) }
        var left = LoopOptions.adoptionsPerTurnMax
        while left > 0, let newcomer = newcomers.next() {
            adopt(newcomer)
            left -= 1
        }
    }

    /// Makes a connection of an accepted descriptor. A plain one has sent its first bytes already, which are read at once.
    private func adopt(_ newcomer: Newcomer) {
        if isStopping { return dismiss(newcomer) }
        let socket = SocketPointer.allocate(capacity: 1)
        unsafe socket.initialize(to: Socket(descriptor: newcomer.descriptor, isRequest: newcomer.isRequest))
        if let address = newcomer.address { unsafe peers[socket] = address.description }
        if let library { return unsafe adopt(socket, newcomer, by: library) }
        unsafe openDoor(socket)
        guard unsafe read(socket), unsafe poller.watch(socket) else { return unsafe gone(socket) }
    }

    private func adopt(_ socket: SocketPointer, _ newcomer: Newcomer, by library: LibWebSockets) {
        // A peer that sends nothing more must time out, too.
        hasNewTimeouts = true
        // On failure the library closes the descriptor. The library reports an end only for a descriptor that it had
        // taken, possibly later, when a TLS handshake fails at its first byte.
        let takenBefore = takenCount
        let tls = unsafe library.adopt(newcomer.descriptor, for: socket)
        if unsafe tls == nil, takenCount == takenBefore { return unsafe descriptorEnded(socket) }
        assert(takenCount == takenBefore + 1, "descriptor \(newcomer.descriptor) was reported \(takenCount - takenBefore) times")
    }

    /// libwebsockets has taken a descriptor.
    func descriptorTaken() { takenCount += 1 }

    private func dismiss(_ newcomer: Newcomer) {
        Descriptor.close(newcomer.descriptor)
        handle.released(isRequest: newcomer.isRequest)
    }

    /// Closes the waiting newcomers when the loop ends.
    func dismissNewcomers() {
        while let newcomer = newcomers.next() { dismiss(newcomer) }
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
