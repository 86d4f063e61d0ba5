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
        book.attach(connection(1), app: "1", channel: "c", user: "ann", device: "phone", ticket: 1)
        book.attach(connection(1), app: "1", channel: "d", user: "ann", device: "phone", ticket: 2)
        book.attach(connection(2), app: "1", channel: "d", user: "ann", device: nil, ticket: 3)
        book.attach(connection(3), app: "2", channel: "c", user: "ann", device: nil, ticket: 4)
        #expect(book.connections(app: "1", channel: "c", user: "ann") == [connection(1)])
        #expect(Set(book.connections(app: "1", channel: "d", user: "ann")) == [connection(1), connection(2)])
        let seats = book.seats(of: connection(1)).sorted { $0.ticket < $1.ticket }
        #expect(seats.map(\.channel) == ["c", "d"] && seats.map(\.ticket) == [1, 2] && seats.allSatisfy { $0.device == "phone" })
        #expect(book.presence(app: "1", channel: "d", user: "ann")?.connections == 2)
        book.detach(connection(1), channel: "c")
        #expect(book.connections(app: "1", channel: "c", user: "ann").isEmpty)
        #expect(book.state(app: "1", channel: "c", user: "ann", now: 0).0 == .absent)
        #expect(book.state(app: "1", channel: "d", user: "ann", now: 0).0 == .live)
        book.detach(connection(1), channel: "c")
        book.disconnected(connection(1))
        book.disconnected(connection(1))
        #expect(book.connections(app: "1", channel: "d", user: "ann") == [connection(2)])
        book.detach(connection(2), channel: "d")
        book.disconnected(connection(3))
        #expect(book.connectionCount == 0 && book.peopleCount == 0 && book.presence(app: "1", channel: "d", user: "ann") == nil)
    }

    @Test("a connection can stand for different users in different channels")
    func users() {
        var book = Attendance()
        book.attach(connection(1), app: "1", channel: "c", user: "ann", device: "a")
        book.attach(connection(1), app: "1", channel: "d", user: "bob", device: "b")
        #expect(book.state(app: "1", channel: "c", user: "bob", now: 0).0 == .absent)
        book.attach(connection(1), app: "1", channel: "c", user: "cid", device: nil)
        #expect(book.state(app: "1", channel: "c", user: "ann", now: 0).0 == .absent)
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
        func state(_ slot: Int) -> AppState? { book.seats(of: connection(slot)).first?.state }
        book.setState(connection(2), .foreground)
        book.setState(connection(9), .background)
        #expect(state(2) == .foreground && state(1) == .unknown)
        book.setDeviceState(app: "1", user: "ann", device: "phone", .background)
        #expect(state(1) == .background && state(3) == .background && state(2) == .foreground && state(4) == .unknown)
        book.setDeviceState(app: "2", user: "ann", device: "phone", .foreground)
        #expect(state(1) == .background)
        // A state over HTTP has no order with the receipts of the socket.
        book.setDeviceState(app: "1", user: "ann", device: "phone", .foreground)
        #expect(state(1) == .unknown && book.presence(app: "1", channel: "c", user: "ann")?.state == .foreground)
        book.setState(connection(1), .foreground)
        #expect(state(1) == .foreground)
        // A new connection's state is unknown.
        book.disconnected(connection(1))
        book.attach(connection(5), app: "1", channel: "c", user: "ann", device: "phone")
        #expect(state(5) == .unknown)
    }

    private func reach(_ book: Attendance, _ channel: String = "c", device: String? = nil, at now: Int64) -> DeviceState {
        book.state(app: "1", channel: channel, user: "ann", device: device, now: now).0
    }

    @Test("signs of life make a connection live, quiet or a background one")
    func signsOfLife() {
        var book = Attendance()
        book.attach(connection(1), app: "1", channel: "c", user: "ann", device: nil, silenceMax: .seconds(150), now: 0)
        #expect(reach(book, at: 45_000) == .live && reach(book, at: 45_001) == .quiet)
        #expect(reach(book, at: 90_000) == .quiet && reach(book, at: 90_001) == .background)
        book.heard(connection(1), now: 90_000)
        book.heard(connection(7), now: 90_000)
        #expect(reach(book, at: 90_001) == .live)
        // If the transport closes silent connections early, an open connection has given a sign of life.
        book.attach(connection(1), app: "1", channel: "d", user: "ann", device: nil, now: 0)
        book.attach(connection(2), app: "1", channel: "c", user: "ann", device: nil, silenceMax: .seconds(25), now: 0)
        #expect(reach(book, at: 1_000_000) == .live)
    }

    @Test("an app in the background is just that, unless it said that it goes on working")
    func keepsWorking() {
        var book = Attendance()
        book.attach(connection(1), app: "1", channel: "c", user: "ann", device: "phone")
        book.setState(connection(1), .background)
        #expect(reach(book, at: 0) == .background && book.seats(of: connection(1)).allSatisfy { !$0.keepsWorking })
        book.setState(connection(1), .background, keepsWorking: true)
        #expect(reach(book, at: 0) == .backgroundCapable && book.seats(of: connection(1)).allSatisfy(\.keepsWorking))
        #expect(book.seats(of: connection(1)).map(\.state) == [.background])
        // A "gone to background" over HTTP may arrive after a later receipt, so receipts are provisional.
        book.setDeviceState(app: "1", user: "ann", device: "phone", .background, keepsWorking: true)
        #expect(reach(book, at: 0) == .backgroundCapable && book.seats(of: connection(1)).map(\.state) == [.unknown])
        book.setDeviceState(app: "1", user: "ann", device: "phone", .background)
        #expect(reach(book, at: 0) == .background && book.seats(of: connection(1)).map(\.state) == [.background])
        // The best of several connections counts, for the participant and for the device.
        book.attach(connection(2), app: "1", channel: "c", user: "ann", device: "desktop", isBrowser: true)
        #expect(reach(book, at: 0) == .live && reach(book, device: "phone", at: 0) == .background)
        book.attach(connection(3), app: "1", channel: "c", user: "ann", device: nil)
        #expect(reach(book, device: "phone", at: 0) == .live)
    }

    @Test("who was cut off is waited for, in the channels and with the device that were there")
    func grace() {
        var book = Attendance()
        book.attach(connection(1), app: "1", channel: "c", user: "ann", device: "phone", now: 0)
        book.disconnected(connection(1), mayReturn: true, now: 1000)
        #expect(book.state(app: "1", channel: "c", user: "ann", now: 2000) == (.grace, 14_000))
        #expect(reach(book, at: 15_999) == .grace && reach(book, at: 16_000) == .absent)
        #expect(reach(book, device: "phone", at: 2000) == .grace && reach(book, device: "tablet", at: 2000) == .absent)
        #expect(reach(book, "d", at: 2000) == .absent)
        // After a goodbye no return is awaited.
        book.attach(connection(2), app: "1", channel: "c", user: "ann", device: "phone", now: 3000)
        book.disconnected(connection(2), now: 4000)
        #expect(reach(book, at: 4000) == .absent)
        // After a return, an unsubscribe is a goodbye, too.
        book.attach(connection(3), app: "1", channel: "c", user: "ann", device: "phone", now: 5000)
        book.disconnected(connection(3), mayReturn: true, now: 5000)
        book.attach(connection(4), app: "1", channel: "c", user: "ann", device: "phone", now: 6000)
        book.detach(connection(4), channel: "c")
        #expect(reach(book, at: 6000) == .absent)
    }

    @Test("an app that was in the background when it was cut off is not waited for, unless it keeps working")
    func cutOffInBackground() {
        let cases: [(AppState, Bool, DeviceState)] = [
            (.background, false, .absent), (.background, true, .grace), (.foreground, false, .grace),
        ]
        for (state, keepsWorking, wanted) in cases {
            var book = Attendance()
            book.attach(connection(1), app: "1", channel: "c", user: "ann", device: "phone", now: 0)
            book.setState(connection(1), state, keepsWorking: keepsWorking)
            book.disconnected(connection(1), mayReturn: true, now: 1000)
            #expect(reach(book, at: 2000) == wanted)
        }
    }

    @Test("departures are bounded in number and in time")
    func departuresBounded() {
        var book = Attendance(travellersMax: 100)
        for slot in 0..<1000 {
            book.attach(connection(slot), app: "1", channel: "c", user: "u\(slot)", device: nil, now: Int64(slot))
            book.disconnected(connection(slot), mayReturn: true, now: Int64(slot))
        }
        #expect(book.travellerCount == 100)
        #expect(book.state(app: "1", channel: "c", user: "u899", now: 1000).0 == .absent)
        #expect(book.state(app: "1", channel: "c", user: "u999", now: 1000).0 == .grace)
        for round in 0..<10_000 {
            let now = Int64(2000 + round)
            book.attach(connection(round), app: "1", channel: "c", user: "u", device: nil, now: now)
            book.disconnected(connection(round), mayReturn: true, now: now)
        }
        book.attach(connection(1), app: "1", channel: "c", user: "v", device: nil, now: 100_000)
        #expect(book.travellerCount == 0)
    }

    @Test("who comes and goes all the time counts as in the background")
    func flapping() {
        var book = Attendance()
        func flap(_ count: Int, from start: Int64, every: Int64) -> Int64 {
            for round in 0..<count {
                let slot = connection(round + Int(start))
                book.attach(slot, app: "1", channel: "c", user: "ann", device: "phone", now: start + Int64(round) * every)
                book.disconnected(slot, mayReturn: true, now: start + Int64(round) * every + 1)
            }
            return start + Int64(count - 1) * every + 1
        }
        var now = flap(6, from: 0, every: 1000)
        book.attach(connection(90), app: "1", channel: "c", user: "ann", device: "phone", now: now)
        #expect(reach(book, at: now) == .background && reach(book, device: "phone", at: now) == .background)
        book.disconnected(connection(90), mayReturn: true, now: now)
        #expect(reach(book, at: now) == .absent)
        book.attach(connection(91), app: "1", channel: "c", user: "ann", device: "phone", now: 200_000)
        #expect(reach(book, at: 200_000) == .live)
        book.disconnected(connection(91), mayReturn: true, now: 200_001)
        #expect(reach(book, at: 200_001) == .grace)
        // Slow network changes do not flap; neither do six tabs closed at once, and six opened after one was closed.
        now = flap(7, from: 1_000_000, every: 15_000)
        #expect(reach(book, at: now) == .grace)
        for slot in 0..<6 { book.attach(connection(slot), app: "1", channel: "c", user: "bob", device: nil, now: 5_000_000) }
        for slot in 0..<6 { book.disconnected(connection(slot), mayReturn: true, now: 5_000_001) }
        book.attach(connection(7), app: "1", channel: "c", user: "bob", device: nil, now: 5_000_002)
        #expect(book.state(app: "1", channel: "c", user: "bob", now: 5_000_002).0 == .live)
        for slot in 8..<14 { book.attach(connection(slot), app: "1", channel: "c", user: "bob", device: nil, now: 5_000_003) }
        #expect(book.state(app: "1", channel: "c", user: "bob", now: 5_000_003).0 == .live)
    }

    @Test("after the server was away, everybody is on the way back for 30 s")
    func boot() {
        var book = Attendance()
        book.booted(now: 1000)
        #expect(book.state(app: "1", channel: "c", user: "ann", now: 2000) == (.serverGrace, 29_000))
        book.attach(connection(1), app: "1", channel: "c", user: "ann", device: nil, now: 2000)
        #expect(reach(book, at: 2000) == .live)
        book.disconnected(connection(1), mayReturn: true, now: 20_000)
        // The longer grace counts.
        #expect(book.state(app: "1", channel: "c", user: "ann", now: 20_000) == (.grace, 15_000))
        #expect(book.state(app: "1", channel: "c", user: "bob", now: 20_000) == (.serverGrace, 11_000))
        #expect(book.state(app: "1", channel: "c", user: "bob", now: 31_000) == (.absent, 0))
    }

    @Test("returns are counted while people come back from the server's own absence")
    func returns() {
        var book = Attendance()
        book.attach(connection(1), app: "1", channel: "c", user: "ann", device: nil, now: 0)
        #expect(book.takeReturns() == 0)
        book.booted(now: 1000)
        for slot in 2..<5 { book.attach(connection(slot), app: "1", channel: "c", user: "ben", device: nil, now: 2000) }
        #expect(book.takeReturns() == 3 && book.takeReturns() == 0)
        book.attach(connection(5), app: "1", channel: "c", user: "cleo", device: nil, now: 31_000)
        #expect(book.takeReturns() == 0)
    }

    @Test("what an app says on its newest connection holds against its older ones; each page speaks for itself")
    func displaced() {
        var book = Attendance()
        func seatCount(_ slot: Int) -> Int { book.seats(of: connection(slot)).count }
        book.attach(connection(1), app: "1", channel: "c", user: "ann", device: "phone")
        book.setState(connection(1), .foreground)
        book.attach(connection(2), app: "1", channel: "c", user: "ann", device: "phone")
        #expect(seatCount(1) == 1 && reach(book, at: 0) == .live)
        // The device's next state will come over the newer connection.
        #expect(book.seats(of: connection(1)).map(\.state) == [.unknown])
        book.setState(connection(2), .background)
        #expect(reach(book, at: 0) == .background && seatCount(1) == 0 && seatCount(2) == 1)
        book.setState(connection(2), .foreground)
        #expect(seatCount(1) == 1)
        book.setState(connection(1), .background)
        #expect(reach(book, at: 0) == .live && seatCount(2) == 1)
        book.setState(connection(1), .foreground)
        book.setState(connection(2), .background)
        book.attach(connection(5), app: "1", channel: "c", user: "ann", device: "tablet")
        #expect(seatCount(1) == 0 && seatCount(5) == 1)
        book.disconnected(connection(2))
        #expect(reach(book, device: "phone", at: 0) == .live && book.seats(of: connection(1)).map(\.state) == [.foreground])
        book.attach(connection(3), app: "1", channel: "c", user: "bob", device: "laptop", isBrowser: true)
        book.attach(connection(4), app: "1", channel: "c", user: "bob", device: "laptop", isBrowser: true)
        book.setState(connection(3), .foreground)
        book.setState(connection(4), .background)
        book.attach(connection(6), app: "1", channel: "c", user: "bob", device: "laptop", isBrowser: true)
        #expect(book.seats(of: connection(3)).map(\.state) == [.foreground] && seatCount(4) == 1)
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

    @Test("who names somebody else's socket changes nothing for its owner")
    func foreignBinding() {
        var book = Attendance()
        book.bind(socketID: "1.1", app: "1", user: "ann", device: "phone")
        for number in 0..<100 { book.bind(socketID: "1.1", app: "1", user: "eve\(number)", device: "eve's") }
        book.bind(socketID: "1.1", app: "2", user: "ann", device: "other app's")
        #expect(book.device(boundTo: "1.1", app: "1", user: "ann") == "phone" && book.bindingCount == 1)
        #expect(book.device(boundTo: "1.1", app: "1", user: "eve1") == "eve's")
        book.bind(socketID: "1.1", app: "1", user: "ann", device: "tablet")
        #expect(book.device(boundTo: "1.1", app: "1", user: "ann") == "tablet")
        let sockets = book.takeSockets(app: "1", user: "ann")
        #expect(sockets == ["1.1"] && book.device(boundTo: "1.1", app: "1", user: "ann") == nil)
        book.unbind(socketID: "1.1")
        #expect(book.bindingCount == 0 && book.takeSockets(app: "1", user: "eve1").isEmpty)
    }

    @Test("one person's sockets push out their own oldest, and nobody else's")
    func bindingsOfOne() {
        var book = Attendance(bindingsMax: 1000)
        book.bind(socketID: "1.0", app: "1", user: "bob", device: "phone")
        for id in 1...5000 { book.bind(socketID: "2.\(id)", app: "1", user: "ann", device: "x") }
        #expect(book.bindingCount == 101)
        #expect(book.device(boundTo: "1.0", app: "1", user: "bob") == "phone")
        let sockets = book.takeSockets(app: "1", user: "ann")
        #expect(sockets.first == "2.4901" && book.bindingCount == 1)
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
            }
            #expect(book.connectionCount == Set(model.keys.map(\.slot)).count)
            #expect(book.peopleCount == Set(model.values.map(\.user)).count)
        }
    }

    @Test("a start waits for those who were there a moment ago, and for nobody where nobody was")
    func mark() {
        let now: Int64 = 1_000_000_000
        let cases: [(Int64?, Bool)] = [
            (nil, false), (now, true), (now - AttendanceMark.awayMaxMilliseconds, true),
            (now - AttendanceMark.awayMaxMilliseconds - 1, false),
            (now + 1000, true),
        ]
        for (last, isRecent) in cases { #expect(AttendanceMark.isRecent(last, now: now) == isRecent) }
    }
}
