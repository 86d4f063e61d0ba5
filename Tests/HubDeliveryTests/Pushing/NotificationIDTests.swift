import HubDelivery
import Testing

@Suite("NotificationID and EventID")
struct NotificationIDTests {
    @Test("the same event and participant give the same id, anything else another")
    func notification() {
        let event = "0193457e-0000-7000-8000-000000000001"
        let id = NotificationID.make(event: event, app: "1", user: "ann")
        // printf '%s\n%s\n%s' 0193457e-0000-7000-8000-000000000001 1 ann | sha256sum
        #expect(id == "ae34223a-29e3-672a-1cc7-47853f7e1914")
        #expect(id != NotificationID.make(event: event, app: "1", user: "bob"))
        #expect(id != NotificationID.make(event: event, app: "2", user: "ann"))
        #expect(
            NotificationID.make(event: event, app: "1", user: "1\nann")
                != NotificationID.make(event: event, app: "11", user: "ann"))
    }

    @Test("an event's id is a version 7 UUID of its time")
    func event() {
        let random = [UInt8](repeating: 0xFF, count: EventID.randomByteCount)
        // RFC 9562, A.6 has this time.
        #expect(EventID.make(wallMilliseconds: 0x017F_22E2_79B0, random: random) == "017f22e2-79b0-7fff-bfff-ffffffffffff")
        #expect(
            EventID.make(wallMilliseconds: 0, random: [UInt8](repeating: 0, count: 10)) == "00000000-0000-7000-8000-000000000000")
        #expect(EventID.make(wallMilliseconds: 1, random: random) > EventID.make(wallMilliseconds: 0, random: random))
    }
}
