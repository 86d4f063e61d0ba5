import ArgumentParser
import Foundation
import Glibc
import HubDemo
import HubServer

/// `tandem demo`: a page with four phones around a hub of its own.
struct Demo: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show the hub on a page with four phones.",
        usage: "tandem demo [--port <port>] [--no-open]",
        discussion: """
            Starts a hub on a free port of 127.0.0.1, with simulated FCM and APNs ends, and prints the address of one page. \
            On it a quiz master asks questions, and four phones get each one on their screen or as a notification. Put a \
            phone into your pocket, close its app, switch to airplane mode, or kill the hub; and see who is told, and why.

            No account, no configuration, and no network beyond this machine. Ctrl-C ends everything; nothing stays behind. \
            The address works on this machine only, and for this run only: it holds a random token.

            Example: tandem demo --port 8000 --no-open
            """,
        subcommands: [Hub.self, Keeper.self])

    @Option(name: .long, help: "Port of the page; 0 for any free one.") var port: UInt16 = 0
    @Flag(name: .long, inversion: .prefixedNo, help: "Open the page where there is a display; otherwise its address is printed alone.")
    var open = true

    func run() async throws {
        let parent = getppid()
        let signals = ServerSignals()
        do {
            let demo = try await DemoRun.start(port: port, time: SystemTime())
            print("Tandem's demo is at\n\n    \(demo.url)\n\nCtrl-C ends it.")
            fflush(nil)
            if open { Self.show(demo.url) }
            await withTaskGroup(of: Void.self) { group in
                group.addTask { await demo.work() }
                group.addTask { while await signals.next() == .reload {} }
                group.addTask { await Self.ends(parent) }
                // Work ends with its task alone, so the first to end here is a signal or the parent.
                await group.next()
                group.cancelAll()
            }
            demo.end()
        } catch {
            throw Tandem.fail(ServerError(.failed, "\(error)"))
        }
    }

    /// Returns when the process that started this one is gone. Never, if it was the system's first.
    private static func ends(_ parent: pid_t) async {
        while parent == 1 || getppid() == parent {
            guard (try? await Task.sleep(for: .milliseconds(250))) != nil else { return }
        }
    }

    /// Opens the page in the person's browser, if there is a display and a program that knows the browser.
    private static func show(_ url: String) {
        let environment = ProcessInfo.processInfo.environment
        let hasDisplay = ["DISPLAY", "WAYLAND_DISPLAY"].contains { environment[$0]?.isEmpty == false }
        let folders = (environment["PATH"] ?? "").split(separator: ":")
        guard hasDisplay, let folder = folders.first(where: { FileManager.default.isExecutableFile(atPath: "\($0)/xdg-open") }) else {
            return
        }
        // The address stands on the terminal in any case, and the browser outlives the demo.
        _ = ProgramStart.start("\(folder)/xdg-open", ["xdg-open", url], environment: environment.map { "\($0.key)=\($0.value)" })
    }

    /// The hub of the demo. It ends when the demo does, however that ends.
    struct Hub: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "The demo's hub, its child process.", shouldDisplay: false)

        @Argument(help: "The demo's folder.") var folder: String

        func run() async throws {
            Lifeline.endWithDemo()
            let serve = try Serve.parse(["--config", "\(folder)/hub.yaml", "--data", folder, "--channels", "\(folder)/channels"])
            try await serve.run()
        }
    }

    /// Removes the demo's folder if the demo is killed, also while no hub runs.
    struct Keeper: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Tidies up behind a demo that was killed.", shouldDisplay: false)

        @Argument(help: "The demo's folder.") var folder: String

        func run() { Lifeline.keep(folder: folder) }
    }
}
