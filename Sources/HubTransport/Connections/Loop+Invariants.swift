internal import HubCore

/// Invariants of a loop between two of its callbacks, for assertions.
extension Loop {
    /// Whether the parts of the loop's state agree. Walks all connections.
    var isConsistent: Bool { table.isConsistent && areQueuesConsistent && areAnswersConsistent }

    /// Whether nothing is left of any connection.
    var isEmpty: Bool { table.count == 0 && http.isEmpty && queues.isEmpty && assemblies.isEmpty && queuedMemory.bytes == 0 }

    /// Whether exactly the slow and the closing connections have queues, whose memory is counted.
    private var areQueuesConsistent: Bool {
        let isCounted = queuedMemory.bytes >= queues.values.reduce(0) { $0 + $1.ownBytes }
        let isBehind = queues.keys.allSatisfy { slot in
            let condition = unsafe table.base[Int(slot)].condition
            return condition == .behind || condition == .closing
        }
        return isCounted && isBehind && table.usedSlots.allSatisfy { unsafe table.base[Int($0)].condition != .behind || queues[$0] != nil }
    }

    /// Whether answers wait only on connections whose request the delegate has answered.
    private var areAnswersConsistent: Bool {
        http.indices.allSatisfy { index in
            guard let exchange = http[index]?.exchange else { return true }
            return exchange.serial < http.nextNumber && (exchange.pending == nil || exchange.isAnswered)
                && (!exchange.isAnswered || exchange.isDispatched)
        }
    }
}
