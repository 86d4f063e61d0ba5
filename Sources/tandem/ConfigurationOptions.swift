import ArgumentParser
import Foundation
import HubConfiguration
import HubServer

/// The options that locate the configuration, shared by all commands that need one.
struct ConfigurationOptions: ParsableArguments {
    @Option(name: .long, help: ArgumentHelp("Configuration file (YAML).", valueName: "file"))
    var config: String?

    @Option(name: .long, help: ArgumentHelp("Folder of channel definitions.", valueName: "dir"))
    var channels: String?

    /// - Throws: `ServerError` with every error of the configuration, one per line.
    func load(flags: ConfigurationFlags) throws(ServerError) -> Configuration {
        var flags = flags
        flags.channels = channels
        return try Self.load(config, flags: flags)
    }

    /// Reads a configuration file, with the environment and the flags over it.
    static func load(_ path: String?, flags: ConfigurationFlags = ConfigurationFlags()) throws(ServerError) -> Configuration {
        var file: (name: String, text: String)?
        if let path {
            guard let data = FileManager.default.contents(atPath: path), let text = String(validating: data, as: UTF8.self) else {
                throw ServerError(.badConfiguration, "--config: cannot read \(path): it has to be a readable file of UTF-8 text")
            }
            file = (path, text)
        }
        do {
            return try ConfigurationParser.parse(file: file, environment: ProcessInfo.processInfo.environment, flags: flags)
        } catch {
            throw ServerError(.badConfiguration, "\(error)")
        }
    }
}
