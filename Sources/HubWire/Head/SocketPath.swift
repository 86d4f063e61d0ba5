/// The path of WebSockets: `/app/KEY`, after any prefix left by a reverse proxy.
package enum SocketPath {
    /// The app's key; nil for every other path.
    package static func key(in path: String) -> String? {
        let slash = UInt8(ascii: "/")
        func withoutSlashes(_ text: Substring.UTF8View) -> Substring.UTF8View {
            text.lastIndex { $0 != slash }.map { text[...$0] } ?? text[..<text.startIndex]
        }
        let whole = withoutSlashes(path[...].utf8)
        guard let start = whole.lastIndex(of: slash) else { return nil }
        let front = withoutSlashes(whole[..<start])
        let name = front.lastIndex(of: slash).map { front[front.index(after: $0)...] } ?? front
        return name.elementsEqual("app".utf8) ? String(whole[whole.index(after: start)...]) : nil
    }
}
