import ArgumentParser
import Foundation
import LoadTesting

/// Loads a server from outside and says what it did.
@main
struct TandemLoadTest: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tandem-loadtest", abstract: "Load a Pusher-compatible server and measure what arrives.",
        subcommands: [Fanout.self, Rooms.self])
}

/// A command that runs one scenario.
protocol ScenarioCommand: ParsableCommand {
    var load: LoadOptions { get }
    static var defaults: LoadOptions.Defaults { get }
    func scenario() throws -> any Scenario
}

extension ScenarioCommand {
    func run() throws {
        do {
            let target = try load.target()
            let scenario = try scenario()
            let name = Self.configuration.commandName ?? type(of: scenario).name
            let dialect = try DialectName.dialect(load.dialect, app: load.app, target: target)
            let outcome = try scenario.run(load.options(name, Self.defaults), target: target, dialect: dialect)
            try Results.write(outcome, json: load.json, html: load.html)
            if !outcome.failures.isEmpty { throw ExitCode(1) }
        } catch let error as LoadError {
            FileHandle.standardError.write(Data("Error: \(error)\n".utf8))
            throw ExitCode(error.isUsage ? ExitCode.validationFailure.rawValue : 1)
        }
    }
}

struct Fanout: ScenarioCommand {
    static let configuration = CommandConfiguration(
        commandName: "fanout", abstract: "One channel, many subscribers: what arrives, how late, at what cost. With many --seconds a soak.")
    static let defaults = LoadOptions.Defaults()
    @OptionGroup var load: LoadOptions

    func scenario() -> any Scenario { FanoutScenario() }
}

struct Rooms: ScenarioCommand {
    static let configuration = CommandConfiguration(
        commandName: "rooms", abstract: "Many channels of few subscribers, publishes spread over them.")
    static let defaults = LoadOptions.Defaults(connections: 1000, channels: 100, channel: "room", rate: 500)
    @OptionGroup var load: LoadOptions

    func scenario() -> any Scenario { FanoutScenario() }
}
