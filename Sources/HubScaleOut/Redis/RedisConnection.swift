internal import Glibc

/// One connection to a Redis server. Confined to one thread at a time; every wait has a deadline.
final class RedisConnection {
    private let socket: RedisSocket
    private let tls: RedisTLS?
    private var reader = ReplyReader()
    private var output: [UInt8] = []
    private var input = [UInt8](repeating: 0, count: 64 * 1024)
    private(set) var isBroken = false

    /// Connects, and says the password. The database is selected.
    init(_ host: RedisAddress.Host, _ address: RedisAddress, deadline: ContinuousClock.Instant) throws(RedisFailure) {
        socket = try RedisSocket(host, deadline: deadline)
        tls =
            if address.usesTLS {
                try RedisTLS(socket, host: host.name, authorities: address.authorities, deadline: deadline)
            } else {
                nil
            }
        var greeting: [RedisCommand] = []
        if let password = address.password {
            greeting.append(RedisCommand("AUTH", texts: [address.user, password].compactMap { $0 }))
        }
        if address.database != 0 { greeting.append(RedisCommand("SELECT", texts: [String(address.database)])) }
        for reply in try run(greeting, deadline: deadline) { _ = try reply.value() }
    }

    /// Whether Redis has neither ended the connection nor said something while nobody asked.
    var isIdle: Bool { !isBroken && !reader.isWithinReply && !socket.isReadable && tls?.hasPending != true }

    /// Ends the connection for a thread that waits for it. Any thread.
    var cut: @Sendable () -> Void {
        let descriptor = socket.descriptor
        return { shutdown(descriptor, CInt(SHUT_RDWR)) }
    }

    /// Sends commands in one piece and reads their replies.
    /// - Returns: a reply for each command, errors included.
    /// - Throws: `RedisFailure` for lost replies. The connection is useless then.
    func run(_ commands: [RedisCommand], deadline: ContinuousClock.Instant) throws(RedisFailure) -> [RedisReply] {
        if commands.isEmpty { return [] }
        do throws(RedisFailure) {
            output.removeAll(keepingCapacity: true)
            for command in commands { command.encode(into: &output) }
            var replies: [RedisReply] = []
            replies.reserveCapacity(commands.count)
            var written = 0
            while replies.count < commands.count {
                if written < output.count { written += try write(from: written) }
                // Replies are read while commands are written: Redis takes no more from a client that reads nothing.
                while replies.count < commands.count, let reply = try next() { replies.append(reply) }
                if replies.count == commands.count { break }
                if tls?.hasPending != true { try socket.wait(reading: true, writing: written < output.count, deadline) }
            }
            return replies
        } catch {
            isBroken = true
            throw error
        }
    }

    private func write(from start: Int) throws(RedisFailure) -> Int {
        try unsafe output.withUnsafeBufferPointer { bytes throws(RedisFailure) in
            let rest = unsafe UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: bytes[start...]))
            return if let tls { unsafe try tls.write(rest) } else { unsafe try socket.write(rest) }
        }
    }

    private func next() throws(RedisFailure) -> RedisReply? {
        while true {
            if let reply = try reader.next() { return reply }
            let count = try unsafe input.withUnsafeMutableBufferPointer { buffer throws(RedisFailure) in
                let buffer = UnsafeMutableRawBufferPointer(buffer)
                return if let tls { unsafe try tls.read(into: buffer) } else { unsafe try socket.read(into: buffer) }
            }
            guard let count else { return nil }
            try unsafe input.withUnsafeBufferPointer { buffer throws(RedisFailure) in
                unsafe try reader.append(UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: buffer[..<count])))
            }
        }
    }
}

@available(*, unavailable)
extension RedisConnection: Sendable {}
