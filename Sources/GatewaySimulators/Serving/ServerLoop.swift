import Glibc
import HubCore

/// The loop of one port's thread: accepts, reads, calls the service, and answers at once or later.
///
/// Uses poll(2): cheap for `SimulatorLimits.connectionsMax` descriptors, and without kernel state that could disagree with ours. Connection
/// numbers are never reused, so a late reply to a closed connection finds nothing instead of a successor.
final class ServerLoop {
    private struct Delayed {
        let due: UInt64
        let connection: UInt64
        let stream: Int32
        let reply: Reply
    }

    private let listener: Listener
    private let door: ServerDoor
    private let service: any GatewayService
    private let makeConnection: (_ number: UInt64, _ descriptor: Int32, _ now: UInt64) -> Connection?
    private let clock = SystemClock()
    private var connections: [UInt64: Connection] = [:]
    private var connectionsAccepted: UInt64 = 0
    /// Ordered by due time, the next one last.
    private var delayed: [Delayed] = []
    private var readBuffer = [UInt8](repeating: 0, count: SimulatorLimits.readBytes)
    private var nextSweep: UInt64 = 0
    /// Nothing is accepted before this time, because the process was out of descriptors.
    private var acceptsFrom: UInt64 = 0

    private static let sweepMilliseconds: UInt64 = 500

    /// Takes ownership of the listener, which `run` closes.
    init(
        listener: Listener, door: ServerDoor, service: any GatewayService,
        makeConnection: @escaping (_ number: UInt64, _ descriptor: Int32, _ now: UInt64) -> Connection?
    ) {
        self.listener = listener
        self.door = door
        self.service = service
        self.makeConnection = makeConnection
    }

    /// Serves until the door receives the command to stop.
    func run() {
        while !door.isStopping {
            let polled = connections.values.filter { !$0.isFrozen && ($0.wantsReading || $0.wantsWriting) }
            var descriptors = [
                pollfd(fd: listener.descriptor, events: clock.monotonicMilliseconds < acceptsFrom ? 0 : Int16(POLLIN), revents: 0),
                pollfd(fd: door.readingEnd, events: Int16(POLLIN), revents: 0),
            ]
            for connection in polled {
                let events = (connection.wantsReading ? POLLIN : 0) | (connection.wantsWriting ? POLLOUT : 0)
                descriptors.append(pollfd(fd: connection.descriptor, events: Int16(events), revents: 0))
            }
            let count = unsafe poll(&descriptors, nfds_t(descriptors.count), timeout())
            let now = clock.monotonicMilliseconds
            if count > 0 {
                for (connection, entry) in zip(polled, descriptors.dropFirst(2)) where entry.revents != 0 {
                    // The connection may have been closed meanwhile to make room for another one.
                    if connections[connection.number] != nil { serve(connection, Int32(entry.revents), now: now) }
                }
                if descriptors[0].revents != 0 { acceptWaiting(now: now) }
                if descriptors[1].revents != 0 {
                    for command in door.takeCommands() { perform(command, now: now) }
                }
            }
            fireDelayed(now: now)
            sweep(now: now)
        }
        connections.removeAll()
        listener.close()
    }

    private func timeout() -> Int32 {
        let now = clock.monotonicMilliseconds
        let next = min(delayed.last?.due ?? .max, nextSweep)
        return next <= now ? 0 : Int32(clamping: min(next - now, Self.sweepMilliseconds))
    }

    private func acceptWaiting(now: UInt64) {
        while true {
            let descriptor: Int32
            switch listener.accept() {
            case .connected(let accepted): descriptor = accepted
            case .noneWaiting: return
            case .outOfDescriptors:
                acceptsFrom = now + Self.sweepMilliseconds
                return
            }
            if connections.count >= SimulatorLimits.connectionsMax {
                guard let leastUseful else {
                    Glibc.close(descriptor)
                    continue
                }
                drop(leastUseful)
            }
            connectionsAccepted += 1
            guard let connection = makeConnection(connectionsAccepted, descriptor, now) else {
                Glibc.close(descriptor)
                continue
            }
            connections[connection.number] = connection
            // An HTTP/2 server speaks first over plain TCP, and TLS may already have received the client's hello.
            finishTurn(of: connection, isAlive: connection.flush(now: now))
        }
    }

