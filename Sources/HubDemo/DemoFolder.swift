internal import Foundation

/// The demo's temporary folder: keys, the store, the hub's files. Removed at the end.
struct DemoFolder: Sendable {
    let path: String

    /// Makes a folder that only its owner may read.
    init() throws(DemoError) {
        let base = FileManager.default.temporaryDirectory.path
        path = "\(base)/tandem-demo-\(UUID().uuidString.prefix(8).lowercased())"
        do {
            try FileManager.default.createDirectory(
                atPath: path + "/channels", withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: path)
        } catch {
            throw DemoError("cannot make the folder \(path): \(error.localizedDescription); set TMPDIR to a folder that you may write to")
        }
    }

    /// Writes a file that only its owner may read, and returns its path.
    func write(_ bytes: [UInt8], to name: String) throws(DemoError) -> String {
        let file = "\(path)/\(name)"
        guard FileManager.default.createFile(atPath: file, contents: Data(bytes), attributes: [.posixPermissions: 0o600]) else {
            throw DemoError("cannot write \(file): is the disk full?")
        }
        return file
    }

    /// Removes the folder with everything in it.
    func remove() { Self.remove(path) }

    /// Removes a folder of the demo, and no other.
    static func remove(_ path: String) {
        guard path.split(separator: "/").last?.hasPrefix("tandem-demo-") == true else { return }
        // Nobody is left who could be told of a failure.
        try? FileManager.default.removeItem(atPath: path)
    }
}
