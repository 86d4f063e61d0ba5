internal import HubDelivery

/// Asks several lanes about a batch of pushes, each lane once.
enum AdmissionGroups {
    /// - Parameters:
    ///   - key: identifies the push's lane.
    ///   - ask: answers for the pushes of one key, in their order.
    /// - Returns: one answer per push, in the order of the pushes.
    static func admit<Key: Hashable>(
        _ candidates: [PushCandidate], by key: (PushTarget) -> Key, ask: (Key, [PushCandidate]) -> [PushAdmission]
    ) -> [PushAdmission] {
        guard let first = candidates.first.map({ key($0.target) }) else { return [] }
        let keys = candidates.map { key($0.target) }
        if keys.allSatisfy({ $0 == first }) { return ask(first, candidates) }
        var answers = Array(repeating: PushAdmission.go, count: candidates.count)
        for (key, places) in Dictionary(grouping: candidates.indices, by: { keys[$0] }) {
            for (place, answer) in zip(places, ask(key, places.map { candidates[$0] })) { answers[place] = answer }
        }
        return answers
    }
}
