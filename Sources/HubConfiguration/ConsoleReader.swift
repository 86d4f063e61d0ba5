internal import HubCrypto
internal import HubYAML

/// Reads the console's passwords. Messages never repeat one, nor a hash.
struct ConsoleReader {
    let settings: SettingReader

    func console(_ root: YAMLMap?) -> Configuration.Console {
        let map = root?.map("console", keys: ["operator_password_hash", "viewer_password_hash"])
        var console = Configuration.Console()
        console.operatorPasswordHash = hash("operator_password_hash", map)
        console.viewerPasswordHash = hash("viewer_password_hash", map)
        if let password = settings.variable(.consolePassword) {
            if password.count >= PasswordHash.charactersMin, password.utf8.count <= PasswordHash.bytesMax {
                console.operatorPassword = password
            } else {
                settings.note(
                    .environment(EnvironmentName.consolePassword.rawValue),
                    "expected a password of \(PasswordHash.charactersMin) characters to \(PasswordHash.bytesMax) bytes")
            }
        }
        return console
    }

    private func hash(_ key: String, _ map: YAMLMap?) -> String? {
        guard let text = settings.text(key, in: map, "console.\(key)") else { return nil }
        guard PasswordHash(text.value) != nil else {
            return settings.note(text.source, "console.\(key): expected a hash that tandem console password has printed")
        }
        settings.fileHasSecrets = true
        return text.value
    }
}
