internal import HubCore
internal import HubCrypto
internal import HubDelivery
internal import Synchronization

/// Payloads of messages that differ only in notification id and device: written once, with holes for these two.
///
/// One event to a hundred thousand devices has a handful of texts. Writing JSON is the most expensive part of a push in the gateway.
/// So a payload is written with a stand-in for each id, and remembered as the bytes in between.
final class SplicedPayloads: Sendable {
    /// Texts remembered: about as many as are sent at the same time, at some KiB each.
    static let countMax = 16

    private struct Entry {
        /// With the stand-in as id.
        let message: PushMessage
        let target: PushTarget
        /// Remaining lifetime in seconds, which payloads contain.
        let secondsLeft: Int64
        let payload: Spliced
    }

    /// Newest first.
    private let entries = Mutex<[Entry]>([])
    /// Random, so that no message contains them. The id's stand-in has the length of a real id, so that sizes are right.
    private let idStandIn: String
    private let tokenStandIn: String

    init() {
        let digits = Hex.encode(SecureRandom.bytes(32))
        idStandIn =
            "\(digits.prefix(8))-\(digits.dropFirst(8).prefix(4))-\(digits.dropFirst(12).prefix(4))-\(digits.dropFirst(16).prefix(4))-\(digits.dropFirst(20).prefix(12))"
        tokenStandIn = "token" + digits
    }

    /// - Parameter now: milliseconds since 1970, like all times here.
    func apns(_ message: PushMessage, topic: String, device: String, now: Int64) throws(PayloadFault) -> APNsPayload {
        let target = PushTarget(device: topic, provider: .apns, platform: .ios, token: tokenStandIn, environment: .production)
        guard
            let spliced = try spliced(
                message, target, now: now,
                write: { message throws(PayloadFault) in
                    let payload = try APNsPayload(message, topic: topic, device: "", now: now)
                    return (payload.common, payload.body)
                })
        else { return try APNsPayload(message, topic: topic, device: device, now: now) }
        return APNsPayload(
            common: spliced.headers, requestID: RequestID.make(nid: message.nid, device: device),
            body: spliced.body(id: message.nid, token: ""))
    }

    func fcm(_ message: PushMessage, target: PushTarget, now: Int64) throws(PayloadFault) -> FCMPayload {
        guard Self.isPlain(target.token) else { return try FCMPayload(message, target: target, now: now) }
        var common = target
        common.device = ""
        common.token = tokenStandIn
        common.isProven = true
        guard
            let spliced = try spliced(
                message, common, now: now,
                write: { [common] message throws(PayloadFault) in ([], try FCMPayload(message, target: common, now: now).body) })
        else { return try FCMPayload(message, target: target, now: now) }
        return FCMPayload(body: spliced.body(id: message.nid, token: target.token))
    }

    /// Nil if the message's id cannot be filled in later.
    private func spliced(
        _ message: PushMessage, _ target: PushTarget, now: Int64,
        write: (PushMessage) throws(PayloadFault) -> (headers: [(name: String, value: String)], body: [UInt8])
    ) throws(PayloadFault) -> Spliced? {
        guard message.expiresAt > now, message.nid.utf8.count == idStandIn.utf8.count, Self.isPlain(message.nid) else { return nil }
        var common = message
        common.nid = idStandIn
        let secondsLeft = (message.expiresAt - now) / 1000
        let known = entries.withLock { entries -> Spliced? in
            entries.first { $0.secondsLeft == secondsLeft && $0.target == target && $0.message == common }?.payload
        }
        if let known { return known }
        let written = try write(common)
        let payload = Spliced(written.body, headers: written.headers, id: idStandIn, token: tokenStandIn)
        let entry = Entry(message: common, target: target, secondsLeft: secondsLeft, payload: payload)
        entries.withLock { entries in
            entries.insert(entry, at: 0)
            if entries.count > Self.countMax { entries.removeLast() }
        }
        return payload
    }

    /// Whether JSON contains the text unescaped.
    private static func isPlain(_ text: String) -> Bool {
        text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: ":"), UInt8(ascii: "."):
                true
            default: false
            }
        }
    }
}

/// The bytes of a payload between its holes.
struct Spliced: Sendable {
    enum Hole: Sendable { case id, token }

    let headers: [(name: String, value: String)]
    private var pieces: [(bytes: [UInt8], hole: Hole)] = []
    private var rest: [UInt8] = []
    private var count = 0

    init(_ body: [UInt8], headers: [(name: String, value: String)], id: String, token: String) {
        self.headers = headers
        let standIns = [(Array(id.utf8), Hole.id), (Array(token.utf8), Hole.token)]
        var start = 0
        var index = 0
        while index < body.count {
            guard let (text, hole) = standIns.first(where: { body[index...].starts(with: $0.0) }) else {
                index += 1
                continue
            }
            pieces.append((Array(body[start..<index]), hole))
            index += text.count
            start = index
        }
        rest = Array(body[start...])
        count = pieces.reduce(rest.count) { $0 + $1.bytes.count }
    }

    /// The payload of one push.
    func body(id: String, token: String) -> [UInt8] {
        var body: [UInt8] = []
        body.reserveCapacity(count + pieces.count * max(id.utf8.count, token.utf8.count))
        for piece in pieces {
            body += piece.bytes
            body += piece.hole == .id ? id.utf8 : token.utf8
        }
        body += rest
        return body
    }
}
