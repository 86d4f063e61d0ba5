import HubTesting
import Synchronization
import Testing

@testable import HubServer

@Suite("MemoryRelief")
struct MemoryReliefTests {
    @Test("gives memory back after large commits, once for those that come before it does, and never after small ones")
    func commits() async throws {
        try await prove { relief in
            for _ in 0..<5 {
                relief.committed(deliveries: MemoryRelief.deliveriesMin - 1)
                relief.committed(deliveries: MemoryRelief.deliveriesMin)
            }
        }
    }

    @Test("gives memory back once so many connections have come or gone as are worth it")
    func connections() async throws {
        try await prove { relief in
            for _ in 0..<MemoryRelief.connectionsMin { relief.connectionCame() }
        }
        let waits = Mutex(0)
        let relief = MemoryRelief(wait: { waits.withLock { $0 += 1 } }, trim: {})
        for _ in 1..<MemoryRelief.connectionsMin { relief.connectionCame() }
        await Task.yield()
        #expect(waits.withLock { $0 } == 0)
        relief.connectionCame()
        #expect(await eventually { waits.withLock { $0 } == 1 })
    }

    @Test("follows a crowd that leaves in small pieces, without waiting") func leaving() async throws {
        let trims = Mutex(0)
        let relief = MemoryRelief(trim: { trims.withLock { $0 += 1 } })
        for piece in 1...3 {
            for _ in 1..<MemoryRelief.leftMin { relief.connectionLeft() }
            await Task.yield()
            #expect(trims.withLock { $0 } == piece - 1)
            relief.connectionLeft()
            #expect(await eventually { trims.withLock { $0 } == piece })
        }
    }

    /// Two rounds of load; each trims once.
    private func prove(_ load: (MemoryRelief) -> Void) async throws {
        let counts = Mutex((waits: 0, trims: 0))
        let (pauses, end) = AsyncStream.makeStream(of: Void.self)
        let relief = MemoryRelief(
            wait: {
                counts.withLock { $0.waits += 1 }
                for await _ in pauses { break }
            }, trim: { counts.withLock { $0.trims += 1 } })
        for round in 1...2 {
            load(relief)
            #expect(await eventually { counts.withLock { $0.waits == round } })
            #expect(counts.withLock { $0.trims } == round - 1)
            end.yield()
            #expect(await eventually { counts.withLock { $0.trims == round } })
        }
        #expect(counts.withLock { $0 == (2, 2) })
    }
}
