public import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A private or presence channel, as PusherSwift's is: `extension PusherChannel: @retroactive TandemChannel {}`.
public protocol TandemChannel: AnyObject {
    /// The value that a callback gets.
    associatedtype Event
    /// Sends a client event; without a subscription, after the next one.
    func trigger(eventName: String, data: Any)
    /// Calls back at each event of this name.
    @discardableResult func bind(eventName: String, eventCallback: @escaping (Event) -> Void) -> String
}

/// Tells the hub whether the app is on the screen, and confirms notifications.
@MainActor public final class TandemCompanion {
    private let channel: any TandemChannel
    private let hub: URL
    private let token: () -> String
    private var state: [String: any Sendable], isOver = false

    /// - Parameter hub: its address, such as `https://hub.example`. `isOnScreen` is false if the system starts the app behind the screen.
    ///   `token` gives the participant token, at each call.
    public init<Channel: TandemChannel>(channel: Channel, hub: URL, isOnScreen: Bool = true, token: @escaping @MainActor () -> String) {
        (self.channel, self.hub, self.token) = (channel, hub, token)
        state = ["state": isOnScreen ? "foreground" : "background"]
        channel.bind(eventName: "pusher:subscription_succeeded") { [weak self] _ in Task { @MainActor in self?.say() } }
        say()
    }

    /// The app is on the screen.
    public func foreground() {
        state = ["state": "foreground"]
        say()
    }

    /// The app left the screen. Returns once the hub has answered, so an app that is about to be suspended waits for it.
    /// - Parameter keepsWorking: true if it goes on reading its socket and shows events itself.
    public func background(keepsWorking: Bool = false) async {
        state = ["state": "background", "keeps_working": keepsWorking]
        say()
        _ = await call("PUT", "me/state", state)
        // Back on the screen meanwhile: the request may have come in last.
        if state["state"] as? String == "foreground" { say() }
    }

    /// Confirms a notification by the `nid` of its data. False if the hub did not take it.
    @discardableResult public func received(_ nid: String) async -> Bool {
        await call("POST", "me/receipts", ["nid": nid, "status": "received"])
    }

    /// Registers the APNs token: at every start and when it changes. Nil: the person wants no notifications.
    /// - Parameter environment: `sandbox` for builds from Xcode; nil: the hub's default.
    @discardableResult public func pushToken(_ token: String?, environment: String? = nil) async -> Bool {
        guard let token else { return await call("PUT", "me/device", ["notifications": false]) }
        var device: [String: any Sendable] = ["token": token, "platform": "ios", "notifications": true]
        device["environment"] = environment
        return await call("PUT", "me/device", device)
    }

    /// At a logout, before the token is thrown away: what comes from now on is pushed.
    public func end() async {
        await background()
        isOver = true
    }

    private func say() {
        if !isOver { channel.trigger(eventName: "client-app-state", data: state) }
    }

    private func call(_ method: String, _ path: String, _ body: [String: any Sendable]) async -> Bool {
        var request = URLRequest(url: hub.appendingPathComponent(path))
        request.httpMethod = method
        request.allHTTPHeaderFields = ["Authorization": "Bearer \(token())", "Content-Type": "application/json"]
        request.httpBody = try? JSONSerialization.data(withJSONObject: body)
        return (try? await URLSession.shared.data(for: request).1 as? HTTPURLResponse)?.statusCode == 200
    }
}
