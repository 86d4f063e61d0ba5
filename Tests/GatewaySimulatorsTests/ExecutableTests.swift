import Foundation
import HubTesting
import Testing

@Suite("tandem-gateways") struct ExecutableTests {
    /// Path next to the test binary; nil if the executable was not built.
    private static let path: String? = {
        let folder = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
        let path = folder.appendingPathComponent("tandem-gateways").path
        return FileManager.default.isExecutableFile(atPath: path) ? path : nil
    }()

    private func start(_ arguments: [String]) throws -> (program: SpawnedProgram, output: Pipe, errors: Pipe) {
        let (output, errors) = (Pipe(), Pipe())
        let program = try SpawnedProgram(
            #require(Self.path), arguments, output: .descriptor(output.fileHandleForWriting),
            errors: .descriptor(errors.fileHandleForWriting))
        for pipe in [output, errors] { try pipe.fileHandleForWriting.close() }
        return (program, output, errors)
    }

    @Test(
        "says where everything is, then ready; SIGTERM and SIGINT end it with 0", .enabled(if: path != nil),
        arguments: [SIGTERM, SIGINT])
    func readyAndEnd(_ signal: Int32) throws {
        let folder = FileManager.default.temporaryDirectory.path + "/tandem-gateways-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let (program, output, _) = try start(["--data", folder])
        var text = ""
        while !text.hasSuffix("ready\n") {
            let part = output.fileHandleForReading.availableData
            guard !part.isEmpty else { break }
            text += String(decoding: part, as: UTF8.self)
        }
        let names = text.split(separator: "\n").map { $0.split(separator: " ").first.map(String.init) }
        #expect(names == ["apns", "sandbox", "fcm", "control", "settings", "ready"])
        program.send(signal)
        #expect(program.waitForEnd() == .init(code: 0, wasSignalled: false))
    }

    @Test("a wrong option is 64, a start that fails is 1 with one line", .enabled(if: path != nil))
    func exitCodes() throws {
        let usage = try start(["--apns-port", "many"])
        #expect(usage.program.waitForEnd() == .init(code: 64, wasSignalled: false))
        let failed = try start(["--data", "/dev/null/x"])
        let errors = String(decoding: failed.errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        #expect(failed.program.waitForEnd() == .init(code: 1, wasSignalled: false))
        #expect(errors.hasPrefix("tandem-gateways: ") && errors.split(separator: "\n").count == 1)
    }
}
