import HubCore
import HubCrypto
import Synchronization

/// The access tokens issued and not yet expired.
final class AccessTokens: Sendable {
    private let lifetimeMilliseconds: UInt64
    /// Expiry per token, in monotonic milliseconds.
    private let issued = Mutex<[String: UInt64]>([:])

    init(lifetimeSeconds: Int) {
        lifetimeMilliseconds = UInt64(lifetimeSeconds) * 1000
    }

    func issue(now: UInt64) -> String {
        let token = "ya29.simulated-" + Base64URL.encode(SecureRandom.bytes(32))
        issued.withLock { issued in
            if issued.count >= SimulatorLimits.accessTokensMax {
                issued = issued.filter { $0.value > now }
                // If all are valid, the one that expires first is dropped.
                if issued.count >= SimulatorLimits.accessTokensMax, let first = issued.min(by: { $0.value < $1.value }) {
                    issued[first.key] = nil
                }
            }
            issued[token] = now + lifetimeMilliseconds
        }
        return token
    }

    func isValid(_ token: String, now: UInt64) -> Bool {
        issued.withLock { $0[token].map { $0 > now } ?? false }
    }

    func revokeAll() {
        issued.withLock { $0.removeAll() }
    }
}
