import HubCore

/// An error of the FCM HTTP v1 API, in the body that Google's front end gives it (docs/protocol.md, 8.5).
struct FCMError: Error, Equatable {
    var httpStatus: Int
    /// google.rpc.Code by name.
    var status: String
    var message: String
    /// FcmError.errorCode; nil for an error of the layers in front of FCM.
    var errorCode: String?
    /// BadRequest.fieldViolations.
    var violation: Violation?
    /// The exhausted quota in QuotaFailure's violations.
    var quotaSubject: String?

    struct Violation: Equatable {
        var field: String
        var description: String
    }

    /// FcmError codes with the HTTP status and the google.rpc status each comes with.
    static let codes: [String: (httpStatus: Int, status: String, message: String)] = [
        "INVALID_ARGUMENT": (400, "INVALID_ARGUMENT", "The registration token is not a valid FCM registration token"),
        "UNREGISTERED": (404, "NOT_FOUND", "Requested entity was not found."),
        "SENDER_ID_MISMATCH": (403, "PERMISSION_DENIED", "SenderId mismatch"),
        "THIRD_PARTY_AUTH_ERROR": (401, "UNAUTHENTICATED", "Auth error from APNS or Web Push Service"),
        "QUOTA_EXCEEDED": (429, "RESOURCE_EXHAUSTED", "Quota exceeded for quota metric 'Send requests'."),
        "UNAVAILABLE": (503, "UNAVAILABLE", "The service is currently unavailable."),
        "INTERNAL": (500, "INTERNAL", "Internal error encountered."),
        "UNSPECIFIED_ERROR": (500, "UNKNOWN", "Unknown error."),
    ]
    /// Errors of the layers in front of FCM, without FcmError in their details.
    static let frontEnd: [String: (httpStatus: Int, message: String)] = [
        "NOT_FOUND": (404, "Requested entity was not found."),
        "PERMISSION_DENIED": (403, "Permission 'cloudmessaging.messages.create' denied on the project."),
        "UNAUTHENTICATED": (401, Self.unauthenticatedMessage),
        "RESOURCE_EXHAUSTED": (429, "Resource has been exhausted (e.g. check quota)."),
    ]
    private static let unauthenticatedMessage =
        "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid "
        + "authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project."

    static let unauthenticated = FCMError(httpStatus: 401, status: "UNAUTHENTICATED", message: unauthenticatedMessage)

    /// The JSON front end's error for a malformed message: only a BadRequest in the details.
    static func malformed(field: String, _ description: String) -> FCMError {
        FCMError(
            httpStatus: 400, status: "INVALID_ARGUMENT", message: description,
            violation: Violation(field: field, description: description))
    }

    /// FCM's own error for a well-formed message: both details.
    static func invalid(field: String, _ description: String) -> FCMError {
        FCMError(
            httpStatus: 400, status: "INVALID_ARGUMENT", message: description, errorCode: "INVALID_ARGUMENT",
            violation: Violation(field: field, description: description))
    }

    static let invalidToken = FCMError(
        httpStatus: 400, status: "INVALID_ARGUMENT", message: "The registration token is not a valid FCM registration token",
        errorCode: "INVALID_ARGUMENT",
        violation: Violation(field: "message.token", description: "Invalid registration token"))

    /// A scripted error. Its reason, an FcmError code or a front end's status, determines the rest.
    init(fault: GatewayFault) {
        let reason = fault.reason ?? Self.usual(for: fault.status ?? 500)
        if let known = Self.codes[reason] {
            self.init(httpStatus: known.httpStatus, status: known.status, message: known.message, errorCode: reason)
        } else {
            let known = Self.frontEnd[reason]
            self.init(httpStatus: known?.httpStatus ?? 400, status: reason, message: known?.message ?? "Scripted error.")
        }
        httpStatus = fault.status ?? httpStatus
        message = fault.message ?? message
        // The scripted message becomes the quota's subject, which distinguishes a device's quota from the project's.
        if reason == "QUOTA_EXCEEDED", let message = fault.message { quotaSubject = message }
        if fault.withoutDetails { errorCode = nil }
    }

    init(httpStatus: Int, status: String, message: String, errorCode: String? = nil, violation: Violation? = nil) {
        self.httpStatus = httpStatus
        self.status = status
        self.message = message
        self.errorCode = errorCode
        self.violation = violation
    }

    /// The reason for a record: FcmError's code if there is one.
    var reason: String { errorCode ?? status }

    var response: HTTPResponse {
        var details: [JSONValue] = []
        if let errorCode {
            details.append([
                "@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": .string(errorCode),
            ])
        }
        if let quotaSubject {
            details.append([
                "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                "violations": [["subject": .string(quotaSubject), "description": .string(quotaSubject)]],
            ])
        }
        if let violation {
            details.append([
                "@type": "type.googleapis.com/google.rpc.BadRequest",
                "fieldViolations": [["field": .string(violation.field), "description": .string(violation.description)]],
            ])
        }
        var error: [String: JSONValue] = [
            "code": .int(Int64(httpStatus)), "message": .string(message), "status": .string(status),
        ]
        if !details.isEmpty { error["details"] = .array(details) }
        return HTTPResponse(
            status: httpStatus, contentType: "application/json; charset=UTF-8",
            body: JSONValue.object(["error": .object(error)]).serialized())
    }

    private static func usual(for status: Int) -> String {
        switch status {
        case 400: "INVALID_ARGUMENT"
        case 401: "UNAUTHENTICATED"
        case 403: "SENDER_ID_MISMATCH"
        case 404: "UNREGISTERED"
        case 429: "QUOTA_EXCEEDED"
        case 503: "UNAVAILABLE"
        default: "INTERNAL"
        }
    }
}
