import HubChannels
import HubDelivery
import HubTesting
import Logging
import OutboxTesting
import Testing

@testable import HubServer

@Suite("AttendanceMarker")
struct AttendanceMarkerTests {
    @Test("marks once in ten seconds, and only while somebody is there")
    func marks() async throws {
        let test = try TestStore()
        let isAttended = Flag()
        let marker = AttendanceMarker(store: test.store, time: test.clock, isAttended: isAttended, logger: Logger(label: "test"))
        var last = await marker.mark(after: nil)
        #expect(last == nil)
        #expect(try await test.store.lastAttendance() == nil)
        isAttended.set()
        let first = test.clock.wallMilliseconds
        last = await marker.mark(after: last)
        #expect(last == first)
        #expect(try await test.store.lastAttendance() == first)
        test.clock.advance(milliseconds: AttendanceMark.periodMilliseconds - 1)
        last = await marker.mark(after: last)
        #expect(last == first)
        #expect(try await test.store.lastAttendance() == first)
        test.clock.advance(milliseconds: 1)
        last = await marker.mark(after: last)
        #expect(try await test.store.lastAttendance() == first + AttendanceMark.periodMilliseconds)
        isAttended.set(false)
        test.clock.advance(seconds: 60)
        last = await marker.mark(after: last)
        #expect(try await test.store.lastAttendance() == first + AttendanceMark.periodMilliseconds)
    }

    @Test("delivery says whether somebody is there")
    func attended() async throws {
        let stage = try DeliveryStage(loops: 1)
        try await stage.session()
        stage.start()
        #expect(!stage.delivery.isAttended.isSet)
        let connection = try await stage.connect(device: "phone")
        #expect(await eventually { stage.delivery.isAttended.isSet })
        stage.delivery.report([.disconnected(connection, .clean)], loop: 0)
        #expect(await eventually { !stage.delivery.isAttended.isSet })
        await stage.stop()
    }
}
