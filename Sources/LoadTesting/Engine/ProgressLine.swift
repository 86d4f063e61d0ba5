internal import Foundation
internal import Glibc

/// The run's progress on standard error: on a terminal one line rewritten every second, otherwise a line every five seconds.
final class ProgressLine {
    private let isTerminal = isatty(STDERR_FILENO) == 1
    private var lastShown = -10.0
    private var width = 0

    private static let plainSeconds = 5.0
    private static let terminalSeconds = 1.0

    func show(_ line: String, elapsed: Double) {
        guard elapsed - lastShown >= (isTerminal ? Self.terminalSeconds : Self.plainSeconds) else { return }
        lastShown = elapsed
        let text = "\(Int(elapsed)) s  \(line)"
        if isTerminal {
            let blank = String(repeating: " ", count: max(0, width - text.count))
            write("\r\(text)\(blank)")
            width = text.count
        } else {
            write("\(text)\n")
        }
    }

    func finish() {
        if isTerminal, width > 0 { write("\n") }
        width = 0
    }

    private func write(_ text: String) { FileHandle.standardError.write(Data(text.utf8)) }
}
