import HubDelivery
import Synchronization

/// A gateway that answers as scripted, in the order of sending, and remembers what it was asked to send.
package final class ScriptedGateway: PushGateway {
    package struct Sent: Sendable {
        package let message: PushMessage
        package let target: PushTarget
    }

    private let state = Mutex((script: [PushOutcome](), sent: [Sent](), held: [@Sendable (PushOutcome) -> Void]()))
    /// Answers nothing until `release`.
    private let holds: Bool

    package init(_ script: [PushOutcome] = [], holds: Bool = false) {
        self.holds = holds
        state.withLock { $0.script = script }
    }

    package var sent: [Sent] { state.withLock { $0.sent } }

    package func send(_ message: PushMessage, to target: PushTarget, completion: @escaping @Sendable (PushOutcome) -> Void) {
        let outcome = state.withLock { state -> PushOutcome? in
            state.sent.append(Sent(message: message, target: target))
            if holds {
                state.held.append(completion)
                return nil
            }
            return state.script.isEmpty ? .accepted(providerID: "p\(state.sent.count)") : state.script.removeFirst()
        }
        if let outcome { completion(outcome) }
    }

    /// Answers what is held.
    package func release(_ outcome: PushOutcome) {
        let held = state.withLock { state in
            defer { state.held = [] }
            return state.held
        }
        for completion in held { completion(outcome) }
    }
}
