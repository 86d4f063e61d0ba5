import Glibc
import HubCore

/// One accepted connection: socket, optional TLS, HTTP session and output buffer. Used on its server's thread only.
final class Connection {
    enum Phase {
        case handshake, open
        /// All output is sent. Waits for the peer's end, so that no TCP reset destroys unread output.
        case lingering
    }

    enum Transport {
        case plain
        case tls(TLSStream)
    }

    let number: UInt64
    let descriptor: Int32
    let peer = PeerState()
    private(set) var phase: Phase
    private(set) var session: (any HTTPSession)?
    private let transport: Transport
    private let makeSession: (_ stream: TLSStream?) -> (any HTTPSession)?
    private var output: [UInt8] = []
    private var outputOffset = 0
    /// TLS may need a writable socket to read, and a readable one to write.
    private var transportNeedsWriting = false
    /// Monotonic milliseconds of the last byte moved.
    /// Monotonic milliseconds of the phase's beginning.
    private(set) var lastActivity: UInt64
    private var phaseSince: UInt64
    private var writeBlockedSince: UInt64?
    /// Nothing is read or written any more while the connection stays open: a black hole for the peer.
    var isFrozen = false
    /// Output after the handshake, settings included, waits until this time, to simulate a long path.
    private var speaksFrom: UInt64 = 0
    private let greetingDelay: UInt64

    init(
        number: UInt64, descriptor: Int32, transport: Transport, now: UInt64, greetingDelay: UInt64 = 0,
        makeSession: @escaping (_ stream: TLSStream?) -> (any HTTPSession)?
    ) {
        self.number = number
        self.descriptor = descriptor
        self.transport = transport
        self.makeSession = makeSession
        self.greetingDelay = greetingDelay
        lastActivity = now
        phaseSince = now
        if case .tls = transport {
            phase = .handshake
        } else {
            phase = .open
            session = makeSession(nil)
        }
    }

    deinit { Glibc.close(descriptor) }

    /// A connection that begins with a TLS handshake. Nil if OpenSSL has no memory for it; the caller then still owns the descriptor.
    static func secured(
        number: UInt64, descriptor: Int32, tls: TLSContext, now: UInt64, greetingDelay: UInt64 = 0,
        makeSession: @escaping (_ stream: TLSStream?) -> (any HTTPSession)?
    ) -> Connection? {
        tls.stream(over: descriptor).map {
            Connection(
                number: number, descriptor: descriptor, transport: .tls($0), now: now, greetingDelay: greetingDelay,
                makeSession: makeSession)
        }
    }

    var isIdle: Bool { phase == .open && session?.openRequests == 0 && output.isEmpty }
    var wantsWriting: Bool { !output.isEmpty || transportNeedsWriting }
    var wantsReading: Bool { output.count - outputOffset < SimulatorLimits.outputBytesMax }

    /// Reads available bytes into the session, via `buffer`. False if the connection is over.
    func readAvailable(with buffer: UnsafeMutableBufferPointer<UInt8>, now: UInt64) -> Bool {
        if phase == .handshake {
            guard advanceHandshake(now: now) else { return false }
            if phase == .handshake { return true }
        }
        let outcome =
            switch transport {
            case .plain: unsafe PlainSocket.read(descriptor, into: buffer)
            case .tls(let stream): unsafe stream.read(into: buffer)
            }
        switch outcome {
        case .moved(let count):
            lastActivity = now
            guard phase == .open, let session else { return true }
            if unsafe !session.receive(UnsafeBufferPointer(rebasing: buffer[..<count]), now: now) {
                return flush(now: now) && startLingering(now: now)
            }
            return true
        case .needsReading: return true
        case .needsWriting:
            transportNeedsWriting = true
            return true
        case .ended, .failed: return false
        }
    }

    /// Produces and writes output until the socket is full. False if the connection is over.
    func flush(now: UInt64) -> Bool {
        if isFrozen { return true }
        transportNeedsWriting = false
        guard phase != .handshake else { return advanceHandshake(now: now) }
        // The periodic sweep flushes it later.
        guard now >= speaksFrom else { return true }
        while true {
            if outputOffset == output.count {
                output.removeAll(keepingCapacity: output.capacity <= SimulatorLimits.outputBytesMax)
                outputOffset = 0
                guard let session else { return false }
                guard session.produceOutput(into: &output, limit: SimulatorLimits.outputBytesMax) else { return false }
                if output.isEmpty {
                    writeBlockedSince = nil
                    return phase == .open && session.isFinished ? startLingering(now: now) : true
                }
            }
            let outcome = unsafe output.withUnsafeBufferPointer { bytes in
                let rest = unsafe UnsafeBufferPointer(rebasing: bytes[outputOffset...])
                return switch transport {
                case .plain: unsafe PlainSocket.write(descriptor, rest)
                case .tls(let stream): unsafe stream.write(rest)
                }
            }
            switch outcome {
            case .moved(let count):
                outputOffset += count
                lastActivity = now
                writeBlockedSince = nil
            case .needsReading, .needsWriting:
                writeBlockedSince = writeBlockedSince ?? now
                return true
            case .ended, .failed: return false
            }
        }
    }

    /// Whether a deadline of the connection has passed. Also expires late requests.
    func isOverdue(now: UInt64) -> Bool {
        if isFrozen { return false }
        if let writeBlockedSince, now - writeBlockedSince > SimulatorLimits.stalledWriteMilliseconds { return true }
        switch phase {
        case .handshake: return now - phaseSince > SimulatorLimits.handshakeMilliseconds
        case .lingering: return now - phaseSince > SimulatorLimits.lingerMilliseconds
        case .open:
            if now > SimulatorLimits.requestMilliseconds {
                session?.expireRequests(begunBefore: now - SimulatorLimits.requestMilliseconds)
            }
            return isIdle && now - lastActivity > SimulatorLimits.idleMilliseconds
        }
    }

    /// Half-closes. Always true: the connection lives on until the peer's end or the deadline.
    private func startLingering(now: UInt64) -> Bool {
        if case .tls(let stream) = transport { stream.close() }
        shutdown(descriptor, Int32(SHUT_WR))
        output.removeAll()
        outputOffset = 0
        phase = .lingering
        phaseSince = now
        return true
    }

    private func advanceHandshake(now: UInt64) -> Bool {
        guard case .tls(let stream) = transport else { return true }
        switch stream.handshake() {
        case .moved:
            session = makeSession(stream)
            speaksFrom = now + greetingDelay
            phase = .open
            phaseSince = now
            lastActivity = now
            return session != nil && flush(now: now)
        case .needsReading: return true
        case .needsWriting:
            transportNeedsWriting = true
            return true
        case .ended, .failed: return false
        }
    }
}
