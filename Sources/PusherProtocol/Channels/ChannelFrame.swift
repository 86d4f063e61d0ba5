/// A channel and the WebSocket frame, with its header, that its subscribers get.
///
/// A struct and no tuple: an array of tuples is taken apart by the runtime, at 400 instructions for each.
package struct ChannelFrame: Sendable {
    package let channel: ChannelName
    package let frame: [UInt8]

    package init(_ channel: ChannelName, _ frame: [UInt8]) {
        self.channel = channel
        self.frame = frame
    }
}
