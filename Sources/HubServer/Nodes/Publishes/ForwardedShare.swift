internal import HubAPI
internal import HubCore
internal import HubDelivery
internal import PusherProtocol

/// The part of a forwarded publish that one owner decides about.
struct ForwardedShare {
    /// A channel of a request, by their places in the publish. Without a policy the event has no id.
    typealias Published = (request: Int, channel: Int, event: String?)

    private(set) var requests: [PublishRequest] = []
    /// One for each request.
    private(set) var ids: [PublishID] = []
    /// Channels of each request, by their places in the publish.
    private(set) var places: [[(request: Int, channel: Int)]] = []

    /// - Parameter published: channels to leave out.
    init(of publish: ForwardedPublish, _ owned: PartitionSet, without published: [Published] = []) {
        for (index, request) in publish.requests.enumerated() {
            let mine = request.channels.indices.filter { channel in
                owned.contains(app: publish.app, channel: request.channels[channel])
                    && !published.contains { $0.request == index && $0.channel == channel }
            }
            let channels = mine.compactMap { ChannelName(request.channels[$0]) }
            guard !channels.isEmpty, channels.count == mine.count else { continue }
            requests.append(
                PublishRequest(
                    name: request.name, channels: OneOrMany(channels), data: request.data, excludedSocketID: request.excluded))
            ids.append(request.id)
            places.append(mine.map { (request: index, channel: $0) })
        }
    }

    /// - Parameter outcomes: one for each request.
    func published(_ outcomes: [PublishOutcome]) -> [Published] {
        zip(zip(requests, places), outcomes).flatMap { request, outcome in
            zip(request.0.channels, request.1).map { channel, place in
                (request: place.request, channel: place.channel, event: outcome.events.first { $0.channel == channel }?.id)
            }
        }
    }
}
