/// Settlements of several events for one transaction, in the order in which the events first changed.
struct Settlements: Sendable {
    private var byEvent: [String: RecipientSettlement] = [:]
    private var order: [String] = []

    mutating func confirmed(_ event: String, _ recipients: [Int], at: Int64) {
        change(event) { $0.confirmed += recipients.map { RecipientSettlement.Confirmation(recipient: $0, at: at) } }
    }
    mutating func pushed(_ event: String, _ recipients: [Int]) { change(event) { $0.pushed += recipients } }
    mutating func closed(_ event: String) { change(event) { $0.isClosed = true } }

    mutating func take() -> [RecipientSettlement] {
        defer { (byEvent, order) = ([:], []) }
        return order.compactMap { byEvent[$0] }
    }

    private mutating func change(_ event: String, _ change: (inout RecipientSettlement) -> Void) {
        if byEvent[event] == nil { order.append(event) }
        change(&byEvent[event, default: RecipientSettlement(event: event)])
    }
}
