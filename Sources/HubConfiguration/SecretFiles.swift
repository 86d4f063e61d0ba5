internal import Glibc

/// Files that contain secrets, and their permissions.
package enum SecretFiles {
    /// One line per file that others on this machine can read: the place that names it, and the remedy. Missing files are left to their
    /// readers.
    package static func warnings(_ configuration: Configuration) -> [String] {
        var seen: Set<String> = []
        return files(configuration).compactMap { place, path in
            guard seen.insert(path).inserted, let mode = exposedMode(of: path) else { return nil }
            let digits = String(mode, radix: 8)
            return "\(place): \(path) holds secrets and can be read by others than its owner (mode \(digits)): chmod 600 \(path)"
        }
    }

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

    /// The mode of a file that others than its owner can read; nil for any other. A group may read a file of root's, because only root
    /// can give it that group: so do packages of services.
    private static func exposedMode(of path: String) -> mode_t? {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return nil }
        let othersMayRead: mode_t = status.st_uid == 0 ? 0o004 : 0o044
        return status.st_mode & othersMayRead == 0 ? nil : status.st_mode & 0o777
    }
}
