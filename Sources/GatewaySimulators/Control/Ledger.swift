import HubCore
import Synchronization

/// The state shared by all ports: recorded requests and scripted faults.
final class Ledger: Sendable {
    struct Counts: Sendable {
        var stored = 0
        /// Records dropped to stay within the bounds, since the last clearing.
        var dropped = 0
        var faults = 0
        /// Requests per provider since the start, cleared ones included.
        var received: [GatewayProvider: Int] = [:]
        /// Requests answered with 200, included in `received`.
        var accepted: [GatewayProvider: Int] = [:]
    }

    private struct FaultKey: Hashable {
        /// Nil: any.
        var provider: GatewayProvider?
        var token: String
    }

    private struct State {
        /// Oldest first, beginning at `first`: dropping a record only advances the index.
        var records: [RecordedRequest] = []
        var first = 0
        var recordedBytes = 0
        var sequence = 0
        var faults: [FaultKey: [GatewayFault]] = [:]
        var counts = Counts()
    }

    /// A fault for this token applies to every device token without faults of its own. Faults for the token endpoint must name it, because
    /// otherwise they would stop requests on the way to the gateway.
    static let anyToken = "*"

    private let state = Mutex(State())

    func record(_ request: RecordedRequest) {
        state.withLock { state in
            state.sequence += 1
            var request = request
            request.sequence = state.sequence
            state.counts.received[request.provider, default: 0] += 1
            if request.status == 200 { state.counts.accepted[request.provider, default: 0] += 1 }
            state.records.append(request)
            state.recordedBytes += request.storedBytes
            while state.records.count - state.first > SimulatorLimits.recordsMax
                || state.recordedBytes > SimulatorLimits.recordedBytesMax
            {
                state.recordedBytes -= state.records[state.first].storedBytes
                state.first += 1
                state.counts.dropped += 1
            }
            if state.first > SimulatorLimits.recordsMax {
                state.records.removeFirst(state.first)
                state.first = 0
            }
        }
    }

    /// Matching requests in order of arrival.
    func requests(where matches: (RecordedRequest) -> Bool) -> [RecordedRequest] {
        state.withLock { state in state.records[state.first...].filter(matches) }
    }

    func clearRequests() {
        state.withLock { state in
            state.records.removeAll()
            state.first = 0
            state.recordedBytes = 0
            state.counts.dropped = 0
        }
    }

    var counts: Counts {
        state.withLock { state in
            var counts = state.counts
            counts.stored = state.records.count - state.first
            counts.faults = state.faults.count
            return counts
        }
    }

    /// Replaces the script of a token, whose faults are used up in order. An empty script removes it.
    func setFaults(_ faults: [GatewayFault], token: String, provider: GatewayProvider?) throws(GatewayError) {
        guard faults.count <= SimulatorLimits.faultStepsMax else {
            throw GatewayError("a token's script has more than \(SimulatorLimits.faultStepsMax) faults; use \"times\"")
        }
        let isFull = state.withLock { state in
            let key = FaultKey(provider: provider, token: token)
            if faults.isEmpty {
                state.faults[key] = nil
            } else if state.faults[key] == nil, state.faults.count >= SimulatorLimits.faultsMax {
                return true
            } else {
                state.faults[key] = faults
            }
            return false
        }
        if isFull {
            throw GatewayError("more than \(SimulatorLimits.faultsMax) tokens have faults; remove some with DELETE /faults")
        }
    }

    func removeFaults(token: String) {
        state.withLock { state in state.faults = state.faults.filter { $0.key.token != token } }
    }

    func removeAllFaults() {
        state.withLock { $0.faults.removeAll() }
    }

    var faults: JSONValue {
        let all = state.withLock { $0.faults }
        return .array(
            all.sorted { ($0.key.token, $0.key.provider?.rawValue ?? "") < ($1.key.token, $1.key.provider?.rawValue ?? "") }
                .map { key, steps in
                    [
                        "token": .string(key.token), "provider": key.provider.map { .string($0.rawValue) } ?? .null,
                        "faults": .array(steps.map(\.json)),
                    ]
                })
    }

    /// Takes the fault for this request and uses it up once.
    /// - Parameter environment: APNs only; faults of the other environment do not apply.
    func takeFault(provider: GatewayProvider, token: String, environment: SimulatedEnvironment? = nil) -> GatewayFault? {
        state.withLock { state in
            guard !state.faults.isEmpty else { return nil }
            for key in [
                FaultKey(provider: provider, token: token), FaultKey(provider: nil, token: token),
                FaultKey(provider: provider, token: Self.anyToken), FaultKey(provider: nil, token: Self.anyToken),
            ] {
                if provider == .oauth, key.provider == nil { continue }
                guard var steps = state.faults[key],
                    let place = steps.firstIndex(where: { $0.environment == nil || $0.environment == environment })
                else { continue }
                let fault = steps[place]
                if let times = fault.times {
                    if times > 1 { steps[place].times = times - 1 } else { steps.remove(at: place) }
                    state.faults[key] = steps.isEmpty ? nil : steps
                }
                return fault
            }
            return nil
        }
    }
}
