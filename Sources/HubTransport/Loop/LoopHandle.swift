internal import HubCore
internal import Synchronization

/// The handle of a loop for other threads: hands over descriptors, wakes, and stops.
package final class LoopHandle: Sendable {
    /// The loop's place among all loops, from 0.
    package let index: Int
    /// Wakes the loop; shared by all its mailboxes.
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

    /// Connections handed to the loop that have not ended. The acceptor balances by this number.
    package var load: Int { held.load(ordering: .relaxed) }
    /// The part of `load` that began with a plain HTTP request.
    package var requestLoad: Int { heldRequests.load(ordering: .relaxed) }

    var isStopRequested: Bool { stopRequested.load(ordering: .acquiring) }

    /// Gives the loop an accepted, non-blocking descriptor; the loop owns it from here on.
    /// - Parameter address: the peer named by a proxy; nil without one.
    func hand(over descriptor: Int32, isRequest: Bool = false, address: IPAddress? = nil) {
        assert(descriptor >= 0, "descriptor \(descriptor) is handed to loop \(index)")
        held.add(1, ordering: .relaxed)
        if isRequest { heldRequests.add(1, ordering: .relaxed) }
        adoptions.post(Newcomer(descriptor: descriptor, isRequest: isRequest, address: address))
    }

    /// Connections handed over after this call get the certificate.
    func replace(_ certificate: ServerCertificate) {
        newCertificate.withLock { $0 = certificate }
        waker.wake()
    }

    /// Takes the certificate left by `replace`.
    func takeCertificate() -> ServerCertificate? {
        newCertificate.withLock { certificate in
            defer { certificate = nil }
            return certificate
        }
    }

    func released(isRequest: Bool) {
        let left = held.subtract(1, ordering: .relaxed).newValue
        let requestsLeft = isRequest ? heldRequests.subtract(1, ordering: .relaxed).newValue : 0
        assert(left >= 0 && requestsLeft >= 0, "loop \(index) released a connection twice")
    }

    func stop() {
        stopRequested.store(true, ordering: .releasing)
        waker.wake()
    }
}

/// An accepted descriptor on its way to a loop.
struct Newcomer: Sendable {
    let descriptor: Int32
    /// The connection began with a plain HTTP request; see `FirstWords`.
    let isRequest: Bool
    /// The peer named by a proxy; nil without one.
    let address: IPAddress?
}
