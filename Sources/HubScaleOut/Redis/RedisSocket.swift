internal import Dispatch
internal import Glibc
internal import Synchronization

/// A TCP connection whose every wait has a deadline. Confined to one thread at a time, but for `cut`.
final class RedisSocket {
    let descriptor: CInt

    /// Connects to the first of the host's addresses that answers.
    init(_ host: RedisAddress.Host, deadline: ContinuousClock.Instant) throws(RedisFailure) {
        let places = try Self.resolve(host, deadline)
        var last = RedisFailure.lost("\(host.name) has no address")
        for place in places {
            do throws(RedisFailure) {
                descriptor = try Self.connect(place, deadline)
                return
            } catch {
                last = error
            }
        }
        throw last
    }

    deinit { close(descriptor) }

    /// Ends the connection for a thread that waits for it.
    func cut() { shutdown(descriptor, CInt(SHUT_RDWR)) }

    /// Waits until bytes may be read or written.
    func wait(reading: Bool, writing: Bool, _ deadline: ContinuousClock.Instant) throws(RedisFailure) {
        try Self.wait(descriptor, reading: reading, writing: writing, deadline)
    }

    /// Whether bytes, or an end, wait to be read.
    var isReadable: Bool {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return unsafe poll(&entry, 1, 0) > 0
    }

    /// Reads what is there.
    /// - Returns: the number of bytes; nil: nothing has come yet.
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(RedisFailure) -> Int? {
        while true {
            let count = unsafe recv(descriptor, buffer.baseAddress, buffer.count, 0)
            if count > 0 { return count }
            if count == 0 { throw .lost("it ended the connection") }
            if errno == EAGAIN { return nil }
            if errno != EINTR { throw Self.failure }
        }
    }

    /// Writes what fits.
    /// - Returns: the number of bytes; 0: nothing fits now.
    func write(_ bytes: UnsafeRawBufferPointer) throws(RedisFailure) -> Int {
        while true {
            let count = unsafe send(descriptor, bytes.baseAddress, bytes.count, CInt(MSG_NOSIGNAL))
            if count >= 0 { return count }
            if errno == EAGAIN { return 0 }
            if errno != EINTR { throw Self.failure }
        }
    }

    // MARK: Connecting

    /// An address of a host, as the system's calls take it.
    private struct Place: Sendable {
        var family: CInt
        var bytes: [UInt8]
    }

    private static var failure: RedisFailure { .lost(unsafe String(cString: strerror(errno))) }

    /// Looks the name up on another thread, because the system's call has no deadline.
    private static func resolve(_ host: RedisAddress.Host, _ deadline: ContinuousClock.Instant) throws(RedisFailure) -> [Place] {
        let answer = Answer()
        DispatchQueue.global().async { answer.set(look(host)) }
        let (seconds, attoseconds) = (deadline - .now).components
        let left = DispatchTimeInterval.milliseconds(Int(max(0, seconds * 1000 + attoseconds / 1_000_000_000_000_000)))
        guard answer.arrival.wait(timeout: .now() + left) == .success, let places = answer.places.withLock({ $0 }) else {
            throw .lost("its name \(host.name) is not found in time")
        }
        if places.isEmpty { throw .lost("its name \(host.name) is unknown") }
        return places
    }

    private final class Answer: Sendable {
        let arrival = DispatchSemaphore(value: 0)
        let places = Mutex<[Place]?>(nil)

        func set(_ found: [Place]) {
            places.withLock { $0 = found }
            arrival.signal()
        }
    }

    private static func look(_ host: RedisAddress.Host) -> [Place] {
        var hints = unsafe addrinfo()
        unsafe hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        guard unsafe getaddrinfo(host.name, String(host.port), &hints, &list) == 0 else { return [] }
        defer { unsafe freeaddrinfo(list) }
        var places: [Place] = []
        var next = unsafe list
        while let entry = unsafe next {
            let address = unsafe UnsafeRawBufferPointer(start: entry.pointee.ai_addr, count: Int(entry.pointee.ai_addrlen))
            unsafe places.append(Place(family: entry.pointee.ai_family, bytes: Array(address)))
            unsafe next = entry.pointee.ai_next
        }
        return places
    }

    private static func connect(_ place: Place, _ deadline: ContinuousClock.Instant) throws(RedisFailure) -> CInt {
        let kind = CInt(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = socket(place.family, kind, 0)
        guard descriptor >= 0 else { throw failure }
        do throws(RedisFailure) {
            var flag: CInt = 1
            _ = unsafe setsockopt(descriptor, CInt(IPPROTO_TCP), TCP_NODELAY, &flag, socklen_t(MemoryLayout<CInt>.size))
            let code = unsafe place.bytes.withUnsafeBytes { bytes in
                unsafe bytes.withMemoryRebound(to: sockaddr.self) { address in
                    unsafe Glibc.connect(descriptor, address.baseAddress, socklen_t(bytes.count))
                }
            }
            if code != 0 {
                guard errno == EINPROGRESS else { throw failure }
                try wait(descriptor, reading: false, writing: true, deadline)
                var (error, size) = (CInt(0), socklen_t(MemoryLayout<CInt>.size))
                _ = unsafe getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size)
                if error != 0 { throw RedisFailure.lost(unsafe String(cString: strerror(error))) }
            }
            return descriptor
        } catch {
            close(descriptor)
            throw error
        }
    }

    private static func wait(
        _ descriptor: CInt, reading: Bool, writing: Bool, _ deadline: ContinuousClock.Instant
    ) throws(RedisFailure) {
        var entry = pollfd(fd: descriptor, events: Int16((reading ? POLLIN : 0) | (writing ? POLLOUT : 0)), revents: 0)
        while true {
            let (seconds, attoseconds) = (deadline - .now).components
            let left = seconds * 1000 + attoseconds / 1_000_000_000_000_000
            guard left > 0 else { throw .lost("it answers nothing in time") }
            let count = unsafe poll(&entry, 1, CInt(clamping: left))
            if count > 0 { return }
            if count < 0, errno != EINTR { throw failure }
        }
    }
}

@available(*, unavailable)
extension RedisSocket: Sendable {}
