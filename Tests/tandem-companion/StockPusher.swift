import Foundation
import FoundationNetworking
import TandemClient

/// Stands in for PusherSwift, which does not build on Linux: the signatures of its channel, and what it does with them.
///
/// From its sources (10.1): callbacks come on the main thread; without a subscription `trigger` keeps events for the next one.
class PusherChannel {
    let name: String
    fileprivate(set) var subscribed = false
    fileprivate var handlers: [String: [(PusherEvent) -> Void]] = [:]
    fileprivate var unsent: [(String, Any)] = []
    fileprivate var send: (String) -> Void = { _ in }

    init(name: String) { self.name = name }

    @discardableResult func bind(eventName: String, eventCallback: @escaping (PusherEvent) -> Void) -> String {
        handlers[eventName, default: []].append(eventCallback)
        return UUID().uuidString
    }

    func trigger(eventName: String, data: Any) {
        guard subscribed else { return unsent.append((eventName, data)) }
        send(json(["event": eventName, "channel": name, "data": data]))
    }

    fileprivate func handle(_ event: PusherEvent) {
        handlers[event.eventName]?.forEach { $0(event) }
    }

    fileprivate func hasSubscribed() {
        subscribed = true
        handle(PusherEvent(eventName: "pusher:subscription_succeeded", data: nil))
        let waiting = unsent
        unsent = []
        for (name, data) in waiting { trigger(eventName: name, data: data) }
    }
}

/// PusherSwift's event, with the members that are needed here.
struct PusherEvent {
    let eventName: String
    let data: String?
}

/// The two methods of the companion's protocol are there.
extension PusherChannel: TandemChannel {}

/// The connection: subscribes one channel, and comes back when it is lost.
@MainActor final class StockPusher {
    let channel: PusherChannel
    var bearer: String
    /// Data of all events of the channel.
    private(set) var events: [String] = []
    private let (hub, key): (URL, String)
    private var socket: StockSocket?
    private var isLeaving = false

    init(hub: URL, key: String, channel: String, bearer: String) {
        (self.hub, self.key, self.bearer) = (hub, key, bearer)
        self.channel = PusherChannel(name: channel)
        self.channel.send = { [weak self] text in MainActor.assumeIsolated { self?.socket?.send(text) } }
    }

    func connect() {
        let path = "/app/\(key)?client=pusher-websocket-swift&version=10.1.10&protocol=7"
        socket = StockSocket(
            port: UInt16(hub.port ?? 0), path: path, received: { text in Task { @MainActor in await self.take(text) } },
            lost: { Task { @MainActor in await self.lost() } })
        if socket == nil { Task { await lost() } }
    }

    func drop() { socket?.drop() }

    func leave() {
        isLeaving = true
        drop()
    }

    private func lost() async {
        socket = nil
        channel.subscribed = false
        try? await Task.sleep(for: .milliseconds(200))
        if !isLeaving { connect() }
    }

    private func take(_ text: String) async {
        guard let frame = try? JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any] else { return }
        let (name, data) = (frame["event"] as? String ?? "", frame["data"] as? String)
        switch name {
        case "pusher:connection_established": await subscribe(data ?? "")
        case "pusher_internal:subscription_succeeded": channel.hasSubscribed()
        default:
            if !name.hasPrefix("pusher") { events.append(data ?? "") }
            channel.handle(PusherEvent(eventName: name, data: data))
        }
    }

    private func subscribe(_ handshake: String) async {
        let facts = try? JSONSerialization.jsonObject(with: Data(handshake.utf8)) as? [String: Any]
        var request = URLRequest(url: hub.appendingPathComponent("pusher/auth"))
        request.httpMethod = "POST"
        request.setValue("Bearer \(bearer)", forHTTPHeaderField: "Authorization")
        request.httpBody = Data("socket_id=\(facts?["socket_id"] ?? "")&channel_name=\(channel.name)".utf8)
        guard let answer = try? await URLSession.shared.data(for: request).0,
            var data = try? JSONSerialization.jsonObject(with: answer) as? [String: Any]
        else { return }
        data["channel"] = channel.name
        socket?.send(json(["event": "pusher:subscribe", "data": data]))
    }
}

func json(_ value: Any) -> String {
    String(decoding: (try? JSONSerialization.data(withJSONObject: value)) ?? Data(), as: UTF8.self)
}
