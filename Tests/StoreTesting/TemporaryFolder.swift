import Foundation
import Testing

/// A folder of its own for one test, removed with the value's last use.
package final class TemporaryFolder: Sendable {
    package let path: String

    package init() throws {
        path = NSTemporaryDirectory() + "tandem-store-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit {
        // A store released without `close` removes its -wal and -shm files at that moment, on a thread of its own. If a file vanishes
        // between listing and removal of the folder, the whole removal fails.
        var failure: (any Error)?
        for _ in 0..<10 where FileManager.default.fileExists(atPath: path) {
            do {
                try FileManager.default.removeItem(atPath: path)
                failure = nil
            } catch { failure = error }
        }
        if let failure { Issue.record("\(path) stays: \(failure)") }
    }

    package func file(_ name: String = "tandem.db") -> String { path + "/" + name }
}
