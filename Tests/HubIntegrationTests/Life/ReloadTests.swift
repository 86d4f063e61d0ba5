import Foundation
import Glibc
import HubCore
import HubTesting
import Testing

/// SIGHUP: files are read again, and nobody is disconnected.
@Suite struct ReloadTests {
    @Test func certificates() async throws {
        try await Stage.run(seconds: 20) { stage in
            let certificate = try TestCertificate(.init(intermediates: 1))
            let new = try TestCertificate(.init(rsaBits: 2048, intermediates: 1))
            let hub = try await stage.hub(certificate: certificate)
            let result = try await stage.python(
                "life/reload.py", "certificate", hub: hub,
                environment: [
                    "CERT": certificate.certificatePath, "KEY": certificate.keyPath, "NEW_CERT": new.certificatePath,
                    "NEW_KEY": new.keyPath,
                    "NEW_CA": new.authorityPath,
                ])
            #expect(result["half"] == true && result["renewed"] == true && result["kept"] == true)
            #expect(result["open"] == [.null, .null, .null, .null] && result["verified"] == 200)
            #expect(hub.log.contains("does not belong to the first certificate") && hub.log.contains("holds no certificate"))
            #expect(hub.log.contains("TANDEM_TLS_KEY: listen.tls.key: cannot read"))
        }
    }

    @Test(arguments: [1, 2]) func definitions(loops: Int) async throws {
        try await Stage.run { stage in
            let channels = stage.folder.appendingPathComponent("own-channels")
            try FileManager.default.createDirectory(at: channels, withIntermediateDirectories: true)
            let hub = try await stage.hub(loops: loops, arguments: ["--channels", channels.path])
            let result = try await stage.python("life/reload.py", "definitions", hub: hub, environment: ["CHANNELS": channels.path])
            #expect(result["undefined"] == [1, 1])
            #expect(result["defined"] == [2, 1] && result["renumbered"] == [3, 1] && result["broken"] == [4, 1])
            #expect(result["gone"] == [5, 2])
            #expect(result["present"] == ["h": true, "s": true])
            #expect(result["open"] == [.null, .null])
        }
    }

    @Test func badFilesAtTheStart() async throws {
        let (good, other) = (try TestCertificate(), try TestCertificate(.init(password: "secret")))
        for (certificate, key, words) in [
            ("/nowhere.pem", good.keyPath, "TANDEM_TLS_CERT: listen.tls.cert: cannot read /nowhere.pem"),
            (good.keyPath, good.keyPath, "holds no certificate"), (good.certificatePath, other.keyPath, "encrypted"),
            (other.certificatePath, good.keyPath, "does not belong to the first certificate"),
        ] {
            for command in ["serve", "check"] {
                try await Stage.run { stage in
                    let process = try stage.start(
                        Place.tandem, [command, "--channels", Place.channels] + (command == "serve" ? ["--port", "0"] : []),
                        environment: ["TANDEM_TLS_CERT": certificate, "TANDEM_TLS_KEY": key])
                    #expect(try await process.waitForEnd().code == 78)
                    #expect(process.errors.split(separator: "\n").count == 1 && process.errors.contains(words), "\(process.errors)")
                }
            }
        }
        try await Stage.run { stage in
            let expired = try TestCertificate(.init(validUntil: -60))
            let check = try stage.start(
                Place.tandem, ["check", "--channels", Place.channels],
                environment: ["TANDEM_TLS_CERT": expired.certificatePath, "TANDEM_TLS_KEY": expired.keyPath])
            #expect(try await check.waitForEnd().code == 0)
            #expect(
                check.output.contains("TLS certificate: usable (localhost") && check.output.contains("warning: the TLS certificate expired")
            )
            let hub = try await stage.hub(certificate: expired)
            #expect(hub.log.contains("the TLS certificate expired"))
        }
    }

    /// A peer that speaks the wrong protocol, or breaks off, is not logged: a scanner must not fill the log.
    @Test(arguments: [false, true]) func strangersDoNotFillTheLog(isSecure: Bool) async throws {
        try await Wire.$isSecure.withValue(isSecure) {
            try await Stage.run { stage in
                let hub = try await stage.hub()
                let known = hub.log.split(separator: "\n").count
                let result = try await stage.python("life/life.py", "strangers", hub: hub)
                #expect(result["served"] == true)
                #expect(hub.log.split(separator: "\n").count - known < 10, "\(hub.log.suffix(2000))")
            }
        }
    }
}
