/// A channel and the WebSocket frame, header included, for its subscribers.
///
/// A struct, because the runtime takes an array of tuples apart at 400 instructions per element.
package struct ChannelFrame: Sendable {
    /// The channel whose subscribers get the frame.
    package let channel: ChannelName
    /// One whole frame; copies share its bytes.
    package let frame: [UInt8]

    /// A whole frame.
    package init(_ channel: ChannelName, _ frame: [UInt8]) {
        self.channel = channel
        self.frame = frame
    }
}
