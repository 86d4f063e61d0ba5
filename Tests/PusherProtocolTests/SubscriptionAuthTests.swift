import HubCrypto
import PusherProtocol
import Testing

struct ChannelVector: Sendable {
    let name: String
    let channel: String
    let channelData: String?
    let signature: String
}

/// V1 to V8 (docs/protocol.md, 4.2).
let channelVectors = [
    ChannelVector(
        name: "V1", channel: "private-foobar", channelData: nil,
        signature: "58df8b0c36d6982b82c3ecf6b4662e34fe8c25bba48f5369f135bf843651c3a4"),
    ChannelVector(
        name: "V2", channel: "presence-foobar", channelData: #"{"user_id":10,"user_info":{"name":"Mr. Channels"}}"#,
        signature: "31935e7d86dba64c2a90aed31fdc61869f9b22ba9d8863bba239c03ca481bc80"),
    ChannelVector(
        name: "V3", channel: "presence-foobar", channelData: #"{"user_id":10,"user_info":{"name":"Mr. Pusher"}}"#,
        signature: "afaed3695da2ffd16931f457e338e6c9f2921fa133ce7dac49f529792be6304c"),
    ChannelVector(
        name: "V4", channel: "presence-foobar", channelData: #"{"user_id":"10","user_info":{"name":"Zoë"}}"#,
        signature: "01929b58470549b26feda16bd5c83f392f22e023661d24e836df880b63d23e0b"),
    ChannelVector(
        name: "V5", channel: "presence-foobar", channelData: #"{"user_id":"10","user_info":{"name":"Zo\u00eb"}}"#,
        signature: "52ac5e42c00816c320ab6ed7246fd3f0f4799dadff8fce94b593c8fab71401f2"),
    ChannelVector(
        name: "V6", channel: "presence-foobar", channelData: nil,
        signature: "71506e66e7fdca106571b8999a849ad34245bc653772e51e0026c1a2475b92ba"),
    ChannelVector(
        name: "V7", channel: "private-foobar", channelData: #"{"plan":"pro"}"#,
        signature: "13e198d38e73d33a3b523a305eeace3c1d3d9b81830b5c15a561536e501e95eb"),
    ChannelVector(
        name: "V8", channel: "private-encrypted-foobar", channelData: nil,
        signature: "e6a18892d037c5d5e76a2265df4f086ffc38631605530dfd214aa5bff495f533"),
]

