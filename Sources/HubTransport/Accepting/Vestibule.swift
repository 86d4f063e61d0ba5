internal import CLibWebSockets
internal import Glibc
internal import HubCore

/// What a connection's first bytes let one see of it.
enum FirstWords: Equatable {
    /// Nothing has come yet.
    case none
    /// The peer is gone, or the socket failed.
    case ended
    /// A request that asks for nothing below `/app/`: a publisher's.
    case request
    /// An upgrade, or TLS, behind which nobody can see.
    case other

    /// `/app/`
    private static let slashAppSlash: UInt64 = 0x2F_6170_702F
    /// Enough for the longest prefix that a reverse proxy leaves before `/app/`.
    private static let peekedBytes = 256

    /// Looks without taking. One system call.
    static func peek(_ descriptor: Int32) -> FirstWords {
        var count = 0
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: peekedBytes) { buffer, initialized in
            count = unsafe recv(descriptor, buffer.baseAddress, peekedBytes, Int32(MSG_PEEK))
            initialized = max(0, count)
        }
        if count > 0 { return judge(bytes) }
        return count < 0 && (errno == EAGAIN || errno == EINTR) ? .none : .ended
    }

    /// Wrong only where it costs nothing but evenness.
    static func judge(_ bytes: [UInt8]) -> FirstWords {
        let space = UInt8(ascii: " ")
        guard let first = bytes.first, first >= UInt8(ascii: "A"), first <= UInt8(ascii: "Z"), let verbEnd = bytes.firstIndex(of: space) else {
            return .other
        }
        // The last five bytes as one number: each connection passes here.
        var last: UInt64 = 0
        for index in (verbEnd + 1)..<bytes.count {
            let byte = bytes[index]
            if byte == space || byte == UInt8(ascii: "?") { break }
            last = (last << 8 | UInt64(byte)) & 0xFF_FFFF_FFFF
            if last == slashAppSlash { return .other }
        }
        return .request
    }
}

/// Where accepted connections wait until they say something: in front of the loops, at the cost of a descriptor each.
///
/// When thousands come at once, most say nothing for a while: their machines are as busy as ours. A loop would keep libwebsockets' state
/// for each of them, and their time-outs in one sorted list, which is quadratic; and when their requests then come together, there would be
/// nothing left to put off. Owned by the acceptor's thread.
struct Vestibule: ~Copyable {
    private let epoll: Int32
    private let quietMilliseconds: Int64
    private var serials: [Int32: UInt64] = [:]
    /// Proxies that have not named a peer yet, and the names that the others gave.
    private var headerless: Set<Int32> = []
    private var addresses: [Int32: IPAddress] = [:]
    /// In the order of coming, which is that of their deadlines; some have gone on since.
    private var order: [(descriptor: Int32, serial: UInt64, deadline: Int64)] = []
    private var head = 0
    private var lastSerial: UInt64 = 0

    /// - Parameters:
    ///   - epoll: tells when somebody speaks; belongs to the caller.
    ///   - quietMilliseconds: how long a peer may say nothing.
    init(epoll: Int32, quietMilliseconds: Int64) {
        self.epoll = epoll
        self.quietMilliseconds = quietMilliseconds
    }

    var count: Int { serials.count }

    /// False: the system cannot watch it; it stays the caller's.
    /// - Parameters:
    ///   - needsHeader: a proxy's header has to come first.
    ///   - address: what that header said.
    mutating func admit(_ descriptor: Int32, now: Int64, needsHeader: Bool = false, address: IPAddress? = nil) -> Bool {
        // Told once of each arrival: half a header stays in the kernel, and is no news again.
        var event = unsafe epoll_event(events: EPOLLIN.rawValue | EPOLLRDHUP.rawValue | EPOLLET.rawValue, data: epoll_data(fd: descriptor))
        guard unsafe epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0 else { return false }
        if needsHeader { headerless.insert(descriptor) }
        addresses[descriptor] = address
        lastSerial += 1
        serials[descriptor] = lastSerial
        order.append((descriptor, lastSerial, now + quietMilliseconds))
        return true
    }

    func contains(_ descriptor: Int32) -> Bool { serials[descriptor] != nil }

    func needsHeader(_ descriptor: Int32) -> Bool { headerless.contains(descriptor) }

    /// The header is there; the first words are what is waited for now, until the same deadline.
    mutating func tookHeader(_ descriptor: Int32, _ address: IPAddress?) {
        headerless.remove(descriptor)
        addresses[descriptor] = address
    }

    /// It goes on to a loop, or is closed by the caller. Returns whose connection it is, where a proxy said so.
    mutating func release(_ descriptor: Int32) -> IPAddress? {
        epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, nil)
        return forget(descriptor)
    }

    @discardableResult
    private mutating func forget(_ descriptor: Int32) -> IPAddress? {
        serials[descriptor] = nil
        headerless.remove(descriptor)
        return addresses.removeValue(forKey: descriptor)
    }

    /// Closes whoever has been quiet for too long; the deadline that comes next, nil when nobody waits.
    mutating func closeQuiet(now: Int64) -> Int64? {
        while head < order.count {
            let (descriptor, serial, deadline) = order[head]
            if serials[descriptor] == serial {
                if deadline > now { break }
                forget(descriptor)
                Glibc.close(descriptor)
            }
            head += 1
        }
        // Moves the rest down only when most of it is spent.
        if head * 2 >= order.count {
            order.removeFirst(head)
            head = 0
        }
        return order.indices.contains(head) ? order[head].deadline : nil
    }

    mutating func closeAll() {
        for descriptor in serials.keys { Glibc.close(descriptor) }
        serials.removeAll()
        headerless.removeAll()
        addresses.removeAll()
    }
}
