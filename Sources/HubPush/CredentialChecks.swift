package import HubCore
package import HubDelivery
package import Logging

/// Checks the credentials at every gateway: one harmless request per environment and credential, without duplicates.
package final class CredentialChecks {
    /// Result of one check.
    package struct Answer: Sendable, Equatable {
        /// `push` for the common credentials, `app 7` for an app's own.
        package var place: String
        package var provider: PushProvider
        /// Nil for FCM.
        package var environment: APNsEnvironment?
        package var check: CredentialCheck
    }

    private typealias Question = @Sendable () async -> Answer

    private let lanes: PushLanes
    private var questions: [Question] = []

    /// Starts a thread per lane; connections open with `run`.
    /// - Throws: if a credential cannot be used.
    package init(_ credentials: PushCredentialSet, time: any TimeSource, logger: Logger) throws(PushConfigurationError) {
        lanes = PushLanes(time: time, logger: logger, reports: PushReports(time: time))
        var asked: Set<ObjectIdentifier> = []
        let own = credentials.apps.sorted { $0.key < $1.key }.map { (place: "app \($0.key)", credentials: $0.value) }
        for (place, credentials) in [(place: "push", credentials: credentials.common)] + own {
            if let configuration = credentials.apns {
                let gateway = try lanes.gateway(configuration)
                if asked.insert(ObjectIdentifier(gateway)).inserted {
                    for environment in [APNsEnvironment.production, .sandbox] {
                        questions.append {
                            let check = await withCheckedContinuation { answer in
                                gateway.checkCredentials(environment) { answer.resume(returning: $0) }
                            }
                            return Answer(place: place, provider: .apns, environment: environment, check: check)
                        }
                    }
                }
            }
            if let configuration = credentials.fcm {
                let gateway = try lanes.gateway(configuration)
                if asked.insert(ObjectIdentifier(gateway)).inserted {
                    questions.append {
                        let check = await withCheckedContinuation { answer in gateway.checkCredentials { answer.resume(returning: $0) } }
                        return Answer(place: place, provider: .fcm, environment: nil, check: check)
                    }
                }
            }
        }
    }

    /// Runs all checks concurrently, each with a time limit. Ends the threads, so it can run only once.
    /// - Returns: common credentials first, then by app, APNs before FCM.
    package func run() async -> [Answer] {
        let answers = await withTaskGroup(of: (Int, Answer).self) { group in
            for (index, question) in questions.enumerated() { group.addTask { (index, await question()) } }
            return await group.reduce(into: [(Int, Answer)]()) { $0.append($1) }
        }
        PushLanes.close(lanes.retire(allBut: []), grace: .zero)
        return answers.sorted { $0.0 < $1.0 }.map(\.1)
    }
}
