internal import Dispatch
internal import HubAPI
internal import HubConfiguration
internal import HubCrypto

extension Server {
    /// Ways into the console; nil if it is off.
    static func consoleAccess(_ configuration: Configuration) async -> ConsoleAccess? {
        let (console, isTLS) = (configuration.console, configuration.listen.tls != nil)
        guard console.hasPassword else {
            guard configuration.opensConsoleByLink else { return nil }
            return ConsoleAccess(operatorPassword: nil, viewerPassword: nil, ticket: ConsoleAccess.newTicket(), isTLS: isTLS)
        }
        var own: PasswordHash?
        if let password = console.operatorPassword { own = await hash(password) }
        return ConsoleAccess(
            operatorPassword: own ?? console.operatorPasswordHash.flatMap { PasswordHash($0) },
            viewerPassword: console.viewerPasswordHash.flatMap { PasswordHash($0) }, ticket: nil, isTLS: isTLS)
    }

    /// A password's hash with the same salt on all nodes, so that each of them knows the sessions of the others.
    private static func hash(_ password: String) async -> PasswordHash {
        await withCheckedContinuation { continuation in
            // Hashing blocks its thread, which must be none of Swift's pool.
            DispatchQueue.global().async {
                continuation.resume(returning: PasswordHash(of: password, salt: Digest.sha256(Array("tandem console password".utf8))))
            }
        }
    }
}
