package import HubCore

/// The rule for a request's address: `X-Forwarded-For` counts from trusted proxies only.
package struct Forwarding: Sendable {
    /// Networks of trusted proxies.
    package var trusted: [IPNetwork] = []
    /// Called for each untrusted peer that sends the header.
    package var noteStranger: @Sendable (_ peer: String) -> Void = { _ in }

    /// No proxy is trusted.
    package init() {}

    /// The address that a request counts for: the right-most hop that is no trusted proxy. Entries written by the
    /// client itself stand further left and are not read.
    /// - Parameters:
    ///   - peer: the other end of the connection.
    ///   - header: `X-Forwarded-For`, all its lines joined by commas.
    func address(peer: String, header: String) -> String {
        guard let start = IPAddress(peer), isTrusted(start) else {
            noteStranger(peer)
            return peer
        }
        var found = peer
        for hop in header.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false).reversed() {
            // An unreadable hop ends the walk: the proxy that passed it on is the last known one.
            guard let address = Self.hop(hop) else { return found }
            found = address.description
            if !isTrusted(address) { return found }
        }
        return found
    }

    private func isTrusted(_ address: IPAddress) -> Bool { trusted.contains { $0.contains(address) } }

    /// One element: an address with or without a port; IPv6 with a port stands in brackets.
    private static func hop(_ bytes: Substring.UTF8View) -> IPAddress? {
        let blanks: Set<UInt8> = [0x20, 0x09]
        let text = String(decoding: bytes.drop { blanks.contains($0) }, as: UTF8.self)
        var word = Substring(text)
        while let last = word.utf8.last, blanks.contains(last) { word.removeLast() }
        if word.first == "[" {
            guard let end = word.firstIndex(of: "]") else { return nil }
            let rest = word[word.index(after: end)...]
            return rest.isEmpty || isPort(rest) ? IPAddress(word[word.index(after: word.startIndex)..<end]) : nil
        }
        if let colon = word.firstIndex(of: ":"), word.contains("."), !word[..<colon].isEmpty, word[..<colon].contains(".") {
            return isPort(word[colon...]) ? IPAddress(word[..<colon]) : nil
        }
        return IPAddress(word)
    }

    /// `:443`
    private static func isPort(_ text: Substring) -> Bool {
        text.first == ":" && (2...6).contains(text.utf8.count) && text.dropFirst().utf8.allSatisfy { (0x30...0x39).contains($0) }
    }
}
