import Foundation

/// Inputs that are kept beside this file: some that reach far, and every one that ever failed. One folder per target.
package enum SeedFiles {
    package static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("seeds")

    /// In the order of their names; none for a target that has no folder.
    package static func inputs(of target: String) -> [(name: String, bytes: [UInt8])] {
        let place = folder.appendingPathComponent(target)
        let names = (try? FileManager.default.contentsOfDirectory(atPath: place.path)) ?? []
        return names.sorted().compactMap { name in
            FileManager.default.contents(atPath: place.appendingPathComponent(name).path).map { (name, Array($0)) }
        }
    }
}
