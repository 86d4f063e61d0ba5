internal import CLibWebSockets
internal import Glibc
package import HubCore

/// The peers that may connect where each connection must begin with a PROXY protocol header.
package struct ProxyDoor: Sendable {
    /// Networks of proxies; empty allows every peer.
    package var trusted: [IPNetwork]

    /// Networks of proxies; empty allows every peer.
    package init(trusted: [IPNetwork]) {
        self.trusted = trusted
    }

    func admits(_ peer: IPAddress?) -> Bool {
        trusted.isEmpty || peer.map { peer in trusted.contains { $0.contains(peer) } } ?? false
    }
}

/// The PROXY protocol's header, versions 1 and 2, in which a proxy names the peer of the connection
/// (https://www.haproxy.org/download/2.8/doc/proxy-protocol.txt).
enum ProxyHeader: Equatable {
    /// More bytes are needed.
    case incomplete
    /// No such header, or the peer is gone.
    case invalid
    /// A whole header, and its length. No address: the proxy connects for itself, or does not know the peer.
    case complete(bytes: Int, IPAddress?)

    /// The longest line of version 1, its end included.
    static let lineBytesMax = 107
    /// Most bytes of a header of version 2, with addresses and extensions. The protocol itself recommends at most 536.
    static let blockBytesMax = 1024

    private static let line = Array("PROXY ".utf8)
    private static let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]
    /// Bytes after the signature: version and command, family, and a length of two bytes.
    private static let fixedBytes = 16

    /// Peeks at the bytes received, and takes exactly the header once it is complete. All other bytes stay in the
    /// kernel.
    static func take(_ descriptor: Int32) -> ProxyHeader {
        let header = peek(descriptor)
        guard case .complete(let count, _) = header else { return header }
        assert(count > 0 && count <= blockBytesMax, "a header of \(count) bytes was found in \(blockBytesMax)")
        let taken = unsafe withUnsafeTemporaryAllocation(byteCount: count, alignment: 1) {
            unsafe recv(descriptor, $0.baseAddress, count, 0)
        }
        return taken == count ? header : .invalid
    }

    private static func peek(_ descriptor: Int32) -> ProxyHeader {
        var count = 0
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: blockBytesMax) { buffer, initialized in
            count = unsafe recv(descriptor, buffer.baseAddress, blockBytesMax, Int32(MSG_PEEK))
            initialized = max(0, count)
        }
        if count > 0 { return read(bytes) }
        return count < 0 && (errno == EAGAIN || errno == EINTR) ? .incomplete : .invalid
    }

    /// Parses the first bytes of a connection.
    static func read(_ bytes: [UInt8]) -> ProxyHeader {
        if bytes.starts(with: line) || line.starts(with: bytes) { return readLine(bytes) }
        if bytes.starts(with: signature) || signature.starts(with: bytes) { return readBlock(bytes) }
        return .invalid
    }

    private static func readLine(_ bytes: [UInt8]) -> ProxyHeader {
        guard let end = bytes.prefix(lineBytesMax).firstIndex(of: 0x0A) else { return bytes.count < lineBytesMax ? .incomplete : .invalid }
        guard end > 0, bytes[end - 1] == 0x0D else { return .invalid }
        let words = String(decoding: bytes[..<(end - 1)], as: UTF8.self).split(separator: " ", omittingEmptySubsequences: false)
        if words.count >= 2, words[1] == "UNKNOWN" { return .complete(bytes: end + 1, nil) }
        guard words.count == 6, words[1] == "TCP4" || words[1] == "TCP6", isPort(words[4]), isPort(words[5]),
            let source = IPAddress(words[2]), IPAddress(words[3]) != nil,
            words[2...3].allSatisfy({ $0.contains(":") == (words[1] == "TCP6") && !$0.contains("%") })
        else { return .invalid }
        return .complete(bytes: end + 1, source)
    }

    private static func isPort(_ text: Substring) -> Bool {
        (1...5).contains(text.utf8.count) && text.utf8.allSatisfy { (0x30...0x39).contains($0) } && UInt16(text) != nil
    }

    private static func readBlock(_ bytes: [UInt8]) -> ProxyHeader {
        guard bytes.count >= fixedBytes else { return .incomplete }
        let (version, command, family) = (bytes[12] >> 4, bytes[12] & 0xF, bytes[13])
        let end = fixedBytes + (Int(bytes[14]) << 8 | Int(bytes[15]))
        guard version == 2, command <= 1, end <= blockBytesMax else { return .invalid }
        // The source address and the destination's, then their ports.
        let addressBytes: [UInt8: (one: Int, all: Int)] = [0x11: (4, 12), 0x21: (16, 36)]
        let addresses = command == 1 ? addressBytes[family] : nil
        if let addresses, end < fixedBytes + addresses.all { return .invalid }
        guard bytes.count >= end else { return .incomplete }
        return .complete(bytes: end, addresses.flatMap { IPAddress(bytes: bytes[fixedBytes..<fixedBytes + $0.one]) })
    }
}

/// The address of a socket's peer; nil when unknown.
func peerAddress(_ descriptor: Int32) -> IPAddress? {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let code = unsafe withUnsafeMutablePointer(to: &storage) { pointer in
        unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe getpeername(descriptor, $0, &length) }
    }
    guard code == 0 else { return nil }
    return unsafe withUnsafeBytes(of: &storage) { bytes in
        // The family in the machine's order; then the port, and in front of an IPv6 address its flow label.
        switch unsafe Int32(bytes.loadUnaligned(as: sa_family_t.self)) {
        case AF_INET: unsafe IPAddress(bytes: bytes[4..<8])
        case AF_INET6: unsafe IPAddress(bytes: bytes[8..<24])
        default: nil
        }
    }
}
