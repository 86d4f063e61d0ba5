import ArgumentParser
import Foundation
import Glibc
import HubServer
import HubStorage
import Synchronization

/// `tandem store`: what a hub keeps, as a whole.
struct Store: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Copy what a hub keeps into another store.", subcommands: [Copy.self])

    struct Copy: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Copy a store into an empty one of the other kind.",
            discussion: """
                No hub may use either store. The target is written in one transaction, and read again before it is committed: a copy that
                ends early leaves nothing. Prints each table's count and checksum.

                tandem store copy --from sqlite:./data/tandem.db --to postgres://tandem@db.example/tandem

                The password comes from PGPASSWORD or ~/.pgpass, never from a command line that others can read.
                """)
        @Option(name: .long, help: ArgumentHelp("sqlite:PATH or postgres://…", valueName: "store")) var from: String
        @Option(name: .long, help: ArgumentHelp("The other kind.", valueName: "store")) var to: String

        func run() async throws {
            do {
                let bar = ProgressBar()
                let parts = try await StoreCopying.run(from: from, to: to) { bar.show($0.kind, done: $0.done, total: $0.total) }
                bar.end()
                for part in parts {
                    let kind = part.kind.padding(toLength: 16, withPad: " ", startingAt: 0)
                    print("\(kind) \(String(part.count).leftPadded(to: 10))  \(part.checksum.isEmpty ? "-" : part.checksum)")
                }
            } catch {
                throw Tandem.fail(error)
            }
        }
    }
}

/// A line on standard error that is written over, if that is a terminal. Any thread.
private final class ProgressBar: Sendable {
    private let isTerminal = isatty(STDERR_FILENO) != 0
    private let shown = Mutex("")
    private static let width = 30

    func show(_ kind: String, done: Int, total: Int) {
        guard isTerminal else { return }
        let filled = total == 0 ? Self.width : min(Self.width, done * Self.width / total)
        let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: Self.width - filled)
        write("\r\u{1B}[K[\(bar)] \(kind) \(done)/\(total)")
    }

    func end() { if isTerminal { write("\r\u{1B}[K") } }

    private func write(_ text: String) {
        shown.withLock { shown in
            guard shown != text else { return }
            shown = text
            FileHandle.standardError.write(Data(text.utf8))
        }
    }
}

extension String {
    fileprivate func leftPadded(to width: Int) -> String { String(repeating: " ", count: max(0, width - count)) + self }
}
