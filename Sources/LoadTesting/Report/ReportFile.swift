package import Foundation

/// Reports as files: indented JSON with sorted keys, so that two files can be compared line by line.
package enum ReportFile {
    package static func json(_ report: LoadReport) throws -> Data {
        try encoded(report)
    }

    package static func json(_ set: ReportSet) throws -> Data {
        try encoded(set)
    }

    /// Reads a file of one report, a list of reports or a set. `title` is the default for a file without one.
    /// - Throws: `ReportFileError` naming `path`.
    package static func read(_ data: Data, path: String, title: String) throws -> ReportSet {
        let decoder = JSONDecoder()
        if let set = try? decoder.decode(ReportSet.self, from: data) {
            return set
        }
        if let list = try? decoder.decode([LoadReport].self, from: data) {
            return ReportSet(title: title, reports: list)
        }
        do {
            return ReportSet(title: title, reports: [try decoder.decode(LoadReport.self, from: data)])
        } catch {
            throw ReportFileError(path: path)
        }
    }

    private static func encoded(_ value: some Encodable) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        var data = try encoder.encode(value)
        data.append(UInt8(ascii: "\n"))
        return data
    }
}

/// A file that is no report.
package struct ReportFileError: Error, CustomStringConvertible {
    package var path: String

    package var description: String {
        "\(path) is not a load test's report: give the JSON file that a run of tandem-loadtest wrote"
    }
}
