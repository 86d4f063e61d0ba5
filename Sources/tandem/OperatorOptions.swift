import ArgumentParser
import Foundation
import HubServer

/// Key and secret of an operator's requests.
struct OperatorOptions: ParsableArguments {
    @Option(name: .long, help: "Operator's key; else TANDEM_OPERATOR_KEY.") var operatorKey: String?
    @Option(name: .long, help: "Operator's secret; else TANDEM_OPERATOR_SECRET.") var operatorSecret: String?

    func resolved() throws(ServerError) -> RequestSigner {
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
