import ArgumentParser
import Foundation
import HubConfiguration
import HubServer

/// Key and secret of an operator's requests.
struct OperatorOptions: ParsableArguments {
    @Option(name: .long, help: "Operator's key; else TANDEM_OPERATOR_KEY.") var operatorKey: String?
    @Option(name: .long, help: "Operator's secret; else TANDEM_OPERATOR_SECRET.") var operatorSecret: String?

    @Option(name: .long, help: ArgumentHelp("Take both from this configuration, when they are not given.", valueName: "file"))
    var config: String?

    func resolved() throws(ServerError) -> RequestSigner {
        if operatorKey == nil, operatorSecret == nil, let config {
            guard let found = try ConfigurationOptions.load(config).operatorCredential else {
                throw ServerError(.badConfiguration, "\(config): it has no operator: { key: …, secret: … }")
            }
            return RequestSigner(key: found.key, secret: found.secret)
        }
        let environment = ProcessInfo.processInfo.environment.filter { !$0.value.isEmpty }
        guard let key = operatorKey ?? environment["TANDEM_OPERATOR_KEY"],
            let secret = operatorSecret ?? environment["TANDEM_OPERATOR_SECRET"]
        else {
            throw ServerError(
                .usage,
                "the operator's key and secret are missing: set TANDEM_OPERATOR_KEY and TANDEM_OPERATOR_SECRET, here and for the hub")
        }
        return RequestSigner(key: key, secret: secret)
    }
}
