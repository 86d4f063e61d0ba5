import CertificateIssuing
import HubCore
import HubCrypto
import HubJSON

/// The keys of the simulators, made on the first start and reused later.
///
/// Only the server's certificate is issued anew at each start, because the host may have changed. Its authority, which clients trust, and
/// its key stay the same.
struct KeyFolder {
    let files: GatewayFiles
    let authorityPEM: String
    let certificatePEM: String
    let certificateKeyPEM: String
    let apnsKeyID: String
    let apnsPublicKey: ES256PublicKey
    let serviceAccountKeyID: String
    let serviceAccountKeyPEM: String
    let serviceAccountPublicKey: RS256PublicKey

    /// Seconds from now. Begins an hour ago, for machines whose clocks differ a little.
    private static func validity(days: Int) -> ClosedRange<Int> { -3600...days * 86_400 }

    private static let authorityDays = 3650
    private static let certificateDays = 397
    private static let serviceAccountKeyBits = 2048

    /// - Parameter host: the servers' address. The certificate covers loopback's names in any case.
    init(folder: String, host: String) throws(GatewayError) {
        files = GatewayFiles(folder: try TextFile.makeFolder(folder))
        let authority = try Self.authority(files)
        authorityPEM = authority.certificate.pem
        certificateKeyPEM = try Self.keyPEM(at: files.certificateKey) { ES256PrivateKey.generate().pem }
        let keyPEM = certificateKeyPEM
        certificatePEM = try GatewayError.wrapping {
            try X509Certificate(
                commonName: "Tandem simulated push gateways", key: X509Key(pem: keyPEM), names: Self.names(host: host),
                issuer: authority, validity: Self.validity(days: Self.certificateDays)
            ).pem
        }
        try TextFile.write(certificatePEM, to: files.certificate)

        (apnsKeyID, apnsPublicKey) = try Self.apnsKey(files)
        let account = try Self.serviceAccountKey(files)
        serviceAccountKeyID = account.id
        serviceAccountKeyPEM = account.pem
        do {
            serviceAccountPublicKey = try RS256PublicKey(pem: try RS256PrivateKey(pem: account.pem).publicKeyPEM)
        } catch {
            throw Self.unusable(files.serviceAccount, "\(error)")
        }
    }

    /// Writes the service account's file in Google's form, with the simulator's token endpoint.
    func writeServiceAccount(_ account: ServiceAccount) throws(GatewayError) {
        let json: JSONValue = [
            "type": "service_account", "project_id": .string(account.projectID), "private_key_id": .string(account.keyID),
            "private_key": .string(serviceAccountKeyPEM), "client_email": .string(account.email), "client_id": "1",
            "token_uri": .string(account.tokenURL),
        ]
        try TextFile.write(json.text + "\n", to: files.serviceAccount)
    }

    /// Writes shell exports, in the given order.
    func writeEnvironment(_ settings: [(name: String, value: String)]) throws(GatewayError) {
        let lines = settings.map { setting in
            // Within single quotes the shell changes nothing; only the quote itself needs escaping.
            let value = setting.value.replacing("'", with: "'\\''")
            return "export \(setting.name)='\(value)'\n"
        }
        try TextFile.write(lines.joined(), to: files.environment)
    }

    private static func names(host: String) -> [String] {
        var names = ["DNS:localhost", "IP:127.0.0.1", "IP:::1"]
        let isAddress = host.contains(":") || host.wholeMatch(of: /[0-9.]+/) != nil
        let own = (isAddress ? "IP:" : "DNS:") + host
        // Only names that OpenSSL's comma-separated list can hold.
        if !names.contains(own), host.wholeMatch(of: /[A-Za-z0-9.:\-]+/) != nil { names.append(own) }
        return names
    }

    private static func authority(_ files: GatewayFiles) throws(GatewayError) -> X509Certificate.Issuer {
        let keyPEM = try keyPEM(at: files.authorityKey) { ES256PrivateKey.generate().pem }
        if let pem = try TextFile.read(files.authority) {
            guard let certificate = try? X509Certificate(pem: pem), let key = try? X509Key(pem: keyPEM), certificate.isUsable(with: key)
            else {
                throw unusable(
                    files.authority, "it is no certificate, has expired or belongs to another key than \(files.authorityKey)")
            }
            return (certificate, key)
        }
        let authority = try GatewayError.wrapping {
            let key = try X509Key(pem: keyPEM)
            let validity = validity(days: authorityDays)
            return (certificate: try X509Certificate(commonName: "Tandem simulated authority", key: key, validity: validity), key: key)
        }
        try TextFile.write(authority.certificate.pem, to: files.authority)
        return authority
    }

    private static func keyPEM(at path: String, make: () -> String) throws(GatewayError) -> String {
        if let pem = try TextFile.read(path) {
            do {
                _ = try ES256PrivateKey(pem: pem)
            } catch {
                throw unusable(path, "\(error)")
            }
            return pem
        }
        let pem = make()
        try TextFile.write(pem, to: path)
        return pem
    }

    private static func apnsKey(_ files: GatewayFiles) throws(GatewayError) -> (String, ES256PublicKey) {
        let known = TextFile.names(in: files.folder).compactMap { name -> String? in
            guard let match = name.wholeMatch(of: /AuthKey_([A-Z0-9]{10})\.p8/) else { return nil }
            return String(match.1)
        }
        let id = known.first ?? randomKeyID()
        let pem = try keyPEM(at: files.apnsKey(id: id)) { ES256PrivateKey.generate().pem }
        do {
            return (id, try ES256PublicKey(pem: try ES256PrivateKey(pem: pem).publicKeyPEM))
        } catch {
            throw unusable(files.apnsKey(id: id), "\(error)")
        }
    }

    private static func serviceAccountKey(_ files: GatewayFiles) throws(GatewayError) -> (id: String, pem: String) {
        guard let text = try TextFile.read(files.serviceAccount) else {
            return (Hex.encode(SecureRandom.bytes(20)), RS256PrivateKey.generate(bits: serviceAccountKeyBits).pem)
        }
        do {
            let json = try JSONValue(parsing: text)
            guard let id = json["private_key_id"]?.stringValue, let pem = json["private_key"]?.stringValue else {
                throw JSONError(message: "private_key_id or private_key is missing")
            }
            return (id, pem)
        } catch {
            throw unusable(files.serviceAccount, "\(error)")
        }
    }

    /// Ten capital letters and digits, the form of Apple's key ids.
    private static func randomKeyID() -> String {
        let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
        return String(SecureRandom.bytes(10).map { letters[Int($0) % letters.count] })
    }

    private static func unusable(_ path: String, _ reason: String) -> GatewayError {
        GatewayError("cannot use \(path): \(reason); remove it, and a new one will be made")
    }
}
