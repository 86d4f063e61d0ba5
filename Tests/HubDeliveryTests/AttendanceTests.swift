import HubCore
import HubDelivery
import HubTesting
import Testing

private func connection(_ slot: Int) -> ConnectionID { ConnectionID(loop: 0, slot: slot, generation: 1) }

@Suite("Attendance")
struct AttendanceTests {
    @Test("who is attached where, until detached or disconnected")
    func lifecycle() {
        var book = Attendance()
        book.attach(connection(1), app: "1", channel: "c", user: "ann", device: "phone")
        book.attach(connection(1), app: "1", channel: "d", user: "ann", device: "phone")
        book.attach(connection(2), app: "1", channel: "d", user: "ann", device: nil)
        book.attach(connection(3), app: "2", channel: "c", user: "ann", device: nil)
        let found = book.attachments(app: "1", channel: "c", user: "ann").sorted { $0.isSubscribed && !$1.isSubscribed }
        #expect(
            found == [
                KnownAttachment(device: "phone", state: .unknown, isSubscribed: true),
                KnownAttachment(device: nil, state: .unknown, isSubscribed: false),
            ])
        #expect(book.connections(app: "1", channel: "c", user: "ann") == [connection(1)])
        #expect(Set(book.connections(app: "1", channel: "d", user: "ann")) == [connection(1), connection(2)])
        book.detach(connection(1), channel: "c")
        #expect(book.connections(app: "1", channel: "c", user: "ann").isEmpty)
        #expect(book.attachments(app: "1", channel: "c", user: "ann").map(\.isSubscribed) == [false, false])
        book.detach(connection(1), channel: "c")
        book.disconnected(connection(1))
        book.disconnected(connection(1))
        #expect(book.attachments(app: "1", channel: "d", user: "ann").count == 1)
        book.detach(connection(2), channel: "d")
        book.disconnected(connection(3))
        #expect(book.connectionCount == 0 && book.peopleCount == 0)
    }

    @Test("a connection can stand for different users in different channels")
    func users() {
        var book = Attendance()
        book.attach(connection(1), app: "1", channel: "c", user: "ann", device: "a")
        book.attach(connection(1), app: "1", channel: "d", user: "bob", device: "b")
        #expect(
            book.attachments(app: "1", channel: "c", user: "bob") == [
                KnownAttachment(device: "b", state: .unknown, isSubscribed: false)
            ])
        book.attach(connection(1), app: "1", channel: "c", user: "cid", device: nil)
        #expect(book.attachments(app: "1", channel: "c", user: "ann").isEmpty)
        #expect(book.connections(app: "1", channel: "c", user: "cid") == [connection(1)])
        book.disconnected(connection(1))
        #expect(book.peopleCount == 0)
    }

    @Test("states come by socket for the connection, and by HTTP for the device and for unknown devices")
    func states() {
        var book = Attendance()
        book.attach(connection(1), app: "1", channel: "c", user: "ann", device: "phone")
        book.attach(connection(2), app: "1", channel: "c", user: "ann", device: "tablet")
        book.attach(connection(3), app: "1", channel: "c", user: "ann", device: nil)
        book.attach(connection(4), app: "1", channel: "c", user: "bob", device: "phone")
        func state(_ device: String?, _ user: String = "ann") -> AppState? {
            book.attachments(app: "1", channel: "c", user: user).first { $0.device == device }?.state
        }
        book.setState(connection(2), .foreground)
        book.setState(connection(9), .background)
        #expect(state("tablet") == .foreground && state("phone") == .unknown)
        book.setDeviceState(app: "1", user: "ann", device: "phone", .background)
        #expect(state("phone") == .background && state(nil) == .background && state("tablet") == .foreground)
        #expect(state("phone", "bob") == .unknown)
        book.setDeviceState(app: "2", user: "ann", device: "phone", .foreground)
        #expect(state("phone") == .background)
        // A new connection begins anew.
        book.disconnected(connection(1))
        book.attach(connection(5), app: "1", channel: "c", user: "ann", device: "phone")
        #expect(state("phone") == .unknown)
    }

    @Test("bindings are for their user only and the oldest goes first")
    func bindings() {
        var book = Attendance(bindingsMax: 3)
        for id in 1...3 { book.bind(socketID: "1.\(id)", app: "1", user: "ann", device: "d\(id)") }
        #expect(book.device(boundTo: "1.1", app: "1", user: "ann") == "d1")
        #expect(book.device(boundTo: "1.1", app: "1", user: "bob") == nil)
        #expect(book.device(boundTo: "1.1", app: "2", user: "ann") == nil)
        book.bind(socketID: "1.1", app: "1", user: "ann", device: "d1b")
        book.bind(socketID: "1.4", app: "1", user: "ann", device: "d4")
        #expect(book.device(boundTo: "1.2", app: "1", user: "ann") == nil)
        #expect(book.device(boundTo: "1.1", app: "1", user: "ann") == "d1b")
        book.unbind(socketID: "1.3")
        #expect(book.bindingCount == 2)
        for round in 0..<10_000 { book.bind(socketID: "1.\(round % 2)", app: "1", user: "ann", device: "x") }
        for id in 0..<10_000 { book.bind(socketID: "2.\(id)", app: "1", user: "ann", device: "x") }
        #expect(book.bindingCount == 3)
        #expect(book.device(boundTo: "2.9999", app: "1", user: "ann") == "x")
    }

    @Test("any sequence of calls leaves the book as a plain list would have it")
    func model() throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        print("Attendance seed \(seed)")
        var random = SeededRandom(state: seed)
        struct Seat: Hashable { let slot: Int, channel: String }
        var book = Attendance()
        var model: [Seat: (user: String, device: String?)] = [:]
        for _ in 0..<5000 {
            let (slot, channel) = (Int.random(in: 0..<8, using: &random), "c\(Int.random(in: 0..<3, using: &random))")
            switch Int.random(in: 0..<4, using: &random) {
            case 0, 1:
                let user = "u\(Int.random(in: 0..<3, using: &random))"
                let device = Bool.random(using: &random) ? "d\(Int.random(in: 0..<2, using: &random))" : nil
                book.attach(connection(slot), app: "1", channel: channel, user: user, device: device)
                model[Seat(slot: slot, channel: channel)] = (user, device)
            case 2:
                book.detach(connection(slot), channel: channel)
                model[Seat(slot: slot, channel: channel)] = nil
            default:
                book.disconnected(connection(slot))
                for key in model.keys where key.slot == slot { model[key] = nil }
            }
            for user in ["u0", "u1", "u2"] {
                let expected = Set(
                    model.filter { $0.value.user == user && $0.key.channel == "c0" }.map { connection($0.key.slot) })
                try #require(Set(book.connections(app: "1", channel: "c0", user: user)) == expected)
                let anywhere = Set(model.filter { $0.value.user == user }.map(\.key.slot)).count
                #expect(book.attachments(app: "1", channel: "c0", user: user).count == anywhere)
            }
            #expect(book.connectionCount == Set(model.keys.map(\.slot)).count)
            #expect(book.peopleCount == Set(model.values.map(\.user)).count)
        }
    }
}
