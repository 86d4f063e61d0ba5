internal import Glibc

/// Files that contain secrets, and their permissions.
package enum SecretFiles {
    /// One line per file that others on this machine can read: the place that names it, and the remedy. Missing files are left to their
    /// readers.
    package static func warnings(_ configuration: Configuration) -> [String] {
        var seen: Set<String> = []
        return files(configuration).compactMap { place, path in
            guard seen.insert(path).inserted, let mode = mode(of: path), mode & othersMayRead != 0 else { return nil }
            let digits = String(mode, radix: 8)
            return "\(place): \(path) holds secrets and can be read by others than its owner (mode \(digits)): chmod 600 \(path)"
        }
    }

    private static let othersMayRead: mode_t = 0o044

    private static func files(_ configuration: Configuration) -> [(place: String, path: String)] {
        var files: [(place: String, path: String)] = configuration.fileWithSecrets.map { [("--config", $0)] } ?? []
        func add(_ setting: Setting<String>?, _ name: String) {
            if let setting { files.append(("\(setting.source): \(name)", setting.value)) }
        }
        add(configuration.listen.tls?.key, "listen.tls.key")
        for push in [configuration.push] + configuration.apps.map(\.push) {
            add(push.apns?.keyPath, "push.apns.key_path")
            add(push.apns?.sandboxKey?.path, "push.apns.sandbox_key_path")
            add(push.fcm?.serviceAccount, "push.fcm.service_account")
        }
        return files
    }

    private static func mode(of path: String) -> mode_t? {
        var status = stat()
        return unsafe stat(path, &status) == 0 ? status.st_mode & 0o777 : nil
    }
}
