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
        var file: (name: String, text: String)?
        if let config {
            guard let data = FileManager.default.contents(atPath: config), let text = String(validating: data, as: UTF8.self) else {
                throw ServerError(.badConfiguration, "--config: cannot read \(config): it has to be a readable file of UTF-8 text")
            }
            file = (config, text)
        }
        var flags = flags
        flags.channels = channels
        do {
            return try ConfigurationParser.parse(file: file, environment: ProcessInfo.processInfo.environment, flags: flags)
        } catch {
            throw ServerError(.badConfiguration, "\(error)")
        }
    }
}
