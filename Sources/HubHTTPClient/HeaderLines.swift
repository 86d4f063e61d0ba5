internal import CLibCurl

/// A request's header lines in libcurl's format: a linked list of C strings, in reused memory.
///
/// libcurl's own `curl_slist_append` copies each line into memory of its own and walks the list to its end for every line. This list is
/// only read by libcurl, never freed.
@safe struct HeaderLines: ~Copyable {
    /// Headers that libcurl would add by itself.
    private static let unwanted = ["Accept", "Expect", "Content-Type"]

    private var bytes: UnsafeMutableBufferPointer<UInt8>
    private var nodes: UnsafeMutableBufferPointer<curl_slist>
    private var used = 0
    private var count = 0

    init() {
        unsafe bytes = .allocate(capacity: 1024)
        unsafe nodes = .allocate(capacity: 16)
    }

    deinit {
        unsafe bytes.deallocate()
        unsafe nodes.deallocate()
    }

    /// The list of the last `set`. Valid until the next `set`.
    var list: UnsafeMutablePointer<curl_slist>? { unsafe count == 0 ? nil : nodes.baseAddress }

    mutating func set(_ headers: [(name: String, value: String)]) {
        (used, count) = (0, 0)
        // Colon, space, and the NUL at the end; the unwanted ones are shorter than 16 bytes each.
        let bytesNeeded = headers.reduce(16 * Self.unwanted.count) { $0 + $1.name.utf8.count + $1.value.utf8.count + 3 }
        if unsafe bytesNeeded > bytes.count {
            unsafe bytes.deallocate()
            unsafe bytes = .allocate(capacity: 2 * bytesNeeded)
        }
        if unsafe headers.count + Self.unwanted.count > nodes.count {
            unsafe nodes.deallocate()
            unsafe nodes = .allocate(capacity: 2 * (headers.count + Self.unwanted.count))
        }
        for name in Self.unwanted where !headers.contains(where: { Self.isSame($0.name, name) }) {
            begin()
            append(name)
            append(":")
            end()
        }
        for header in headers {
            begin()
            append(header.name)
            // An empty value needs libcurl's own spelling; `Name:` would remove the header.
            append(header.value.isEmpty ? ";" : ": ")
            append(header.value)
            end()
        }
        assert(used <= bytesNeeded && count <= headers.count + Self.unwanted.count, "\(count) lines take \(used) of \(bytesNeeded) bytes")
    }

    private static func isSame(_ left: String, _ right: String) -> Bool {
        left.utf8.count == right.utf8.count && zip(left.utf8, right.utf8).allSatisfy { lowerCase($0) == lowerCase($1) }
    }

    private static func lowerCase(_ byte: UInt8) -> UInt8 { byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte }

    private mutating func begin() {
        let start = unsafe bytes.baseAddress.map { unsafe UnsafeMutableRawPointer($0 + used).assumingMemoryBound(to: CChar.self) }
        assert(unsafe count < nodes.count, "line \(count) in room for \(unsafe nodes.count)")
        unsafe nodes.initializeElement(at: count, to: curl_slist(data: start, next: nil))
        if count > 0, let base = unsafe nodes.baseAddress { unsafe nodes[count - 1].next = base + count }
        count += 1
    }

    private mutating func append(_ text: String) {
        var text = text
        let (start, room) = unsafe (used, UnsafeMutableRawBufferPointer(bytes))
        assert(start + text.utf8.count < room.count, "\(text.utf8.count) bytes behind \(start) in room for \(room.count)")
        used += text.withUTF8 { utf8 in
            if let from = utf8.baseAddress, let to = room.baseAddress { unsafe (to + start).copyMemory(from: from, byteCount: utf8.count) }
            return utf8.count
        }
    }

    private mutating func end() {
        unsafe bytes[used] = 0
        used += 1
    }
}
