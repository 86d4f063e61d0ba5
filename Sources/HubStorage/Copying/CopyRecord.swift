import HubCore
import HubDelivery

/// A column's value, alike in every store.
enum CopyValue: Equatable {
    case null
    case int(Int64)
    case text(String)
    case bytes([UInt8])

    /// Appends a form that differs for every two values.
    func append(to output: inout [UInt8]) {
        func append(_ tag: UInt8, _ bytes: some Collection<UInt8>) {
            output.append(tag)
            for shift in 0..<8 { output.append(UInt8(truncatingIfNeeded: bytes.count >> (8 * shift))) }
            output += bytes
        }
        switch self {
        case .null: output.append(0)
        case .int(let number): append(1, String(number).utf8)
        case .text(let text): append(2, text.utf8)
        case .bytes(let bytes): append(3, bytes)
        }
    }
}

/// One thing that a store keeps, without the store's own form.
struct CopyRecord {
    /// In the order of the kind's columns.
    var values: [CopyValue]
    /// Recipients of a fan-out, and who of them was told; nil for other kinds.
    var fanout: (list: RecipientSnapshot, bits: RecipientBits)?
    /// Push of a delivery's row; nil for other kinds.
    var push: PushRecord?

    init(_ values: [CopyValue]) { self.values = values }

    func text(_ place: Int) -> String { if case .text(let text) = values[place] { text } else { "" } }
    func int(_ place: Int) -> Int64 { if case .int(let number) = values[place] { number } else { 0 } }

    /// A fan-out's columns are event, number, app, channel, times, openness and notes; who was told is one value.
    static func fanout(
        _ values: [CopyValue], list: RecipientSnapshot, bits: RecipientBits
    ) -> CopyRecord {
        var record = CopyRecord(values)
        let step = ReceiptTimes.stepMilliseconds
        let confirmed = (0..<bits.count).filter { bits.confirmed.contains($0) }.map { place in
            let after = bits.received?.milliseconds(place) ?? 0
            return RecipientSettlement.Confirmation(recipient: place, at: bits.committedAt + after / step * step)
        }
        let settlement = RecipientSettlement(
            event: "", confirmed: confirmed, pushed: (0..<bits.count).filter { bits.pushed.contains($0) }, isClosed: false)
        let told = SettlementCoding.encode(settlement, committedAt: bits.committedAt)
        record.values += [.bytes(list.key), .int(Int64(bits.count)), .bytes(told)]
        // Read again from its form, so that both stores start from the same.
        var read = RecipientBits(count: bits.count, committedAt: bits.committedAt, confirmed: [], pushed: [], received: [])
        _ = SettlementCoding.apply(told, to: &read)
        record.fanout = (list, read)
        return record
    }

    /// A push's columns, its attempts, and its message in a stored form that does not depend on other pushes.
    static func push(_ push: PushRecord, log: String) -> CopyRecord {
        func text(_ value: String?) -> CopyValue { value.map { .text($0) } ?? .null }
        var record = CopyRecord([
            .text(push.event), .text(push.user), .text(DeviceColumn.text(push)), .text(push.nid), .text(push.app),
            .text(push.state.rawValue), .text(push.reason), .int(push.dueAt), .int(Int64(push.attempts)), text(push.providerID),
            text(push.outcome), text(push.address.map(DirectAddressCoding.text)), .text(log),
            text(push.message.map { PushMessageCoding.encode($0).text }),
        ])
        record.push = push
        return record
    }

    static let (pushLog, pushEvent, pushUser, pushDevice) = (12, 0, 1, 2)
}
