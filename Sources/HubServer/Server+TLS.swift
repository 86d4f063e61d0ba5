package import HubConfiguration
internal import HubCore
internal import HubTransport

/// Description of a usable certificate, for the operator.
package struct CertificateSummary: Sendable, Equatable {
    /// `hub.example, 2 intermediates, until 2027-01-31`
    package let text: String
    /// Reasons why clients may refuse the certificate.
    package let warnings: [String]
    /// Seconds since 1970.
    package let expiresAt: Int64

    init(_ certificate: ServerCertificate, now: Int64) {
        let intermediates =
            switch certificate.intermediateCount {
            case 0: "no intermediates"
            case 1: "1 intermediate"
            case let count: "\(count) intermediates"
            }
        text = "\(certificate.name.isEmpty ? "nameless" : certificate.name), \(intermediates), until \(certificate.expiryDay)"
        warnings = certificate.warnings(now: now)
        expiresAt = certificate.expiresAt
    }
}

extension Server {
    /// Reads the files that `listen.tls` names; nil if it names none.
    /// - Throws: the mistake in them, after the place that named them.
    static func certificate(_ configuration: Configuration) throws(ServerError) -> ServerCertificate? {
        guard let tls = configuration.listen.tls else { return nil }
        do throws(CertificateError) {
            return try ServerCertificate.load(certificatePath: tls.certificate.value, keyPath: tls.key.value)
        } catch {
            let place =
                switch error.culprit {
                case .certificate: "\(tls.certificate.source): listen.tls.cert"
                case .key: "\(tls.key.source): listen.tls.key"
                case .pair: "\(tls.key.source): listen.tls"
                }
            throw ServerError(.badConfiguration, "\(place): \(error)")
        }
    }

    /// Reads certificate and key as a start would; nil without TLS.
    package static func checkCertificate(_ configuration: Configuration) throws(ServerError) -> CertificateSummary? {
        try certificate(configuration).map { CertificateSummary($0, now: SystemTime().wallSeconds) }
    }
}
