import Foundation
import HubConfiguration
import Testing

@Suite("Files with secrets")
struct SecretFilesTests {
    @Test("those that others can read are named with their place and the remedy, and nothing else is")
    func warnings() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("tandem-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        func path(_ name: String) -> String { folder.appendingPathComponent(name).path }
        for (name, mode) in [
            ("tandem.yaml", 0o644), ("cert.pem", 0o644), ("key.pem", 0o640), ("a.p8", 0o604), ("sandbox.p8", 0o600), ("b.p8", 0o400),
            ("f.json", 0o644),
        ] {
            _ = FileManager.default.createFile(atPath: path(name), contents: nil, attributes: [.posixPermissions: mode])
            // Where root runs the tests: a file of root's is another matter.
            if geteuid() == 0 { chown(path(name), 65_534, 65_534) }
        }
        let text = """
            listen: { tls: { cert: \(path("cert.pem")), key: \(path("key.pem")) } }
            apps:
              - { id: 1, key: k, secret: a-secret-of-sixteen, push: { apns: { key_path: \(path("b.p8")), key_id: K, team_id: T, topic: t } } }
            push:
              apns: { key_path: \(path("a.p8")), key_id: K, team_id: T, topic: t, sandbox_key_path: \(path("sandbox.p8")), sandbox_key_id: S }
              fcm: { service_account: \(path("f.json")) }
            """
        let file = path("tandem.yaml")
        let found = SecretFiles.warnings(try ConfigurationParser.parse(file: (file, text)))
        #expect(
            found == [
                "--config: \(file) holds secrets and can be read by others than its owner (mode 644): chmod 600 \(file)",
                "\(file):1: listen.tls.key: \(path("key.pem")) holds secrets and can be read by others than its owner (mode 640): chmod 600 \(path("key.pem"))",
                "\(file):5: push.apns.key_path: \(path("a.p8")) holds secrets and can be read by others than its owner (mode 604): chmod 600 \(path("a.p8"))",
                "\(file):6: push.fcm.service_account: \(path("f.json")) holds secrets and can be read by others than its owner (mode 644): chmod 600 \(path("f.json"))",
            ])
        // A file without secrets may be readable by everybody.
        #expect(SecretFiles.warnings(try ConfigurationParser.parse(file: (file, "log_level: info"))) == [])
    }

    @Test("a group may read a file of root's, and nobody else", .enabled(if: geteuid() == 0))
    func filesOfRoot() throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("tandem-\(UUID().uuidString).yaml").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let configuration = try ConfigurationParser.parse(file: (path, "operator: { key: k, secret: a-secret-of-sixteen }"))
        for (mode, count) in [(0o640, 0), (0o600, 0), (0o644, 1), (0o604, 1)] {
            try Data().write(to: URL(fileURLWithPath: path))
            chmod(path, mode_t(mode))
            #expect(SecretFiles.warnings(configuration).count == count, "\(String(mode, radix: 8))")
        }
    }
}
