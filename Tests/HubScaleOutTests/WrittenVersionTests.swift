import HubCore
import HubScaleOut
import Testing

@Suite("The version in which a node writes") struct WrittenVersionTests {
    private let known = MessageVersions(1, 2)

    private func look(_ version: inout WrittenVersion, _ common: UInt8, times: Int) { for _ in 0..<times { version.look(common) } }

    @Test("rises ten seconds after the last node that needs the lower one, and falls at once")
    func changes() {
        var version = WrittenVersion(known)
        #expect(version.now == 1, "who has just come knows nobody yet")
        look(&version, 2, times: WrittenVersion.looksMax - 1)
        #expect(version.now == 1)
        look(&version, 2, times: 1)
        #expect(version.now == 2)
        look(&version, 1, times: 1)
        #expect(version.now == 1)
        look(&version, 2, times: WrittenVersion.looksMax)
        #expect(version.now == 2)
    }

    @Test("does not rise by looks from before an older node's, or from before a look that failed")
    func interrupted() {
        var version = WrittenVersion(known)
        look(&version, 2, times: WrittenVersion.looksMax - 1)
        look(&version, 1, times: 1)
        look(&version, 2, times: WrittenVersion.looksMax - 1)
        version.reset()
        look(&version, 2, times: WrittenVersion.looksMax - 1)
        #expect(version.now == 1)
        look(&version, 2, times: 1)
        #expect(version.now == 2)
        version.reset()
        #expect(version.now == 2)
    }

    @Test("is never below what the build can write")
    func lowest() {
        var version = WrittenVersion(MessageVersions(2, 3))
        look(&version, 1, times: 1)
        #expect(version.now == 2)
    }
}