    /// The connection closed at the limit: the oldest handshake or farewell, else the one idle longest.
    private var leastUseful: Connection? {
        connections.values.filter { $0.phase != .open || $0.isIdle }
            .min { ($0.phase == .open ? 1 : 0, $0.lastActivity) < ($1.phase == .open ? 1 : 0, $1.lastActivity) }
    }

    private func serve(_ connection: Connection, _ events: Int32, now: UInt64) {
        var isAlive = true
        if events & (POLLIN | POLLHUP | POLLERR) != 0 {
            isAlive = unsafe readBuffer.withUnsafeMutableBufferPointer {
                unsafe connection.readAvailable(with: $0, now: now)
            }
            if isAlive { isAlive = answerRequests(of: connection, now: now) }
        }
        finishTurn(of: connection, isAlive: isAlive && connection.flush(now: now))
    }

    /// False if a reply ended the connection.
    private func answerRequests(of connection: Connection, now: UInt64) -> Bool {
        while let request = connection.session?.nextRequest() {
            let reply = service.reply(to: request, from: connection.peer)
            if reply.delayMilliseconds > 0, delayed.count < SimulatorLimits.delayedRepliesMax {
                let due = now + UInt64(reply.delayMilliseconds)
                postpone(Delayed(due: due, connection: connection.number, stream: request.stream, reply: reply))
            } else if !perform(reply, on: connection, stream: request.stream) {
                return false
            }
        }
        return true
    }

    private func perform(_ reply: Reply, on connection: Connection, stream: Int32) -> Bool {
        if case .closeConnection = reply.action { return false }
        connection.session?.perform(reply.action, stream: stream)
        if let streamsMax = reply.streamsMax { connection.session?.announce(streamsMax: streamsMax) }
        return true
    }

    private func postpone(_ entry: Delayed) {
        let index = delayed.partitioningIndex { $0.due <= entry.due }
        delayed.insert(entry, at: index)
    }

    private func fireDelayed(now: UInt64) {
        while let next = delayed.last, next.due <= now {
            delayed.removeLast()
            guard let connection = connections[next.connection] else { continue }
            var isAlive = perform(next.reply, on: connection, stream: next.stream)
            // Over HTTP/1.1 the answer may have released the next request.
            if isAlive { isAlive = answerRequests(of: connection, now: now) }
            finishTurn(of: connection, isAlive: isAlive && connection.flush(now: now))
        }
    }

    private func perform(_ command: ServerDoor.Command, now: UInt64) {
        for connection in Array(connections.values) {
            switch command {
            case .announce(let streamsMax): connection.session?.announce(streamsMax: streamsMax)
            case .goAway(let reason): connection.session?.goAway(reason: reason)
            case .freezeConnections: connection.isFrozen = true
            case .closeConnections:
                drop(connection)
                continue
            }
            finishTurn(of: connection, isAlive: connection.flush(now: now))
        }
    }

    private func sweep(now: UInt64) {
        guard now >= nextSweep else { return }
        nextSweep = now + Self.sweepMilliseconds
        for connection in Array(connections.values) {
            if connection.isOverdue(now: now) {
                drop(connection)
            } else {
                finishTurn(of: connection, isAlive: connection.flush(now: now))
            }
        }
    }

    private func finishTurn(of connection: Connection, isAlive: Bool) {
        if !isAlive { drop(connection) }
    }

    /// The last reference closes the descriptor.
    private func drop(_ connection: Connection) {
        connections[connection.number] = nil
    }
}

extension Array {
    /// The first index whose element satisfies the predicate, in an array partitioned by it.
    func partitioningIndex(where belongsBehind: (Element) -> Bool) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if belongsBehind(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
