internal import HubChannels
internal import HubCrypto
internal import PusherProtocol

/// HMAC keys of the apps' secrets, prepared at their first use. One per loop; on the loop's thread.
final class AppSigners {
    private struct Signer {
        let secret: String
        let key: HMACKey
    }

    /// Outer index: the app's; inner: the key's name.
    private var signers: [[String: Signer]]

    init(_ table: AppTable) {
        signers = table.apps.map { $0.secrets.mapValues { Signer(secret: $0, key: HMACKey($0)) } }
    }

    /// The prepared secret of one of the app's keys; nil for a key that is not the app's now.
    func key(_ name: String, of app: App) -> HMACKey? {
        if app.index < signers.count, let known = signers[app.index][name], app.secrets[name] == known.secret { return known.key }
        guard let secret = app.secrets[name] else { return nil }
        while signers.count <= app.index { signers.append([:]) }
        // Keys that were rotated out make room.
        signers[app.index] = signers[app.index].filter { app.secrets[$0.key] == $0.value.secret }
        let key = HMACKey(secret)
        signers[app.index][name] = Signer(secret: secret, key: key)
        return key
    }
}
