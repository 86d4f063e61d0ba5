internal import Foundation
internal import HubCore

/// Values that follow from the settings.
extension Configuration {
    /// The configured number of loops, or one per core.
    package var loopCount: Int { listen.loops.value ?? min(max(1, ProcessInfo.processInfo.activeProcessorCount), ConnectionID.loopsMax) }

    /// Whether the well-known credentials are in force, which may be shown.
    package var usesDefaultCredentials: Bool {
        apps.count == 1 && apps.first?.credentials == [AppCredential(key: "app-key", secret: "app-secret")]
    }

    /// Whether the start prints a link that opens the console once: on this machine, with the defaults, and without a password.
    package var opensConsoleByLink: Bool { listen.isLoopback && usesDefaultCredentials && !console.hasPassword }

    /// The largest of all apps' limits, in bytes.
    package var eventDataBytesMax: Int { apps.map(\.eventDataBytesMax).max() ?? 0 }

    /// The store without secrets of its address.
    package var storeName: String {
        switch store.value {
        case .sqlite(let path): "sqlite:\(path)"
        case .postgres(let address): "postgres://\(Self.place(of: address))"
        }
    }

    /// Host, port and database of an address, without its user, password and options.
    static func place(of address: String) -> String {
        let rest = address.split(separator: "?", maxSplits: 1)[0].drop { $0 != ":" }.dropFirst(3)
        return String(rest.split(separator: "@", omittingEmptySubsequences: false).last ?? "")
    }
}
