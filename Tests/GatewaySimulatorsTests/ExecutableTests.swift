import Foundation
import Testing

@Suite("tandem-gateways") struct ExecutableTests {
    /// Path next to the test binary; nil if the executable was not built.
    private static let path: String? = {
        let folder = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
        let path = folder.appendingPathComponent("tandem-gateways").path
        return FileManager.default.isExecutableFile(atPath: path) ? path : nil
    }()

    private func start(_ arguments: [String]) throws -> (process: Process, output: Pipe, errors: Pipe) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: try #require(Self.path))
        process.arguments = arguments
        let (output, errors) = (Pipe(), Pipe())
        process.standardOutput = output
        process.standardError = errors
        try process.run()
        return (process, output, errors)
    }

    @Test(
        "says where everything is, then ready; SIGTERM and SIGINT end it with 0", .enabled(if: path != nil),
        arguments: [SIGTERM, SIGINT])
    func readyAndEnd(_ signal: Int32) throws {
        let folder = FileManager.default.temporaryDirectory.path + "/tandem-gateways-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let (process, output, _) = try start(["--data", folder])
        var text = ""
        while !text.hasSuffix("ready\n") {
            let part = output.fileHandleForReading.availableData
            guard !part.isEmpty else { break }
            text += String(decoding: part, as: UTF8.self)
        }
        let names = text.split(separator: "\n").map { $0.split(separator: " ").first.map(String.init) }
        #expect(names == ["apns", "sandbox", "fcm", "control", "settings", "ready"])
        kill(process.processIdentifier, signal)
        process.waitUntilExit()
        #expect(process.terminationReason == .exit && process.terminationStatus == 0)
    }

    @Test("a wrong option is 64, a start that fails is 1 with one line", .enabled(if: path != nil))
    func exitCodes() throws {
        let usage = try start(["--apns-port", "many"])
        usage.process.waitUntilExit()
        #expect(usage.process.terminationStatus == 64)
        let failed = try start(["--data", "/dev/null/x"])
        let errors = String(decoding: failed.errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        failed.process.waitUntilExit()
        #expect(failed.process.terminationStatus == 1)
        #expect(errors.hasPrefix("tandem-gateways: ") && errors.split(separator: "\n").count == 1)
    }
}
