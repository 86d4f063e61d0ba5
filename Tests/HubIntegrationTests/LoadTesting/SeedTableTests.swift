import Foundation
import Testing

/// docs/seed-systems.md is a promise: every requirement has its row, and every test it names is there.
@Suite struct SeedTableTests {
    private static let requirements = 1...70
    private static let isWord = (0..<256).map { UnicodeScalar(UInt8($0)).properties.isAlphabetic || (48...57).contains($0) || $0 == 95 }

    @Test func eachRequirementNamesATestThatExists() throws {
        let page = try String(contentsOf: Place.package.appendingPathComponent("docs/seed-systems.md"), encoding: .utf8)
        let tests = try names()
        var numbers: [Int] = []
        for line in page.split(separator: "\n") where line.hasPrefix("| ") {
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            guard cells.count == 4, let number = Int(cells[0]) else { continue }
            numbers.append(number)
            let named = cells[3].matches(of: /`([A-Za-z]+)`/).map { String($0.1) }
            #expect(!named.isEmpty, "requirement \(number) names no test")
            for name in named {
                #expect(
                    tests.contains(name), "requirement \(number) names \(name), which is no test")
            }
        }
        #expect(numbers == Array(Self.requirements))
    }

    /// The names of all functions and types of the tests.
    private func names() throws -> Set<String> {
        let folder = Place.package.appendingPathComponent("Tests")
        let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)?.compactMap { $0 as? URL } ?? []
        var names: Set<String> = []
        for file in files where file.pathExtension == "swift" {
            var isName = false
            for word in try Data(contentsOf: file).split(whereSeparator: { !Self.isWord[Int($0)] }) {
                if isName { names.insert(String(decoding: word, as: UTF8.self)) }
                isName = word.elementsEqual("func".utf8) || word.elementsEqual("struct".utf8)
            }
        }
        return names
    }
}
