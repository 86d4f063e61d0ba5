import HubTesting
import Testing

@testable import HubFuzzing

/// A short slice of `make fuzz`, the same inputs every time, and every input that is kept.
@Suite("Fuzzing")
struct FuzzingTests {
    @Test("kept inputs and a slice of seeded ones hold what every target promises", arguments: FuzzTarget.all.map(\.name))
    func slice(name: String) async throws {
        try await onOwnThread { try Self.check(name) }
    }

    private static func check(_ name: String) throws {
        let share = try #require(FuzzTarget.all.first { $0.name == name }).share
        let run = try #require(try FuzzRun(name))
        for kept in SeedFiles.inputs(of: name) {
            let sentence = run.check(kept.bytes)
            #expect(sentence == nil, "\(name)/\(kept.name): \(sentence ?? "")")
        }
        let failure = run.run(seed: 1, indices: 0..<max(30, share * (Extent.isShort ? 4 : 20)))
        #expect(failure == nil, "\(failure?.sentence ?? ""): \(failure?.input ?? [])")
        let end = run.target.finish()
        #expect(end == nil, "\(end ?? "")")
    }

    @Test("the same seed draws the same inputs, another seed others")
    func seeds() {
        let target = FrameTarget.make()
        func draw(_ seed: UInt64, _ index: Int) -> [UInt8] {
            var random = SeededRandom(state: FuzzRun.state(seed: seed, target: "frames", index: index))
            return target.input(&random)
        }
        for index in 0..<50 { #expect(draw(7, index) == draw(7, index)) }
        #expect((0..<50).contains { draw(7, $0) != draw(8, $0) })
    }
}
