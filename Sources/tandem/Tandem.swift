import ArgumentParser
import Foundation
import HubServer

/// `tandem`: the hub and the commands around it.
@main
struct Tandem: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tandem",
        abstract: "A Pusher-compatible real-time hub that tells each participant once: over the socket or by push.",
        version: VersionText.text,
        subcommands: [
            Serve.self, Init.self, Check.self, Doctor.self, Health.self, Publish.self, API.self, Trace.self, Devices.self,
            DeadLetters.self, Apps.self, Cluster.self, Store.self, Auth.self, Console.self, Demo.self,
        ])

    /// Prints one error in the form that scripts expect, and returns its exit code.
    static func fail(_ error: ServerError) -> ExitCode {
        let lines = error.description.split(separator: "\n", omittingEmptySubsequences: true)
        for line in lines { FileHandle.standardError.write(Data("tandem: \(line)\n".utf8)) }
        return ExitCode(error.exitCode.rawValue)
    }
}
