import Foundation

/// Stored inputs next to this file: some reach far into the code, and every one that ever failed. One folder per target.
package enum SeedFiles {
    package static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("seeds")

    /// The inputs sorted by name; empty for a target without a folder.
    package static func inputs(of target: String) -> [(name: String, bytes: [UInt8])] {
        let place = folder.appendingPathComponent(target)
        let names = (try? FileManager.default.contentsOfDirectory(atPath: place.path)) ?? []
        return names.sorted().compactMap { name in
            FileManager.default.contents(atPath: place.appendingPathComponent(name).path).map { (name, Array($0)) }
        }
    }
}
