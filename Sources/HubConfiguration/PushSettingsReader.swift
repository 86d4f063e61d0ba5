internal import HubYAML

/// Reads the credentials of the push gateways. A gateway without credentials is legal: its pushes are only logged.
struct PushSettingsReader {
    let settings: SettingReader

    private static let apnsKeys = [
        "key_path", "key_id", "team_id", "topic", "sandbox_key_path", "sandbox_key_id", "url", "sandbox_url", "ca_file",
    ]
    private static let fcmKeys = ["service_account", "url", "ca_file", "messages_per_minute"]
    /// Range of the quota: less than one push a second suits no game, and Google does not grant more.
    private static let messagesPerMinute = 60...100_000_000

    /// The common credentials: `push` of the file, and the environment's.
    func push(_ map: YAMLMap?) -> Configuration.Push {
        let push = map?.map("push", keys: ["apns", "fcm", "stale_after"])
        var result = Configuration.Push()
        let apns = push?.map("apns", keys: Self.apnsKeys + ["use_sandbox"])
        result.apns = readAPNs(apns, name: "push.apns", isCommon: true)
        result.fcm = readFCM(push?.map("fcm", keys: Self.fcmKeys), name: "push.fcm", isCommon: true)
        if let staleAfter = push?.duration("stale_after") { result.staleAfter = staleAfter }
        if let sandbox = sandbox(apns) { result.apnsSandboxByDefault = sandbox }
        return result
    }

    /// An app's own credentials: its `push` in the file. The environment's credentials are not an app's, but its addresses of simulators
    /// apply to all.
    func push(of app: YAMLMap) -> Configuration.Push {
        guard let push = app.map("push", keys: ["apns", "fcm"]) else { return .init() }
        var result = Configuration.Push()
        if let apns = push.map("apns", keys: Self.apnsKeys) {
            result.apns = readAPNs(apns, name: push.path("apns"), isCommon: false)
        }
        if let fcm = push.map("fcm", keys: Self.fcmKeys) {
            result.fcm = readFCM(fcm, name: push.path("fcm"), isCommon: false)
        }
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

    private func readAPNs(_ map: YAMLMap?, name: String, isCommon: Bool) -> Configuration.APNs? {
        let names: [(String, EnvironmentName)] = [
            ("key_path", .apnsKeyPath), ("key_id", .apnsKeyID), ("team_id", .apnsTeamID), ("topic", .apnsTopic),
        ]
        let parts = names.map { key, variable in
            (
                key: key, variable: variable,
                value: settings.text(key, in: map, "\(name).\(key)", environment: isCommon ? variable : nil)
            )
        }
        let url = settings.gatewayURL(in: map, "\(name).url", environment: .apnsURL)
        let sandboxURL = settings.gatewayURL("sandbox_url", in: map, "\(name).sandbox_url", environment: .apnsSandboxURL)
        let caFile = settings.text("ca_file", in: map, "\(name).ca_file", environment: .pushCAFile)
        guard
            let source = parts.lazy.compactMap(\.value).first?.source ?? url?.source
                ?? sandboxURL?.source ?? map.map({ .file(settings.fileName, line: $0.node.line) })
        else { return nil }
        for part in parts {
            if let value = part.value {
                if part.key != "key_path", !NetworkAddress.isWord(value.value) {
                    settings.note(value.source, "\(name).\(part.key): expected text without spaces")
                }
            } else if map?[part.key] == nil, !isCommon {
                settings.note(source, "\(name) has no \(part.key): write it; an app's own credentials stand in the file")
            } else if map?[part.key] == nil, settings.variable(part.variable) == nil, !isSandboxOnly(map) {
                settings.note(source, "\(name) has no \(part.key): write it, or set \(part.variable.rawValue)")
            }
        }
        let sandboxKey = readSandboxKey(map, name: name)
        guard let keyPath = parts[0].value, let keyID = parts[1].value, let teamID = parts[2].value, let topic = parts[3].value
        else { return nil }
        return .init(
            keyPath: keyPath, keyID: keyID.value, teamID: teamID.value, topic: topic.value, sandboxKey: sandboxKey, url: url?.value,
            sandboxURL: sandboxURL?.value, caFile: caFile)
    }

    private func readSandboxKey(_ map: YAMLMap?, name: String) -> Configuration.SandboxKey? {
        let path = settings.text("sandbox_key_path", in: map, "\(name).sandbox_key_path")
        let id = settings.text("sandbox_key_id", in: map, "\(name).sandbox_key_id")
        switch (path, id) {
        case (let path?, let id?): return .init(path: path, id: id.value)
        case (let path?, nil): return settings.note(path.source, "\(name) has a sandbox_key_path and no sandbox_key_id: write both")
        case (nil, let id?): return settings.note(id.source, "\(name) has a sandbox_key_id and no sandbox_key_path: write both")
        case (nil, nil): return nil
        }
    }

    /// Whether only `use_sandbox` is set, which is about tokens and no connection.
    private func isSandboxOnly(_ map: YAMLMap?) -> Bool {
        guard let map else { return false }
        return map.entries.allSatisfy { $0.key == "use_sandbox" } && settings.variable(.apnsURL) == nil
            && settings.variable(.apnsSandboxURL) == nil
            && [EnvironmentName.apnsKeyPath, .apnsKeyID, .apnsTeamID, .apnsTopic].allSatisfy { settings.variable($0) == nil }
    }

    private func readFCM(_ map: YAMLMap?, name: String, isCommon: Bool) -> Configuration.FCM? {
        let account = settings.text(
            "service_account", in: map, "\(name).service_account", environment: isCommon ? .fcmServiceAccount : nil)
        let url = settings.gatewayURL(in: map, "\(name).url", environment: .fcmURL)
        let caFile = settings.text("ca_file", in: map, "\(name).ca_file", environment: .pushCAFile)
        let quota = settings.int(
            "messages_per_minute", in: map, "\(name).messages_per_minute", range: Self.messagesPerMinute, environment: nil, flag: nil)
        guard let account else {
            if !isCommon, let map, map["service_account"] == nil {
                settings.file.note(map.node, "\(name) has no service_account: name the service account's file")
            }
            let isMissing = isCommon && map?["service_account"] == nil && settings.variable(.fcmServiceAccount) == nil
            if isMissing, let source = url?.source ?? map.map({ SettingSource.file(settings.fileName, line: $0.node.line) }) {
                settings.note(
                    source,
                    "\(name) has no service_account: name the service account's file, or set GOOGLE_APPLICATION_CREDENTIALS")
            }
            return nil
        }
        return .init(
            serviceAccount: account, url: url?.value, caFile: caFile, messagesPerMinute: quota?.value)
    }
}
