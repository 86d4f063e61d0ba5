internal import HubCrypto

/// Names one request of a publish on all nodes. Its events' ids are made of it, so that a request that is taken twice makes the same
/// events.
package struct PublishID: Sendable, Hashable {
    /// Lower-case UUID; also the id of the row in which the request waits when its owner does not answer.
    package let text: String
    /// Milliseconds since 1970.
    package let time: Int64

    package init(text: String, time: Int64) {
        self.text = text
        self.time = time
    }

    /// A new one.
    package static func make(at time: Int64) -> PublishID {
        PublishID(text: EventID.make(wallMilliseconds: time, random: SecureRandom.bytes(EventID.randomByteCount)), time: time)
    }

    /// Random bytes of the event on this channel.
    package func random(_ channel: String) -> [UInt8] {
        Array(Digest.sha256(Array("\(text) \(channel)".utf8)).prefix(EventID.randomByteCount))
    }

    /// Id of the event on this channel.
    package func event(_ channel: String) -> String { EventID.make(wallMilliseconds: time, random: random(channel)) }
}
