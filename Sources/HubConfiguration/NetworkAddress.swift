/// Checks of hosts and addresses by their text alone.
package enum NetworkAddress {
    /// Whether only this machine can reach the host: 127.0.0.0/8, ::1 or localhost.
    package static func isLoopback(_ host: String) -> Bool {
        let name = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
        if name == "localhost" || name == "::1" { return true }
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }

    /// Whether the text is printable and without spaces, as every host, path or key is.
    static func isWord(_ text: String) -> Bool {
        !text.isEmpty && text.unicodeScalars.allSatisfy { $0.value > 0x20 && $0.value != 0x7F }
    }

    /// Scheme and host of an http or https address; nil for anything else, and for an address with a user.
    static func httpParts(_ url: String) -> (scheme: String, host: String)? {
        guard isWord(url) else { return nil }
        for scheme in ["http", "https"] where url.hasPrefix("\(scheme)://") {
            let authority = url.dropFirst(scheme.count + 3).prefix { $0 != "/" && $0 != "?" && $0 != "#" }
            let host: Substring
            if authority.first == "[", let end = authority.firstIndex(of: "]") {
                host = authority[...end]
            } else {
                host = authority.prefix { $0 != ":" }
            }
            let port = authority[host.endIndex...]
            let isPortRight = port.isEmpty || port.first == ":" && UInt16(port.dropFirst()) != nil
            return host.isEmpty || host.contains("@") || authority.contains("@") || !isPortRight ? nil : (scheme, String(host))
        }
        return nil
    }

    /// Whether the text is an origin as browsers send it: scheme, host and port, no path.
    static func isOrigin(_ text: String) -> Bool {
        guard let slashes = text.range(of: "://"), isWord(text) else { return false }
        let rest = text[slashes.upperBound...]
        return slashes.lowerBound != text.startIndex && !rest.isEmpty && !rest.contains("/")
    }
}

extension String {
    fileprivate func range(of text: String) -> Range<Index>? {
        var start = startIndex
        while start < endIndex {
            if self[start...].hasPrefix(text) { return start..<index(start, offsetBy: text.count) }
            start = index(after: start)
        }
        return nil
    }
}
