package import HubCrypto

/// The keys of one app, each with its secret prepared for signatures.
package struct Signers: Sendable {
    /// Where they are few, looking at each is faster than hashing a name.
    private let few: [(name: String, key: HMACKey)]
    private let byName: [String: HMACKey]
    private static let fewMax = 8

    /// - Parameter secrets: key to secret.
    package init(_ secrets: [String: String]) {
        byName = secrets.mapValues { HMACKey($0) }
        few = byName.count <= Self.fewMax ? byName.map { ($0.key, $0.value) } : []
    }

    /// The prepared secret of that key; nil: the app has no such key.
    package subscript(name: String) -> HMACKey? {
        for index in few.indices where few[index].name == name { return few[index].key }
        return few.isEmpty ? byName[name] : nil
    }
}
