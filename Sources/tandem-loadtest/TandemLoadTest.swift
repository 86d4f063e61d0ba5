import ArgumentParser
import Foundation
import LoadTesting

/// Loads a server from outside and reports its behaviour.
@main
struct TandemLoadTest: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tandem-loadtest", abstract: "Load a Pusher-compatible server and measure what arrives.",
        subcommands: [
            Fanout.self, Rooms.self, Crowd.self, Churn.self, PresenceStorm.self, Publish.self, ClientEvents.self, Mixed.self, Push.self,
            Report.self,
        ])
}

/// A command that runs one scenario.
protocol ScenarioCommand: ParsableCommand {
    var load: LoadOptions { get }
    static var defaults: LoadOptions.Defaults { get }
    func scenario() throws -> any Scenario
    /// Adjusts the common options to the command's own.
    func adjust(_ options: inout RunOptions)
}

extension ScenarioCommand {
    func adjust(_ options: inout RunOptions) {}

    func run() throws {
        do {
            let targets = try load.targets()
            let scenario = try scenario()
            let name = Self.configuration.commandName ?? type(of: scenario).name
            let dialect = try DialectName.dialect(load.dialect, app: load.app, target: targets.first)
            var options = load.options(name, Self.defaults)
            adjust(&options)
            let outcome = try scenario.run(options, targets: targets, dialect: dialect)
            try Results.write(outcome, json: load.json, html: load.html)
            if !outcome.failures.isEmpty { throw ExitCode(1) }
        } catch let error as LoadError {
            FileHandle.standardError.write(Data("Error: \(error)\n".utf8))
            throw ExitCode(error.isUsage ? ExitCode.validationFailure.rawValue : 1)
        }
    }
}
