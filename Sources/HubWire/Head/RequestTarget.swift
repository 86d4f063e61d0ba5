package import HubCore

/// The target of a request: its path and its query, percent-decoded once (RFC 9112, 3.2).
package struct RequestTarget: Sendable {
    /// Begins with `/`; repeated slashes count as one. `*` means the whole server.
    package private(set) var path = ""
    /// The parameters in order; a plus sign is a blank.
    package private(set) var query = HTTPQuery()

    /// Room for the `=` of so many parameters without one.
    private static let parametersUsual = 8
    private static let slash = UInt8(ascii: "/")

    /// Decodes a target as written in the request line; throws a refusal with 400.
    package init(_ target: UnsafeRawBufferPointer) throws(HeadRefusal) {
        var room = RequestRoom()
        try unsafe self.init(target, &room)
    }

    /// As above, in memory of earlier requests.
    init(_ target: UnsafeRawBufferPointer, _ room: inout RequestRoom) throws(HeadRefusal) {
        let start = unsafe Self.pathStart(target)
        guard let start else {
            guard unsafe target.count == 1 && target[0] == UInt8(ascii: "*") else {
                throw HeadRefusal(400, "a target is a path that begins with /, or a whole address")
            }
            path = "*"
            return
        }
        let queryStart = unsafe target.place(of: UInt8(ascii: "?"), from: start) ?? target.count
        let path = unsafe UnsafeRawBufferPointer(rebasing: target[start..<queryStart])
        self.path = try unsafe Self.isDecoded(path) ? room.path(of: path) : Self.decodePath(path)
        guard queryStart + 1 < target.count else { return }
        query = room.takeQuery()
        try unsafe readQuery(UnsafeRawBufferPointer(rebasing: target[(queryStart + 1)...]))
    }

    /// The path's start, after scheme and authority of an absolute URL; nil without a path.
    private static func pathStart(_ target: UnsafeRawBufferPointer) -> Int? {
        if unsafe target.first == slash { return 0 }
        guard let colon = unsafe target.firstIndex(of: UInt8(ascii: ":")), colon + 2 < target.count,
            unsafe target[colon + 1] == slash && target[colon + 2] == slash
        else { return nil }
        let scheme = unsafe String(decoding: target[..<colon], as: UTF8.self).lowercased()
        guard ["http", "https", "ws", "wss"].contains(scheme) else { return nil }
        return unsafe target[(colon + 3)...].firstIndex { $0 == slash || $0 == UInt8(ascii: "?") } ?? target.count
    }

    private static func decodePath(_ raw: UnsafeRawBufferPointer) throws(HeadRefusal) -> String {
        var failure: HeadRefusal?
        let path = unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: raw.count + 1) { bytes in
            var (index, count) = (0, 0)
            if unsafe raw.first != slash {
                unsafe bytes[0] = slash
                count = 1
            }
            do throws(HeadRefusal) {
                while index < raw.count {
                    let byte = try unsafe decode(raw, &index)
                    if byte == slash, count > 0, unsafe bytes[count - 1] == slash { continue }
                    assert(count < bytes.count, "\(raw.count) bytes of a path were decoded into \(count + 1)")
                    unsafe bytes[count] = byte
                    count += 1
                }
            } catch {
                failure = error
            }
            return unsafe String(decoding: UnsafeBufferPointer(rebasing: bytes[..<count]), as: UTF8.self)
        }
        if let failure { throw failure }
        return path
    }

    /// Whether a path is written as it is meant, as nearly all are.
    private static func isDecoded(_ raw: UnsafeRawBufferPointer) -> Bool {
        guard unsafe raw.first == slash else { return false }
        for index in 1..<raw.count {
            let byte = unsafe raw[index]
            if unsafe byte == UInt8(ascii: "%") || byte == slash && raw[index - 1] == slash { return false }
        }
        return true
    }

    private mutating func readQuery(_ raw: UnsafeRawBufferPointer) throws(HeadRefusal) {
        let isEscaped = unsafe raw.place(of: UInt8(ascii: "%")) != nil || raw.place(of: UInt8(ascii: "+")) != nil
        if !isEscaped, unsafe query.take(raw) { return }
        query.reserve(bytes: raw.count + Self.parametersUsual)
        if !isEscaped { return unsafe copyQuery(raw) }
        var failure: HeadRefusal?
        unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: raw.count) { room in
            do throws(HeadRefusal) {
                var index = 0
                while index < raw.count {
                    try unsafe readParameter(raw, &index, room)
                    index += 1
                }
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
    }

    /// Takes a query that is written as it is meant, with parameters that are empty or have no `=`.
    private mutating func copyQuery(_ raw: UnsafeRawBufferPointer) {
        var start = 0
        while start < raw.count {
            let end = unsafe raw.place(of: UInt8(ascii: "&"), from: start) ?? raw.count
            if end > start { unsafe query.append(UnsafeRawBufferPointer(rebasing: raw[start..<end])) }
            start = end + 1
        }
    }

    /// Reads up to the next `&`.
    /// - Parameter room: a buffer for the decoded bytes.
    private mutating func readParameter(
        _ raw: UnsafeRawBufferPointer, _ index: inout Int, _ room: UnsafeMutableBufferPointer<UInt8>
    ) throws(HeadRefusal) {
        var count = 0
        var equals: Int?
        while index < raw.count, unsafe raw[index] != UInt8(ascii: "&") {
            let written = unsafe raw[index]
            let byte = try unsafe Self.decode(raw, &index)
            if written == UInt8(ascii: "="), equals == nil { equals = count }
            assert(count < room.count, "\(raw.count) bytes of a query were decoded into \(count + 1)")
            unsafe room[count] = written == UInt8(ascii: "+") ? UInt8(ascii: " ") : byte
            count += 1
        }
        if count == 0 { return }
        let nameEnd = equals ?? count
        unsafe query.append(
            name: UnsafeBufferPointer(rebasing: room[..<nameEnd]),
            value: UnsafeBufferPointer(rebasing: room[min(nameEnd + 1, count)..<count]))
    }

    /// The byte at `index`, or the byte that an escape there stands for.
    private static func decode(_ raw: UnsafeRawBufferPointer, _ index: inout Int) throws(HeadRefusal) -> UInt8 {
        let byte = unsafe raw[index]
        index += 1
        guard byte == UInt8(ascii: "%") else { return byte }
        guard index + 1 < raw.count, let high = unsafe digit(raw[index]), let low = unsafe digit(raw[index + 1]), high | low != 0 else {
            throw HeadRefusal(400, "a percent sign in a target must be followed by two hexadecimal digits, and not by 00")
        }
        index += 2
        return high << 4 | low
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
