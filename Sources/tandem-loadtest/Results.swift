import ArgumentParser
import Foundation
import LoadTesting

/// Prints a run's results, and writes its files.
enum Results {
    static func write(_ outcome: Outcome, json: String?, html: String?) throws(LoadError) {
        let report = outcome.report
        print(ReportTable.text(report), terminator: "")
        for failure in outcome.failures { print("FAILED: \(failure)") }
        if let json { try save(at: json) { try ReportFile.json(report) } }
        if let html { try save(at: html) { Data(try ReportPage.html(report).utf8) } }
    }

    static func save(at path: String, _ file: () throws -> Data) throws(LoadError) {
        do {
            try file().write(to: URL(fileURLWithPath: path))
        } catch {
            throw LoadError("\(path) could not be written: \(error.localizedDescription)")
        }
    }

    /// One line on standard error, and exit code 1.
    static func failure(_ text: String) -> any Error {
        FileHandle.standardError.write(Data("Error: \(text)\n".utf8))
        return ExitCode(1)
    }
}
