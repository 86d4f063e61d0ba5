internal import HubCore

/// The path of WebSockets: `/app/KEY`, after any prefix left by a reverse proxy.
package enum SocketPath {
    private static let name: StaticString = "app"

    /// The app's key; nil for every other path. Repeated slashes count as one.
    package static func key(in path: String) -> String? {
        var path = path
        return path.withUTF8 { path in
            let slash = UInt8(ascii: "/")
            func withoutSlashes(_ end: Int) -> Int { unsafe path[..<end].lastIndex { $0 != slash }.map { $0 + 1 } ?? 0 }
            let end = withoutSlashes(path.count)
            guard let start = unsafe path[..<end].lastIndex(of: slash) else { return nil }
            let front = withoutSlashes(start)
            let piece = unsafe path[..<front].lastIndex(of: slash).map { $0 + 1 } ?? 0
            guard unsafe name.isEqual(to: UnsafeBufferPointer(rebasing: path[piece..<front])) else { return nil }
            return unsafe String(decoding: UnsafeBufferPointer(rebasing: path[(start + 1)..<end]), as: UTF8.self)
        }
    }
}
