import Foundation
import Testing

/// docs/seed-systems.md is a promise: every requirement has its row, and every test it names is there.
@Suite struct SeedTableTests {
    private static let requirements = 1...70

    @Test func eachRequirementNamesATestThatExists() throws {
        let page = try String(contentsOf: Place.package.appendingPathComponent("docs/seed-systems.md"), encoding: .utf8)
        let tests = try sources()
        var numbers: [Int] = []
        for line in page.split(separator: "\n") where line.hasPrefix("| ") {
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            guard cells.count == 4, let number = Int(cells[0]) else { continue }
            numbers.append(number)
            let named = cells[3].matches(of: /`([A-Za-z]+)`/).map { String($0.1) }
            #expect(!named.isEmpty, "requirement \(number) names no test")
            for name in named {
                #expect(
                    tests.contains("func \(name)(") || tests.contains("struct \(name)"), "requirement \(number) names \(name), which is no test")
            }
        }
        #expect(numbers == Array(Self.requirements))
    }

    private func sources() throws -> String {
        let folder = Place.package.appendingPathComponent("Tests")
        let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)?.compactMap { $0 as? URL } ?? []
        return try files.filter { $0.pathExtension == "swift" }.map { try String(contentsOf: $0, encoding: .utf8) }.joined(separator: "\n")
    }
}
