package import HubConfiguration
internal import HubCore
internal import HubDelivery
internal import HubPush
internal import Logging

/// Push gateways, made from the configuration, and their alarms.
extension Server {
    static func gateway(
        _ configuration: Configuration, time: any TimeSource, logger: Logger, reports: PushReports
    ) throws(ServerError) -> PushRouter {
        do {
            return try PushRouter(try credentials(configuration), time: time, logger: logger, reports: reports)
        } catch {
            throw ServerError(.badConfiguration, "\(error)")
        }
    }

    /// Reads the credential files that the configuration names.
    static func credentials(_ configuration: Configuration) throws(PushConfigurationError) -> PushCredentialSet {
        let common = try credentials(configuration.push, configuration)
        var set = PushCredentialSet(common: common)
        for app in configuration.apps where app.push.apns != nil || app.push.fcm != nil {
            var own: PushCredentials
            do throws(PushConfigurationError) {
                own = try credentials(app.push, configuration)
            } catch {
                throw PushConfigurationError("app \(app.id): \(error)")
            }
            own.apns = own.apns ?? common.apns
            own.fcm = own.fcm ?? common.fcm
            set.apps[app.id] = own
        }
        return set
    }

    private static func credentials(
        _ push: Configuration.Push, _ configuration: Configuration
    ) throws(PushConfigurationError) -> PushCredentials {
        var result = PushCredentials()
        if let settings = push.apns {
            result.apns = try APNsConfiguration.load(
                keyPath: settings.keyPath.value, keyID: settings.keyID, teamID: settings.teamID, topic: settings.topic,
                sandboxKey: settings.sandboxKey.map { ($0.path.value, $0.id) }, url: settings.url, sandboxURL: settings.sandboxURL,
                caFile: settings.caFile?.value,
                defaultEnvironment: configuration.push.apnsSandboxByDefault ? .sandbox : .production, read: CredentialFile.read)
        }
        if let settings = push.fcm {
            result.fcm = try FCMConfiguration.load(
                path: settings.serviceAccount.value, url: settings.url, caFile: settings.caFile?.value,
                messagesPerMinute: settings.messagesPerMinute ?? FCMConfiguration.messagesPerMinuteDefault, read: CredentialFile.read)
        }
        return result
    }

    /// Reads the push credentials as a start would.
    /// - Throws: a `badConfiguration` with the first mistake.
    package static func checkCredentials(_ configuration: Configuration) throws(ServerError) {
        do {
            _ = try credentials(configuration)
        } catch {
            throw ServerError(.badConfiguration, "\(error)")
        }
    }

    /// Logs an alarm; no other place does. The line's text never changes, so that operators can search for it. docs/operations.md explains
    /// each alarm.
    static func log(_ alarm: PushAlarm, lane: String, detail: String, to logger: Logger) {
        logger.error(
            "push alarm",
            metadata: ["push.alarm": .string(alarm.rawValue), "push.lane": .string(lane), "push.reason": .string(detail)])
    }
}
