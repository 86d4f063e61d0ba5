import HubTesting
import Testing

@testable import HubCore

@Suite("ClockSteps")
struct ClockStepsTests {
    private let hour: Int64 = 3_600_000

    @Test("a clock that is set tells by how much, once", arguments: [3, -2])
    func step(hours: Int64) {
        var steps = ClockSteps()
        #expect(steps.look(wall: 10 * hour, monotonic: 0) == nil)
        let step = steps.look(wall: (10 + hours) * hour + 5_000, monotonic: 5_000_000_000)
        #expect(step == ClockSteps.Step(from: 10 * hour + 5_000, to: (10 + hours) * hour + 5_000))
        #expect(step?.milliseconds == hours * hour)
        #expect(steps.look(wall: (10 + hours) * hour + 6_000, monotonic: 6_000_000_000) == nil)
    }

    @Test("time that passes, a slewed clock and a sum of small corrections are no step")
    func slewed() {
        var steps = ClockSteps()
        for minute in 0..<1_000 as Range<Int64> {
            #expect(steps.look(wall: minute * 60_000 + minute * 1_900, monotonic: UInt64(minute) * 60_000_000_000) == nil)
        }
    }

    @Test("a process that stood still between two readings has seen no step")
    func stopped() {
        let time = StoppedTime()
        var steps = ClockSteps()
        #expect(steps.look(time) == nil)
        time.stopsFor = 3_600_000_000_000
        #expect(steps.look(time) == nil)
        time.stopsFor = 0
        #expect(steps.look(time) == nil)
    }

    @Test("a moment is read again if the process stood still between the two clocks")
    func moment() {
        let time = StoppedTime()
        time.stopsFor = 3_600_000_000_000
        time.stopsLeft = 1
        #expect(time.moment == Moment(monotonic: 3_600_000, wall: 4_600_000))
    }
}

/// A clock of a process that is stopped behind each reading of the wall clock.
private final class StoppedTime: TimeSource, @unchecked Sendable {
    // Used only by one test's thread.
    nonisolated(unsafe) var stopsFor: UInt64 = 0
    nonisolated(unsafe) var stopsLeft = Int.max
    nonisolated(unsafe) private var passed: UInt64 = 0

    var monotonicNanoseconds: UInt64 { unsafe passed }
    var wallMilliseconds: Int64 {
        defer {
            if unsafe stopsLeft > 0 {
                unsafe passed += stopsFor
                unsafe stopsLeft -= 1
            }
        }
        return 1_000_000 + Int64(unsafe passed / 1_000_000)
    }
}