/// V9 and V10 (docs/protocol.md, 4.2).
let userVectors = [
    (#"{"id":"12345"}"#, "4708d583dada6a56435fb8bc611c77c359a31eebde13337c16ab43aa6de336ba"),
    (#"{"id":"12345","watchlist":["7","8"]}"#, "d0c2a1e65febc0605103bb64f1b39762ad767efec4fc4ebb85be8fad6ed26c6b"),
]

@Suite("SubscriptionAuth")
struct SubscriptionAuthTests {
    private func verify(
        _ auth: String?, _ vector: ChannelVector, socketID: SocketID = Vector.socketID, data: String?? = nil,
        secret: (String) -> String? = Vector.secret(of:)
    ) throws(ProtocolError) -> String {
        guard let channel = ChannelName(vector.channel) else { throw ProtocolError(message: "channel") }
        return try SubscriptionAuth.verify(
            auth: auth, socketID: socketID, channel: channel, channelData: data ?? vector.channelData,
            key: { secret($0).map { HMACKey($0) } })
    }

    @Test("the vectors are signed and verified", arguments: channelVectors)
    func signedAndVerified(vector: ChannelVector) throws {
        let auth = "\(Vector.key):\(vector.signature)"
        #expect(
            SubscriptionAuth.sign(
                socketID: Vector.socketID, channel: vector.channel, channelData: vector.channelData, key: Vector.key,
                secret: Vector.secret) == auth)
        #expect(try verify(auth, vector) == Vector.key)
    }

    @Test("with any bit changed, another socket id or another app's key a vector is refused", arguments: channelVectors)
    func refusals(vector: ChannelVector) {
        let auth = "\(Vector.key):\(vector.signature)"
        for bit in 0..<vector.signature.utf8.count * 8 {
            var bytes = Array(vector.signature.utf8)
            bytes[bit / 8] ^= 1 << (bit % 8)
            // The top bit makes the text invalid UTF-8; its repaired form is wrong all the same.
            #expect(throws: ProtocolError.self) { try verify("\(Vector.key):\(text(bytes))", vector) }
        }
        for socketID in [SocketID(first: 1234, second: 1235), SocketID(first: 123, second: 41234)] {
            #expect(throws: ProtocolError.self) { try verify(auth, vector, socketID: socketID) }
        }
        // A key that exists, but another secret; and a key that is not this app's.
        #expect(throws: ProtocolError.self) { try verify("second-key:\(vector.signature)", vector) }
        #expect(throws: ProtocolError(message: "Invalid key in subscription auth data: '\(Vector.key)'")) {
            try verify(auth, vector) { $0 == "other-app" ? Vector.secret : nil }
        }
        // Only a private channel signed without data may have some; see below.
        if vector.channelData != nil || vector.channel.hasPrefix("presence-") {
            #expect(throws: ProtocolError.self) { try verify(auth, vector, data: (vector.channelData ?? "") + " ") }
        }
    }

    @Test("the secret of the named key counts where an app has several")
    func severalKeys() throws {
        let vector = channelVectors[0]
        let auth = SubscriptionAuth.sign(
            socketID: Vector.socketID, channel: vector.channel, key: "second-key", secret: "second-secret")
        #expect(try verify(auth, vector) == "second-key")
    }

    @Test("a private channel's data may be left out of the signature, a presence channel's may not")
    func unsignedData() throws {
        let privateAuth = "\(Vector.key):\(channelVectors[0].signature)"
        #expect(try verify(privateAuth, channelVectors[0], data: #"{"plan":"pro"}"#) == Vector.key)
        let presenceAuth = "\(Vector.key):\(channelVectors[5].signature)"
        #expect(throws: ProtocolError.self) { try verify(presenceAuth, channelVectors[5], data: #"{"user_id":"1"}"#) }
        #expect(try verify(presenceAuth, channelVectors[5], data: "") == Vector.key)
    }

    @Test(
        "an auth value that is no key and signature is refused",
        arguments: [nil, "", ":", "\(Vector.key)", "\(Vector.key):", "\(Vector.key): ", ":58df", "\(Vector.key)::58df", "x:y:z"]
            as [String?])
    func shapes(auth: String?) {
        #expect(throws: ProtocolError.self) { try verify(auth, channelVectors[0]) }
    }

    @Test("the refusal is the hosted service's sentence")
    func sentences() {
        #expect(
            throws: ProtocolError(message: "Invalid signature: Expected HMAC SHA256 hex digest of 1234.1234:private-foobar, but got bad")
        ) {
            try verify("\(Vector.key):bad", channelVectors[0])
        }
        #expect(
            throws: ProtocolError(
                message: "Invalid signature: Expected HMAC SHA256 hex digest of 1234.1234:private-foobar:{\"plan\":\"pro\"}, but got a:b")
        ) { try verify("\(Vector.key):a:b", channelVectors[6]) }
        #expect(throws: ProtocolError(message: "Invalid key in subscription auth data: 'nobody'")) {
            try verify("nobody:bad", channelVectors[0])
        }
    }

    @Test("the user vectors are signed, verified and refused when anything differs", arguments: userVectors)
    func users(userData: String, signature: String) throws {
        let auth = "\(Vector.key):\(signature)"
        #expect(SubscriptionAuth.signUser(socketID: Vector.socketID, userData: userData, key: Vector.key, secret: Vector.secret) == auth)
        let verify = { (auth: String, socketID: SocketID, userData: String) throws(ProtocolError) in
            try SubscriptionAuth.verifyUser(
                auth: auth, socketID: socketID, userData: userData, key: { Vector.secret(of: $0).map { HMACKey($0) } })
        }
        #expect(try verify(auth, Vector.socketID, userData) == Vector.key)
        for bit in 0..<signature.utf8.count * 8 {
            var bytes = Array(signature.utf8)
            bytes[bit / 8] ^= 1 << (bit % 8)
            #expect(throws: ProtocolError.self) { try verify("\(Vector.key):\(text(bytes))", Vector.socketID, userData) }
        }
        #expect(throws: ProtocolError.self) { try verify(auth, SocketID(first: 1234, second: 1235), userData) }
        #expect(throws: ProtocolError.self) { try verify(auth, Vector.socketID, userData + " ") }
        #expect(throws: ProtocolError.self) { try verify("second-key:\(signature)", Vector.socketID, userData) }
        #expect(throws: ProtocolError(message: "Invalid key in user auth data: 'other'")) {
            try verify("other:\(signature)", Vector.socketID, userData)
        }
    }
}
