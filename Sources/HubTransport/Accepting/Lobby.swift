internal import CLibWebSockets
internal import Glibc
internal import HubCore

/// The kind of a connection, as far as its first bytes show.
enum FirstWords: Equatable {
    /// No byte has arrived yet.
    case none
    /// The peer is gone, or the socket failed.
    case ended
    /// A request for nothing below `/app/`: a publisher's.
    case request
    /// An upgrade, or TLS, which hides its content.
    case other

    /// `/app/`
    private static let slashAppSlash: UInt64 = 0x2F_6170_702F
    /// Enough for the longest prefix that a reverse proxy leaves before `/app/`.
    private static let peekedBytes = 256

    /// Peeks at the first bytes. One system call.
    static func peek(_ descriptor: Int32) -> FirstWords {
        var count = 0
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: peekedBytes) { buffer, initialized in
            count = unsafe recv(descriptor, buffer.baseAddress, peekedBytes, Int32(MSG_PEEK))
            initialized = max(0, count)
        }
        if count > 0 { return judge(bytes) }
        return count < 0 && (errno == EAGAIN || errno == EINTR) ? .none : .ended
    }

    /// Judges the first bytes. A wrong answer only makes the loops less even.
    static func judge(_ bytes: [UInt8]) -> FirstWords {
        let space = UInt8(ascii: " ")
        guard let first = bytes.first, first >= UInt8(ascii: "A"), first <= UInt8(ascii: "Z"), let verbEnd = bytes.firstIndex(of: space)
        else {
            return .other
        }
        // The last five bytes as one number, for speed: each connection passes here.
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

/// The waiting room of accepted connections that have sent nothing yet, at the cost of a descriptor each.
///
/// The kernel keeps them for a second before (`ListeningSocket`). A loop would keep state for each of them. Requests that
/// then arrive together could no longer be put off. Owned by the acceptor's thread.
struct Lobby: ~Copyable {
    private let epoll: Int32
    private let quietMilliseconds: Int64
    private var serials: [Int32: UInt64] = [:]
    /// Connections whose PROXY header has not arrived, and the addresses from the headers of others.
    private var headerless: Set<Int32> = []
    private var addresses: [Int32: IPAddress] = [:]
    /// In the order of arrival, which is also that of the deadlines; some connections have left since.
    private var order: [(descriptor: Int32, serial: UInt64, deadline: Int64)] = []
    private var head = 0
    private var lastSerial: UInt64 = 0

    /// - Parameters:
    ///   - epoll: reports incoming bytes; belongs to the caller.
    ///   - quietMilliseconds: how long a peer may send nothing.
    init(epoll: Int32, quietMilliseconds: Int64) {
        self.epoll = epoll
        self.quietMilliseconds = quietMilliseconds
    }

    var count: Int { serials.count }

    /// Lets a descriptor wait. False when the system cannot watch it, which leaves it to the caller.
    /// - Parameters:
    ///   - needsHeader: a proxy's header must come first.
    ///   - address: the address in that header.
    mutating func admit(_ descriptor: Int32, now: Int64, needsHeader: Bool = false, address: IPAddress? = nil) -> Bool {
        // Edge-triggered: half a header stays in the kernel and must not be reported again.
        var event = unsafe epoll_event(events: EPOLLIN.rawValue | EPOLLRDHUP.rawValue | EPOLLET.rawValue, data: epoll_data(fd: descriptor))
        guard unsafe epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0 else { return false }
        assert(serials[descriptor] == nil, "descriptor \(descriptor) waits already")
        assert(order.last.map { $0.deadline <= now + quietMilliseconds } ?? true, "a deadline before the last one at \(now) ms")
        if needsHeader { headerless.insert(descriptor) }
        addresses[descriptor] = address
        lastSerial += 1
        serials[descriptor] = lastSerial
        order.append((descriptor, lastSerial, now + quietMilliseconds))
        assert(isConsistent, "\(serials.count) connections wait in \(order.count - head) places")
        return true
    }

    /// Whether every waiting connection has a place in the order, and only waiting ones lack a header or have an address.
    private var isConsistent: Bool {
        head <= order.count && serials.count <= order.count - head && headerless.count <= serials.count && addresses.count <= serials.count
    }

    func contains(_ descriptor: Int32) -> Bool { serials[descriptor] != nil }

    func needsHeader(_ descriptor: Int32) -> Bool { headerless.contains(descriptor) }

    /// Notes a complete header. The first bytes are awaited until the same deadline.
    mutating func tookHeader(_ descriptor: Int32, _ address: IPAddress?) {
        let lacked = headerless.remove(descriptor)
        assert(lacked != nil, "descriptor \(descriptor) had its header already")
        addresses[descriptor] = address
    }

    /// Releases a descriptor, for a loop or for the caller to close. Returns the peer named by a proxy.
    mutating func release(_ descriptor: Int32) -> IPAddress? {
        epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, nil)
        return forget(descriptor)
    }

    @discardableResult
    private mutating func forget(_ descriptor: Int32) -> IPAddress? {
        let serial = serials.removeValue(forKey: descriptor)
        assert(serial != nil, "descriptor \(descriptor) leaves and does not wait")
        headerless.remove(descriptor)
        return addresses.removeValue(forKey: descriptor)
    }

    /// Closes connections that were quiet for too long. Returns the next deadline; nil when none waits.
    mutating func closeQuiet(now: Int64) -> Int64? {
        while head < order.count {
            let (descriptor, serial, deadline) = order[head]
            if serials[descriptor] == serial {
                if deadline > now { break }
                forget(descriptor)
                Descriptor.close(descriptor)
            }
            head += 1
        }
        // Moves the rest down only when most of it is spent.
        if head * 2 >= order.count {
            order.removeFirst(head)
            head = 0
        }
        assert(isConsistent, "\(serials.count) connections wait in \(order.count - head) places")
        return order.indices.contains(head) ? order[head].deadline : nil
    }

    mutating func closeAll() {
        for descriptor in serials.keys { Descriptor.close(descriptor) }
        serials.removeAll()
        headerless.removeAll()
        addresses.removeAll()
    }
}
