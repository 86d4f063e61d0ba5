internal import HubCore
internal import HubCrypto
internal import HubHTTPClient
internal import HubJSON

/// The parts of a Google service-account file needed for sending. No description of it contains the key.
struct ServiceAccount: Sendable, CustomStringConvertible, CustomReflectable {
    static let tokenURIDefault = "https://oauth2.googleapis.com/token"

    let projectID: String
    let clientEmail: String
    let privateKeyID: String
    let privateKey: RS256PrivateKey
    let tokenURI: String

    var description: String { "service account of project \(projectID)" }
    var customMirror: Mirror { Mirror(self, children: ["projectID": projectID]) }

    init(json: [UInt8]) throws(PushConfigurationError) {
        let document: JSONValue
        do throws(JSONError) {
            document = try JSONValue(parsing: json)
        } catch {
            throw PushConfigurationError(
                "the FCM service account is not JSON (\(error)); download it again from Google's console")
        }
        guard document["type"]?.stringValue == "service_account" else {
            throw PushConfigurationError(
                "the file's \"type\" is not \"service_account\"; create a key for a service account in Google's console")
        }
        func member(_ name: String) throws(PushConfigurationError) -> String {
            guard let value = document[name]?.stringValue, !value.isEmpty else {
                throw PushConfigurationError(
                    "the FCM service account has no \"\(name)\"; download it again from Google's console")
            }
            return value
        }
        let projectID = try member("project_id")
        // The project id becomes part of a path.
        guard projectID.utf8.allSatisfy(Self.isProjectByte) else {
            throw PushConfigurationError("the FCM service account's \"project_id\" is not a project id")
        }
        self.projectID = projectID
        clientEmail = try member("client_email")
        privateKeyID = try member("private_key_id")
        // In an environment variable, the PEM's line breaks often arrive as a backslash and an n.
        let pem = try member("private_key").split(separator: "\\n", omittingEmptySubsequences: false).joined(separator: "\n")
        do throws(CryptoError) {
            privateKey = try RS256PrivateKey(pem: pem)
        } catch {
            throw PushConfigurationError("the FCM service account's \"private_key\" is not an RSA key in PEM form (\(error))")
        }
        let uri = document["token_uri"]?.stringValue ?? Self.tokenURIDefault
        guard let parts = URLParts(uri), parts.scheme == "https" || parts.scheme == "http" && parts.isLoopback else {
            throw PushConfigurationError(
                "the FCM service account's \"token_uri\" is not an https:// address; http:// is possible on a loopback address only"
            )
        }
        tokenURI = uri
    }

    private static func isProjectByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "-_.:".utf8.contains(byte)
        }
    }
}
