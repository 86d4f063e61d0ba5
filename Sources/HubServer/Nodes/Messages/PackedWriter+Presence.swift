internal import HubCore
internal import HubDelivery

/// The fields at the end of an answer about presence: connections and recent changes of the people listed before. Builds before these
/// fields end the message there.
extension PackedWriter {
    /// Bytes of an answer about presence, below the bound of a message. Details that exceed it are left out.
    private static let answerBytesMax = 900_000
    /// Bytes of the numbers of one detail, at most.
    private static let detailBytes = 64

    mutating func addDetails(of people: [ParticipantPresence]) {
        let sockets = people.enumerated().flatMap { place, one in one.sockets.map { (place: place, socket: $0) } }
        let changes = people.enumerated().flatMap { place, one in one.changes.map { (place: place, change: $0) } }
        add(fitting(sockets) { ($0.socket.node?.utf8.count ?? 0) + ($0.socket.device?.utf8.count ?? 0) }) { writer, detail in
            writer.add(detail.place)
            writer.add(detail.socket.node)
            writer.add(detail.socket.loop)
            writer.add(detail.socket.device)
            writer.add(detail.socket.state)
            writer.add(detail.socket.receiptAge.map { UInt64(clamping: $0) }) { $0.add($1) }
        }
        add(fitting(changes) { $0.change.device?.utf8.count ?? 0 }) { writer, detail in
            writer.add(detail.place)
            writer.add(detail.change.at)
            writer.add(Int(detail.change.kind.rawValue))
            writer.add(detail.change.device)
        }
    }

    private func fitting<Detail>(_ details: [Detail], _ textBytes: (Detail) -> Int) -> ArraySlice<Detail> {
        var (room, count) = (Self.answerBytesMax - bytes.count, 0)
        for detail in details {
            room -= Self.detailBytes + textBytes(detail)
            if room < 0 { break }
            count += 1
        }
        return details.prefix(count)
    }
}

extension PackedReader {
    mutating func details(of people: [ParticipantPresence]) throws(Malformed) -> [ParticipantPresence] {
        if isAtEnd { return people }
        var people = people
        let sockets = try list { reader throws(Malformed) in
            (
                place: try reader.count(),
                ParticipantPresence.Socket(
                    node: try reader.optionalText(), loop: try reader.count(), device: try reader.optionalText(),
                    state: try reader.state(), receiptAge: try reader.optionalNumber().map { Int64(clamping: $0) })
            )
        }
        for (place, socket) in sockets where people.indices.contains(place) { people[place].sockets.append(socket) }
        let changes = try list { reader throws(Malformed) in
            (place: try reader.count(), at: try reader.signed(), kind: try reader.count(), device: try reader.optionalText())
        }
        for change in changes where people.indices.contains(change.place) {
            // A newer build may know further kinds.
            guard let kind = UInt8(exactly: change.kind).flatMap(PresenceChange.Kind.init) else { continue }
            people[change.place].changes.append(PresenceChange(at: change.at, kind, device: change.device))
        }
        return people
    }
}
