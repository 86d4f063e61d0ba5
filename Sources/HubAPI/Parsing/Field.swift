internal import PusherProtocol

/// Rules for names, codes and addresses, checked on entry. So stores, channel names and presence members get only valid values.
enum Field {
    /// Leaves room for the definition's own text in a channel's name.
    static let sessionIDCharactersMax = 100
    /// Pusher's bound on a presence member's user id (Unicode scalars).
    static let userIDCharactersMax = 128
    static let deviceIDCharactersMax = 128
    static let joinCodeCharactersMax = 32
    /// With a user id of full length in four-byte characters, `channel_data` still stays below Pusher's 1,024 bytes.
    static let nameCharactersMax = 100
    /// Longest deliverable address (RFC 5321, 4.5.3.1.3: a path of 256 with its angle brackets).
    static let emailBytesMax = 254

    static func sessionID(_ text: String) throws(APIError) -> String {
        guard text.unicodeScalars.count <= sessionIDCharactersMax, ChannelName(text) != nil else {
            throw APIError(400, "a session's name has 1 to \(sessionIDCharactersMax) characters out of A-Z a-z 0-9 _ - = @ , . ;")
        }
        return text
    }

    static func userID(_ text: String) throws(APIError) -> String {
        guard isPlain(text, charactersMax: userIDCharactersMax) else {
            throw APIError(400, "a user id has 1 to \(userIDCharactersMax) characters and no control characters")
        }
        return text
    }

    static func deviceID(_ text: String) throws(APIError) -> String {
        guard isPlain(text, charactersMax: deviceIDCharactersMax) else {
            throw APIError(400, "a device id has 1 to \(deviceIDCharactersMax) characters and no control characters")
        }
        return text
    }

    /// The code in upper case; nil if invalid.
    static func joinCode(_ text: String) -> String? {
        let isCode = (1...joinCodeCharactersMax).contains(text.utf8.count) && text.utf8.allSatisfy(isCodeCharacter)
        return isCode ? text.uppercased() : nil
    }

    /// A person's name, trimmed.
    static func name(_ body: JSONBody) throws(APIError) -> String {
        let name = trimmed(try body.requiredString("name", charactersMax: nameCharactersMax))
        guard !name.isEmpty else { throw APIError(400, "name is empty: send the participant's name") }
        guard isPlain(name, charactersMax: nameCharactersMax) else { throw APIError(400, "name has control characters: leave them out") }
        return name
    }

    /// An e-mail, trimmed; nil if missing. Deliverability is not checked.
    static func email(_ body: JSONBody) throws(APIError) -> String? {
        guard let text = try body.string("email", charactersMax: emailBytesMax) else { return nil }
        let email = trimmed(text)
        let parts = email.utf8.split(separator: UInt8(ascii: "@"), omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty }), email.utf8.count <= emailBytesMax,
            isPlain(email, charactersMax: emailBytesMax), !email.unicodeScalars.contains(where: \.properties.isWhitespace)
        else {
            throw APIError(400, "email is not an address: send one with a single @ and at most \(emailBytesMax) bytes")
        }
        return email
    }

    /// Whether the text has 1 to so many characters, and no control character.
    static func isPlain(_ text: String, charactersMax: Int) -> Bool {
        (1...charactersMax).contains(text.unicodeScalars.count)
            && text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
    }

    private static func isCodeCharacter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
            UInt8(ascii: "_"), UInt8(ascii: "-"):
            true
        default: false
        }
    }

    /// The text without white space around it.
    static func trimmed(_ text: String) -> String {
        var rest = text[...]
        while rest.first?.isWhitespace == true { rest.removeFirst() }
        while rest.last?.isWhitespace == true { rest.removeLast() }
        return String(rest)
    }
}
