/// Failure of a call to Redis.
package enum RedisFailure: Error, Sendable, Equatable {
    /// Redis gives no answer, or the connection ended. The commands may have been carried out.
    case lost(String)
    /// Redis answers with an error: its first word, and the rest as a sentence.
    case refused(code: String, message: String)
    /// The other end does not speak RESP2, or more than its bounds allow.
    case notRedis(String)

    /// The sentence for logs and for `check --live`, without a password.
    package var sentence: String {
        switch self {
        case .lost(let reason): "Redis does not answer (\(reason)); look at its log and at the network"
        case .refused(let code, let message): "Redis refuses (\(code) \(message))"
        case .notRedis(let reason): "the address of the backplane is no Redis (\(reason)); look at host, port and redis:// or rediss://"
        }
    }
}
