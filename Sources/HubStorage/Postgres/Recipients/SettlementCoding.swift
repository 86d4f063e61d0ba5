import HubDelivery

/// The stored form of a settlement's places, little-endian: the counts of both lists, then the receipts, then the pushes. A receipt has a
/// place and a time, a push a place. Settlements stand one behind another when an event's rows are read together.
enum SettlementCoding {
    /// Largest number of steps of `ReceiptTimes`.
    private static let stepMax = Int64(UInt16.max) - 1

    static func encode(_ settlement: RecipientSettlement, committedAt: Int64) -> [UInt8] {
        var bytes: [UInt8] = []
        func append<Number: FixedWidthInteger>(_ number: Number) {
            for place in 0..<Number.bitWidth / 8 { bytes.append(UInt8(truncatingIfNeeded: number >> (8 * place))) }
        }
        // A place that no event has is passed over, now or when the row is read.
        let confirmed = settlement.confirmed.filter { $0.recipient >= 0 }
        let pushed = settlement.pushed.filter { $0 >= 0 }
        append(UInt32(confirmed.count))
        append(UInt32(pushed.count))
        for receipt in confirmed {
            append(UInt32(clamping: receipt.recipient))
            append(UInt16(clamping: min(max(0, receipt.at - committedAt) / ReceiptTimes.stepMilliseconds, stepMax)))
        }
        for place in pushed { append(UInt32(clamping: place)) }
        return bytes
    }

    /// - Returns: whether all bytes were settlements.
    static func apply(_ bytes: [UInt8], to bits: inout RecipientBits) -> Bool {
        var next = 0
        func number<Number: FixedWidthInteger>(_: Number.Type) -> Number? {
            let size = Number.bitWidth / 8
            guard next + size <= bytes.count else { return nil }
            defer { next += size }
            return (0..<size).reduce(Number(0)) { $0 | Number(truncatingIfNeeded: UInt64(bytes[next + $1]) << UInt64(8 * $1)) }
        }
        while next < bytes.count {
            guard let confirmed = number(UInt32.self), let pushed = number(UInt32.self),
                Int(confirmed) * 6 + Int(pushed) * 4 <= bytes.count - next
            else { return false }
            var settlement = RecipientSettlement(event: "")
            for _ in 0..<confirmed {
                guard let place = number(UInt32.self), let steps = number(UInt16.self) else { return false }
                let at = bits.committedAt + Int64(steps) * ReceiptTimes.stepMilliseconds
                settlement.confirmed.append(RecipientSettlement.Confirmation(recipient: Int(place), at: at))
            }
            for _ in 0..<pushed {
                guard let place = number(UInt32.self) else { return false }
                settlement.pushed.append(Int(place))
            }
            bits.apply(settlement)
        }
        return true
    }
}
