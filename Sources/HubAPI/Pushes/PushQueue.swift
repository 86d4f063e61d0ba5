package import HubDelivery

/// Sends what is committed. Callable from any thread.
package protocol PushQueue: Sendable {
    /// Takes deliveries that the store holds in the state `due`. What is not taken any more, because the server is closing, is sent
    /// after the next start.
    func enqueue(_ deliveries: [DeliveryRecord]) async
}
