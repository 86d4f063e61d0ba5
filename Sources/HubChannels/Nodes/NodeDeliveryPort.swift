/// Takes the words of delivery that a node reads, in their order. On a thread of the way between the nodes.
package protocol NodeDeliveryPort: Sendable {
    /// - Returns: false for bytes that this version does not understand.
    func take(_ bytes: ArraySlice<UInt8>, of origin: UInt64) -> Bool
    /// Messages of the node are missing.
    func gap(_ node: UInt64)
    /// The node was declared dead.
    func died(_ node: UInt64)
    /// Redis has lost its memory: who was declared dead in it, or was not any more, is unknown from here on.
    func startsEpoch()
}
