package import HubCore

/// One entry of a stream, as it was read.
package struct StreamEntry: Equatable {
    package let id: StreamID
    /// Names and values in turn.
    let fields: [[UInt8]]

    /// A message of a node: its origin, its number there, and the payload. Nil for entries of another kind.
    var message: (origin: UInt64, number: UInt64, payload: ArraySlice<UInt8>)? {
        guard fields.count == 2, fields[0] == [UInt8(ascii: "m")] else { return nil }
        let bytes = fields[1]
        guard bytes.count >= Self.headBytes, bytes[0] == Self.version else { return nil }
        return (Self.number(bytes[1..<9]), Self.number(bytes[9..<17]), bytes[17...])
    }

    /// A script's announcement; nil for entries of another kind, and for kinds that this version does not know.
    package var announcement: Announcement? {
        guard fields.count >= 4, fields.count % 2 == 0, fields[0] == [UInt8(ascii: "a")] else { return nil }
        func value(_ name: Unicode.Scalar) -> [UInt8]? {
            stride(from: 2, to: fields.count, by: 2).first { fields[$0] == [UInt8(ascii: name)] }.map { fields[$0 + 1] }
        }
        func text(_ name: Unicode.Scalar) -> String? { value(name).map { String(decoding: $0, as: UTF8.self) } }
        guard let place = text("p") else { return nil }
        if fields[1] == Array("node".utf8) { return UInt64(place).map { Announcement(id: id, place: nil, event: .dead(node: $0)) } }
        guard let place = MemberPlace(place) else { return nil }
        let info = value("i").flatMap { $0.isEmpty ? nil : $0 }
        let event: Announcement.Event? =
            switch String(decoding: fields[1], as: UTF8.self) {
            case "added": text("u").map { .added(user: $0, info: info) }
            case "info": text("u").map { .info(user: $0, info) }
            case "removed": text("u").map { .removed(user: $0) }
            case "occupied": .occupied
            case "vacated": .vacated
            case "count": text("n").flatMap { Int($0) }.map { .count($0) }
            default: nil
            }
        let standings: [(name: Unicode.Scalar, standing: Announcement.Standing)] = [
            ("e", .early), ("o", .repeated), ("c", .confirmed), ("l", .late),
        ]
        let standing = standings.first { value($0.name) != nil }?.standing ?? .change
        return event.map { Announcement(id: id, place: place, event: $0, standing: standing) }
    }

    /// Bytes of the fields.
    var byteCount: Int { fields.reduce(0) { $0 + $1.count } }

    /// Version of a message's head.
    private static let version: UInt8 = 1
    /// Version, origin and number.
    static let headBytes = 17

    /// A message with its head.
    static func message(origin: UInt64, number: UInt64, _ payload: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(headBytes + payload.count)
        bytes.append(version)
        for value in [origin, number] { for place in (0..<8).reversed() { bytes.append(UInt8(truncatingIfNeeded: value >> (8 * place))) } }
        bytes.append(contentsOf: payload)
        return bytes
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }

    /// The entries of an answer to XREAD, by stream.
    /// - Throws: `RedisFailure.notRedis` for an answer of another shape.
    package static func read(_ reply: RedisReply) throws(RedisFailure) -> [(stream: String, entries: [StreamEntry])] {
        if case .null = reply { return [] }
        guard let streams = reply.array else { throw shape }
        var found: [(stream: String, entries: [StreamEntry])] = []
        for stream in streams {
            guard let parts = stream.array, parts.count == 2, let name = parts[0].text, let items = parts[1].array else { throw shape }
            var entries: [StreamEntry] = []
            entries.reserveCapacity(items.count)
            for item in items {
                guard let parts = item.array, parts.count == 2, let id = parts[0].text.flatMap(StreamID.init) else { throw shape }
                // A deleted entry has no fields.
                entries.append(StreamEntry(id: id, fields: (parts[1].array ?? []).compactMap(\.bytes)))
            }
            found.append((name, entries))
        }
        return found
    }

    private static let shape = RedisFailure.notRedis("XREAD answers in another shape")
}
