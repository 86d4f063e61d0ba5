import ArgumentParser
import Foundation
import LoadTesting

/// Shows the files of former runs again, several side by side.
struct Report: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "report", abstract: "Show reports (JSON files of runs, or of a comparison) as a table and as an HTML page.")

    @Argument(help: "JSON files; several are put beside each other.") var files: [String]
    @Option(name: .long, help: "Write an HTML page into this file.") var html: String?
    @Option(name: .long, help: "What stands above several files.") var title: String?

    func run() throws {
        do {
            let sets = try files.map { path in
                guard let data = FileManager.default.contents(atPath: path) else { throw LoadError("\(path) could not be read") }
                return try ReportFile.read(data, path: path, title: title ?? path)
            }
            guard let first = sets.first else { return }
            let set =
                sets.count == 1
                ? first
                : ReportSet(
                    title: title ?? "\(files.count) reports", reports: sets.flatMap(\.reports), targets: sets.flatMap(\.targets),
                    warnings: sets.flatMap(\.warnings))
            print(ReportTable.text(set), terminator: "")
            if let html { try Results.save(at: html) { Data(try ReportPage.html(set).utf8) } }
        } catch let error as LoadError {
            throw Results.failure(error.description)
        } catch let error as ReportFileError {
            throw Results.failure(error.description)
        }
    }
}
