import Glibc
import HubTesting

/// Checks many inputs of one target in this process.
package struct FuzzRun {
    /// The target's name in `FuzzTarget.all`.
    package let name: String
    package let target: FuzzTarget
    /// Maximum of processor time per input, in microseconds; sanitizers and debug builds are many times slower.
    package static let inputMicrosecondsMax = 2_000_000

    /// Makes the target with this name; nil if there is none.
    package init?(_ name: String) throws {
        guard let entry = FuzzTarget.all.first(where: { $0.name == name }) else { return nil }
        self.name = name
        target = try entry.make()
    }

    /// The random state for input `index` of a run, so that every input can be reproduced alone.
    package static func state(seed: UInt64, target: String, index: Int) -> UInt64 {
        // FNV-1a, so that two targets with one seed draw different numbers.
        let hash = target.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        var random = SeededRandom(state: seed ^ hash ^ UInt64(index) &* 0xA24B_AED4_963E_E407)
        return random.next()
    }

    /// Draws and checks the inputs of these indices; returns the first failing one with its complaint.
    package func run(seed: UInt64, indices: Range<Int>, record: CaseRecord? = nil) -> (sentence: String, input: [UInt8])? {
        for index in indices {
            var random = SeededRandom(state: Self.state(seed: seed, target: name, index: index))
            let input = target.input(&random)
            if let sentence = check(input, record: record) { return (sentence, input) }
        }
        return nil
    }

    /// Checks one input; returns the complaint, or nil.
    package func check(_ input: [UInt8], record: CaseRecord? = nil) -> String? {
        record?.begin(input)
        let start = Self.processorMicroseconds
        var sentence = target.check(input)
        let microseconds = Self.processorMicroseconds - start
        if sentence == nil, microseconds > Self.inputMicrosecondsMax { sentence = "took \(microseconds / 1000) ms of processor time" }
        if let sentence { record?.fail(sentence) }
        record?.end(microseconds: microseconds)
        return sentence
    }

    /// Time of this thread, so that other programs do not make an input slow.
    private static var processorMicroseconds: Int {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return time.tv_sec * 1_000_000 + time.tv_nsec / 1000
    }
}
