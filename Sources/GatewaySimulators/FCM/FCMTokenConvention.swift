/// Device tokens whose prefix scripts a fault, for use without the control API.
enum FCMTokenConvention {
    static let faults: [(prefix: String, fault: GatewayFault)] = [
        ("unregistered-", GatewayFault(reason: "UNREGISTERED")),
        ("invalid-", GatewayFault(reason: "INVALID_ARGUMENT")),
        ("mismatch-", GatewayFault(reason: "SENDER_ID_MISMATCH")),
        ("thirdparty-", GatewayFault(reason: "THIRD_PARTY_AUTH_ERROR")),
        ("quota-", GatewayFault(reason: "QUOTA_EXCEEDED", retryAfter: "60")),
        ("unavailable-", GatewayFault(reason: "UNAVAILABLE")),
        ("internal-", GatewayFault(reason: "INTERNAL")),
        ("notfound-", GatewayFault(reason: "NOT_FOUND")),
        ("permission-", GatewayFault(reason: "PERMISSION_DENIED")),
        ("unauthenticated-", GatewayFault(reason: "UNAUTHENTICATED")),
        ("html-", GatewayFault(action: .html)),
        ("reset-", GatewayFault(action: .reset)),
        ("refuse-", GatewayFault(action: .refuse)),
        ("goaway-", GatewayFault(action: .goaway)),
        ("close-", GatewayFault(action: .close)),
        ("slow-", GatewayFault(delayMilliseconds: 2_000)),
    ]

    static func fault(for token: String) -> GatewayFault? {
        faults.first { token.hasPrefix($0.prefix) }?.fault
    }
}
