import HubChannels
import HubCore
import PusherProtocol

/// One loop's connections.
final class RigSink: DeliverySink {
    private unowned let rig: EngineRig
    private let loop: Int

    init(_ rig: EngineRig, _ loop: Int) {
        self.rig = rig
        self.loop = loop
    }

    func deliver(_ frames: UnsafeRawBufferPointer, to slots: UnsafeBufferPointer<UInt32>, latestOnly: UnsafeBufferPointer<LatestOnlyFrame>)
    {
        if frames.isEmpty { rig.fail("a delivery of nothing") }
        if Set(slots).count != slots.count { rig.fail("a slot twice in one delivery") }
        for slot in slots {
            guard let client = rig.clients.first(where: { $0.id.loop == loop && $0.id.slot == Int(slot) }) else {
                rig.fail("a delivery to slot \(slot), which nobody has")
                continue
            }
            client.receive(frames, isBatch: true)
        }
    }

    func send(_ frames: [UInt8], to connection: ConnectionID) {
        guard let client = rig.clients.first(where: { $0.id == connection }) else {
            return rig.fail("a frame for \(connection), which is gone")
        }
        frames.withUnsafeBytes { client.receive($0, isBatch: false) }
    }

    func close(_ connection: ConnectionID, code: UInt16, reason: String) {
        guard let client = rig.clients.first(where: { $0.id == connection }) else {
            return rig.fail("a close of \(connection), which is gone")
        }
        if reason.utf8.count > CloseCode.reasonBytesMax || code < 1000 || code >= 4300 { rig.fail("a bad close: \(code) \(reason)") }
        client.closed()
    }

    func watchSilence(_ connection: ConnectionID, pingAfter: Duration, pongWithin: Duration) {}
}
