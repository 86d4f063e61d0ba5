/// Failure of a call to Redis.
package enum RedisFailure: Error, Sendable, Equatable {
    /// Redis gives no answer, or the connection ended. The commands may have been carried out.
    case lost(String)
    /// Redis answers with an error: its first word, and the rest as a sentence.
    case refused(code: String, message: String)
    /// The other end does not speak RESP2, or more than its bounds allow.
    case notRedis(String)
    /// The server answers, and cannot be the backplane: what is wrong and what to do, as the end of a sentence about Redis.
    case unfit(String)

    /// The sentence for logs and for `check --live`, without a password.
    package var sentence: String {
        switch self {
        case .lost(let reason): "Redis does not answer (\(reason)); look at its log and at the network"
        case .refused(let code, let message):
            if ["WRONGPASS", "NOAUTH"].contains(code) || message.contains("AUTH <password>") {
                "Redis refuses the login (\(code) \(message)); look at user and password: redis://USER:PASSWORD@HOST"
            } else {
                "Redis refuses (\(code) \(message))"
            }
        case .unfit(let reason): "Redis \(reason)"
        case .notRedis(let reason): "the address of the backplane is no Redis (\(reason)); look at host, port and redis:// or rediss://"
        }
    }

    /// Whether only another setting, here or of the server, can help.
    package var isMistake: Bool {
        switch self {
        case .lost: false
        case .refused(let code, _): ["WRONGPASS", "NOAUTH", "NOPERM", "ERR"].contains(code)
        case .notRedis, .unfit: true
        }
    }
}
