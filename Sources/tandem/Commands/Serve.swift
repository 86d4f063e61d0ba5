import ArgumentParser
import Foundation
import Glibc
import HubConfiguration
import HubDefinitions
import HubServer
import HubTransport
import Logging

/// `tandem serve`: runs the hub until a signal stops it.
struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run the hub.",
        discussion: """
            A flag beats the environment (TANDEM_PORT, …), and the environment beats the file. SIGHUP reloads apps, push credentials, \
            certificate and channel definitions. SIGTERM closes the clients in order and ends the hub within 10 s; a second one ends it \
            at once. Exit codes: 0 stopped, 1 failed, 64 wrong usage, 78 wrong configuration.

            A service manager hears of readiness, reloads and the end, and gets signs of life (NOTIFY_SOCKET, WATCHDOG_USEC). The hub \
            takes over one listening socket (LISTEN_FDS).

            Examples:
              tandem serve                   # 127.0.0.1:6001, app 1, this machine only
              tandem serve --config /etc/tandem/tandem.yaml
              tandem serve --port 8080 --data ./data --log-level debug
            """)

    @OptionGroup var options: ConfigurationOptions
    @Option(name: .long, help: "Address to listen on.") var host: String?
    @Option(name: .long, help: "Port to listen on; 0 for any free one.") var port: String?
    @Option(name: .long, help: ArgumentHelp("Folder for what the hub stores.", valueName: "dir")) var data: String?
    @Option(name: .long, help: "Service threads; one for each core when not given.") var loops: String?
    @Option(name: .long, help: ArgumentHelp("trace, debug, info, notice, warning, error or critical.", valueName: "level"))
    var logLevel: String?

    func run() async throws {
        do throws(ServerError) {
            let flags = ConfigurationFlags(host: host, port: port, data: data, loops: loops, logLevel: logLevel)
            let configuration = try options.load(flags: flags)
            let level = Logger.Level(rawValue: configuration.logLevel.value.rawValue) ?? .info
            let failures = RepeatedFailures(time: SystemTime())
            defer { failures.flush() }
            LoggingSystem.bootstrap { label in
                var handler = StreamLogHandler.standardError(label: label)
                handler.logLevel = level
                return PacedLogHandler(handler, failures: failures)
            }
            let logger = Logger(label: "tandem")
            TransportLog.start { logger.warning("libwebsockets", metadata: ["message": "\($0)"]) }

            // First of all, so that no signal is missed or ends the process half way.
            let signals = ServerSignals()
            let (definitions, folder) = try loadDefinitions(configuration)
            let environment = ProcessInfo.processInfo.environment
            let inherited = try InheritedSocket.descriptor(in: environment)
            let server = try await Server(configuration, definitions: definitions, inherited: inherited, logger: logger)
            print(
                Banner.text(
                    configuration, port: server.port, consoleTicket: server.consoleTicket, definitions: definitions, folder: folder))
            // Standard output may be a file or a pipe, where the line about being ready would wait in a buffer.
            fflush(nil)
            let manager = ServiceManager(environment: environment)
            let ready = ServiceManager.State.ready(status: "Serves port \(server.port)")
            manager?.tell(ready)
            let watchdog = Task { await manager?.keepAlive { await server.proveLiveness() } }
            defer { watchdog.cancel() }
            while await signals.next() == .reload {
                manager?.tell(.reloading)
                await server.reload(configuration, current: current(flags, logger: logger))
                manager?.tell(ready)
            }
            manager?.tell(.stopping)
            logger.info("stopping; a second signal ends at once")
            await server.stop()
        } catch {
            throw Tandem.fail(error)
        }
    }

    /// Reads the configuration's file again; nil if it has errors, which are logged.
    private func current(_ flags: ConfigurationFlags, logger: Logger) -> Configuration? {
        do throws(ServerError) {
            return try options.load(flags: flags)
        } catch {
            logger.error("apps and push credentials not reloaded: the former ones stay in force", metadata: ["error": "\(error)"])
            return nil
        }
    }
}

/// Loads the definitions. Without a folder there are none.
func loadDefinitions(_ configuration: Configuration) throws(ServerError) -> (DefinitionSet, folder: String?) {
    guard let folder = DefinitionFiles.folder(configured: configuration.channels.value) else { return (.empty, nil) }
    do throws(DefinitionFiles.Failure) {
        return (try DefinitionFiles.load(folder: folder), folder)
    } catch {
        throw ServerError(.badConfiguration, error.description)
    }
}
