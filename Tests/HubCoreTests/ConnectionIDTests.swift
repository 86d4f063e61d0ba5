import HubCore
import Testing

@Suite("ConnectionID")
struct ConnectionIDTests {
    @Test(
        "keeps loop, slot and generation apart at their bounds",
        arguments: [
            (0, 0, UInt32(0)), (1, 2, 3), (255, 0, 0), (0, (1 << 24) - 1, 0), (0, 0, .max), (255, (1 << 24) - 1, .max),
            (128, 1 << 23, 1 << 31),
        ])
    func packing(loop: Int, slot: Int, generation: UInt32) {
        let id = ConnectionID(loop: loop, slot: slot, generation: generation)
        #expect(id.loop == loop)
        #expect(id.slot == slot)
        #expect(id.generation == generation)
        #expect(id.description == "\(loop).\(slot).\(generation)")
    }

    @Test("differs when any part differs")
    func distinct() {
        let ids: Set = [
            ConnectionID(loop: 0, slot: 0, generation: 1), ConnectionID(loop: 0, slot: 1, generation: 0),
            ConnectionID(loop: 1, slot: 0, generation: 0), ConnectionID(loop: 0, slot: 0, generation: 0),
        ]
        #expect(ids.count == 4)
    }

    @Test("stops the program at a loop or slot that does not fit")
    func bounds() async {
        await #expect(processExitsWith: .failure) { _ = ConnectionID(loop: ConnectionID.loopsMax, slot: 0, generation: 0) }
        await #expect(processExitsWith: .failure) { _ = ConnectionID(loop: 0, slot: ConnectionID.slotsMax, generation: 0) }
        await #expect(processExitsWith: .failure) { _ = ConnectionID(loop: 0, slot: -1, generation: 0) }
    }
}
