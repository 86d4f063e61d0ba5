internal import HubCore
internal import HubJSON

/// The member `deliver_at` of an event: the time of a later publish.
enum DeliveryTime {
    private static let rule =
        "must be milliseconds since 1970, such as 1767920400000, or a time with its zone, such as \"2026-01-09T01:00:00Z\""

    /// Milliseconds since 1970; nil when the event has none.
    static func parse(_ member: JSONElement?, at place: String) throws(PublishError) -> Int64? {
        guard let element = member, !element.isNull else { return nil }
        // Members in a request's query are always text.
        let text = element.string
        guard let time = element.int ?? text.flatMap({ Int64($0) ?? Timestamp.milliseconds(iso8601: $0) }), time >= 0 else {
            throw PublishError(status: 400, message: "\(place)deliver_at \(rule)")
        }
        return time
    }
}
