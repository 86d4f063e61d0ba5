internal import HubDelivery
internal import HubHTTPClient

/// A gateway's answer to a check of the credentials, worded for an operator; free of secrets.
package struct CredentialCheck: Sendable, Equatable {
    /// Result of the check.
    package enum Verdict: Sendable {
        /// Credentials, project and topic are right.
        case good
        /// The configuration or the developer's account has a mistake.
        case refused
        /// The key is not for this environment; it may be for the other one only.
        case otherEnvironmentOnly
        /// No answer, or a temporary failure.
        case failed
    }

    package var verdict: Verdict
    /// The question, in words.
    package var asked: String
    /// The gateway's answer, in words.
    package var answered: String
    /// Remedy; nil if none is needed.
    package var advice: String?

    init(_ verdict: Verdict, asked: String, answered: String, advice: String? = nil) {
        self.verdict = verdict
        self.asked = asked
        self.answered = answered
        self.advice = advice
    }

    static func unreachable(asked: String, _ error: HTTPClientError, host: String) -> CredentialCheck {
        CredentialCheck(
            .failed, asked: asked, answered: "no answer: \(error)",
            advice: "see that this machine reaches \(host), that no proxy stands in between, and that its certificate is trusted")
    }

    static func apns(asked: String, _ outcome: PushOutcome) -> CredentialCheck {
        func check(_ verdict: Verdict, _ answered: String, _ advice: String? = nil) -> CredentialCheck {
            CredentialCheck(verdict, asked: asked, answered: answered, advice: advice)
        }
        let word = PushReason.word(of: outcome)
        switch (outcome, word) {
        // A gateway that accepts the made-up token has checked everything else as well.
        case (.accepted, _): return check(.good, "accepted")
        case (_, "BadDeviceToken"), (.dead(_, _, isCertain: true), _):
            return check(.good, "\(word), as it should: key, team and topic are right")
        case (_, "DeviceTokenNotForTopic"), (_, "BadTopic"), (_, "MissingTopic"), (_, "TopicDisallowed"):
            return check(.refused, word, "set APNS_TOPIC to the bundle id of an app of this team, and see that the key may send to it")
        case (_, "InvalidProviderToken"), (_, "MissingProviderToken"), (_, "UnrelatedKeyIdInToken"):
            return check(
                .refused, word, "check APNS_KEY_PATH, APNS_KEY_ID and APNS_TEAM_ID: they belong together, and the key is not revoked")
        case (_, "BadEnvironmentKeyIdInToken"):
            return check(
                .otherEnvironmentOnly, word, "the key is for the other environment: give this one a key of its own, or leave it unused")
        case (_, "ExpiredProviderToken"): return check(.refused, word, "set this machine's clock (NTP)")
        case (.retry, _): return check(.failed, outcome.reason ?? word, "ask again in a few minutes")
        default: return check(.refused, outcome.reason ?? word, "look up the key and the app in Apple's developer account")
        }
    }

    static func fcm(asked: String, _ outcome: PushOutcome) -> CredentialCheck {
        func check(_ verdict: Verdict, _ answered: String, _ advice: String? = nil) -> CredentialCheck {
            CredentialCheck(verdict, asked: asked, answered: answered, advice: advice)
        }
        let word = PushReason.word(of: outcome)
        switch (outcome, word) {
        case (.accepted, _): return check(.good, "it would be sent: account, role and project are right")
        case (.dead, _): return check(.good, "\(word), as it should: account, role and project are right")
        case (_, "UNAUTHENTICATED"): return check(.refused, word, "download a new key of the service account")
        case (_, "PERMISSION_DENIED"):
            return check(
                .refused, word,
                "enable the Firebase Cloud Messaging API in the project, and give the account the role \"Firebase Cloud Messaging API Admin\""
            )
        case (_, "NOT_FOUND"): return check(.refused, word, "check the service account's project_id: there is no such project")
        case (.retry, _): return check(.failed, outcome.reason ?? word, "ask again in a few minutes")
        default: return check(.refused, outcome.reason ?? word, "look up the service account in Google's console")
        }
    }
}
