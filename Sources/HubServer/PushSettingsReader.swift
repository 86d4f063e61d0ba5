internal import HubYAML

/// Reads the credentials of the push gateways. A gateway without credentials is legal: its pushes are logged and not sent.
struct PushSettingsReader {
    let settings: SettingReader

    func push(_ map: YAMLMap?) -> Configuration.Push {
        let push = map?.map("push", keys: ["apns", "fcm"])
        var result = Configuration.Push()
        let apns = push?.map("apns", keys: ["key_path", "key_id", "team_id", "topic", "url", "ca_file", "use_sandbox"])
        result.apns = readAPNs(apns)
        result.fcm = readFCM(push?.map("fcm", keys: ["service_account", "url", "ca_file"]))
        if let sandbox = sandbox(apns) { result.apnsSandboxByDefault = sandbox }
        return result
    }

    private func sandbox(_ apns: YAMLMap?) -> Bool? {
        if let text = settings.variable(.apnsUseSandbox) {
            // Both spellings are in use for this variable.
            switch text {
            case "true", "1": return true
            case "false", "0": return false
            default:
                settings.note(.environment(EnvironmentName.apnsUseSandbox.rawValue), "expected true or false")
                return nil
            }
        }
        return apns?.bool("use_sandbox")
    }

    private func readAPNs(_ map: YAMLMap?) -> Configuration.APNs? {
        let name = "push.apns"
        let names: [(String, EnvironmentName)] = [
            ("key_path", .apnsKeyPath), ("key_id", .apnsKeyID), ("team_id", .apnsTeamID), ("topic", .apnsTopic),
        ]
        let parts = names.map { key, variable in
            (key: key, variable: variable, value: settings.text(key, in: map, "\(name).\(key)", environment: variable))
        }
        let url = settings.gatewayURL(in: map, "\(name).url", environment: .apnsURL)
        let caFile = settings.text("ca_file", in: map, "\(name).ca_file", environment: .pushCAFile)
        guard
            let source = parts.lazy.compactMap(\.value).first?.source ?? url?.source
                ?? map.map({ .file(settings.fileName, line: $0.node.line) })
        else { return nil }
        for part in parts {
            if let value = part.value {
                if part.key != "key_path", !NetworkAddress.isWord(value.value) {
                    settings.note(value.source, "\(name).\(part.key): expected text without spaces")
                }
            } else if map?[part.key] == nil, settings.variable(part.variable) == nil, !isSandboxOnly(map) {
                settings.note(source, "\(name) has no \(part.key): write it, or set \(part.variable.rawValue)")
            }
        }
        guard let keyPath = parts[0].value, let keyID = parts[1].value, let teamID = parts[2].value, let topic = parts[3].value
        else { return nil }
        return .init(
            keyPath: keyPath, keyID: keyID.value, teamID: teamID.value, topic: topic.value, url: url?.value, caFile: caFile)
    }

    /// `apns: { use_sandbox: true }` alone is about tokens, not about a connection.
    private func isSandboxOnly(_ map: YAMLMap?) -> Bool {
        guard let map else { return false }
        return map.entries.allSatisfy { $0.key == "use_sandbox" } && settings.variable(.apnsURL) == nil
            && [EnvironmentName.apnsKeyPath, .apnsKeyID, .apnsTeamID, .apnsTopic].allSatisfy { settings.variable($0) == nil }
    }

    private func readFCM(_ map: YAMLMap?) -> Configuration.FCM? {
        let name = "push.fcm"
        let account = settings.text("service_account", in: map, "\(name).service_account", environment: .fcmServiceAccount)
        let url = settings.gatewayURL(in: map, "\(name).url", environment: .fcmURL)
        let caFile = settings.text("ca_file", in: map, "\(name).ca_file", environment: .pushCAFile)
        guard let account else {
            let isMissing = map?["service_account"] == nil && settings.variable(.fcmServiceAccount) == nil
            if isMissing, let source = url?.source ?? map.map({ SettingSource.file(settings.fileName, line: $0.node.line) }) {
                settings.note(
                    source,
                    "\(name) has no service_account: name the service account's file, or set GOOGLE_APPLICATION_CREDENTIALS")
            }
            return nil
        }
        return .init(serviceAccount: account, url: url?.value, caFile: caFile)
    }
}
