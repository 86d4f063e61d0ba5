internal import HubCore
internal import Synchronization

/// What other threads may hold of a loop: hand it descriptors, wake it, ask it to stop.
package final class LoopHandle: Sendable {
    package let index: Int
    package let waker: LoopWaker
    let adoptions: Mailbox<Newcomer>
    private let held = Atomic<Int>(0)
    private let heldRequests = Atomic<Int>(0)
    private let stopRequested = Atomic<Bool>(false)
    private let newCertificate = Mutex<ServerCertificate?>(nil)

    init(index: Int, waker: LoopWaker) {
        self.index = index
        self.waker = waker
        adoptions = Mailbox(waker: waker)
    }

    /// Connections handed to the loop that have not ended: what the acceptor balances by.
    package var load: Int { held.load(ordering: .relaxed) }
    /// Of these, the ones that began with a plain HTTP request.
    package var requestLoad: Int { heldRequests.load(ordering: .relaxed) }

    var isStopRequested: Bool { stopRequested.load(ordering: .acquiring) }

    /// Gives the loop an accepted, non-blocking descriptor; the loop owns it from here on.
    /// - Parameter address: whose connection it is, where a proxy said so.
    func hand(over descriptor: Int32, isRequest: Bool = false, address: IPAddress? = nil) {
        held.add(1, ordering: .relaxed)
        if isRequest { heldRequests.add(1, ordering: .relaxed) }
        adoptions.post(Newcomer(descriptor: descriptor, isRequest: isRequest, address: address))
    }

    /// Connections that are handed over after this call are answered with the certificate.
    func replace(_ certificate: ServerCertificate) {
        newCertificate.withLock { $0 = certificate }
        waker.wake()
    }

    /// What `replace` left, once.
    func takeCertificate() -> ServerCertificate? {
        newCertificate.withLock { certificate in
            defer { certificate = nil }
            return certificate
        }
    }

    func released(isRequest: Bool) {
        held.subtract(1, ordering: .relaxed)
        if isRequest { heldRequests.subtract(1, ordering: .relaxed) }
    }

    func stop() {
        stopRequested.store(true, ordering: .releasing)
        waker.wake()
    }
}

/// An accepted descriptor on its way to a loop.
struct Newcomer: Sendable {
    let descriptor: Int32
    /// It began with a plain HTTP request; see `FirstWords`.
    let isRequest: Bool
    /// Whose connection it is, where a proxy said so.
    let address: IPAddress?
}
