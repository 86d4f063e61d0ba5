import ArgumentParser
import Foundation
import Glibc
import HubConfiguration
import HubDefinitions
import HubServer

/// `tandem init`: the first configuration file.
struct Init: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Write a commented configuration with random secrets.",
        discussion: """
            An existing file is never changed: that ends with 1. Only the file's owner can read it, because it holds secrets. They are \
            never printed.

            Examples:
              tandem init                    # ./tandem.yaml, data in ./data
              tandem init --config /etc/tandem/tandem.yaml --data /var/lib/tandem
              tandem init --host 0.0.0.0 --port 8080
            """)

    @Option(name: .long, help: ArgumentHelp("File to write.", valueName: "file")) var config = "tandem.yaml"
    @Option(name: .long, help: "Address to listen on.") var host = "127.0.0.1"
    @Option(name: .long, help: "Port to listen on.") var port = 6001
    @Option(name: .long, help: ArgumentHelp("Folder for what the hub stores.", valueName: "dir")) var data = "./data"
    @Option(name: .long, help: ArgumentHelp("Folder of channel definitions; else the bundled ones.", valueName: "dir"))
    var channels: String?

    func run() throws {
        do throws(ServerError) {
            let folder = DefinitionFiles.folder(configured: channels)
            let text = FirstConfiguration(host: host, port: port, data: data, channels: folder).text
            // Options such as a port of 99999 are mistakes of the file, too.
            do {
                _ = try ConfigurationParser.parse(file: (config, text))
            } catch {
                throw ServerError(.usage, "\(error)")
            }
            try write(text)
            print(next)
        } catch {
            throw Tandem.fail(error)
        }
    }

    private var next: String {
        """
        \(config) has random secrets, which only its owner can read. Next:
          tandem check --config \(config)               looks for mistakes
          tandem serve --config \(config)               runs the hub
          tandem health --ready --config \(config)      asks whether it takes clients
          tandem publish --config \(config) my-channel greeting '{"text":"hello"}'
        """
    }

    /// Writes a file that must not exist yet. Nobody else can read it at any moment.
    private func write(_ text: String) throws(ServerError) {
        let descriptor = unsafe open(config, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            let isThere = errno == EEXIST
            throw ServerError(
                .failed,
                isThere
                    ? "\(config) exists and stays as it is: remove it first, or write another file with --config"
                    : "cannot write \(config): \(unsafe String(cString: strerror(errno)))")
        }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        do {
            try file.write(contentsOf: Data(text.utf8))
            try file.synchronize()
        } catch {
            throw ServerError(.failed, "cannot write \(config): \(error.localizedDescription)")
        }
    }
}
