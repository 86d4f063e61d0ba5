import HubCore
import HubDefinitions
import HubDelivery
import HubTesting

/// The devices, their networks, and the people who hold them.
extension Simulation {
    func populate() {
        let kinds: [(SimDevice.Kind, Int)] = [
            (.app, 29), (.httpApp, 5), (.stockApp, 25), (.workingApp, 6), (.httpWorkingApp, 2), (.page, 12), (.stockPage, 17),
            (.unattendedPage, 2), (.stockRunner, 2),
        ]
        func deviceKind() -> SimDevice.Kind {
            var roll = Int.random(in: 0..<kinds.reduce(0) { $0 + $1.1 }, using: &random)
            for (kind, weight) in kinds {
                if roll < weight { return kind }
                roll -= weight
            }
            return .app
        }
        for number in 0..<settings.channels {
            let kind = SimKind(
                scope: number % 3 == 0 ? .device : .participant, replays: number % 2 == 0, isLimited: number % 5 == 4,
                hasNight: number % 10 == 9, hasRoles: number % 4 == 1)
            var channel = SimChannel(name: kind.channel("\(number)"), session: "\(number)", kind: kind)
            channel.firstDevice = devices.count
            for _ in 0..<settings.participantsPerChannel {
                let (person, first) = (people.count, devices.count)
                var record: [Device] = []
                for _ in 0..<(chance(40) ? 2 : 1) {
                    let kind = deviceKind()
                    let name = "d\(devices.count)"
                    let hasToken = !kind.isBrowser && chance(96)
                    devices.append(
                        SimDevice(person: person, channel: number, name: name, kind: kind, hasToken: hasToken, flaps: chance(1)))
                    record.append(
                        Device(
                            app: "1", user: "u\(person)", id: name, platform: .android, provider: .fcm, token: hasToken ? "t-\(name)" : nil,
                            environment: .production, registeredAt: ManualClock.start))
                }
                people.append(
                    SimPerson(
                        name: "u\(person)", channel: number, devices: first..<devices.count, record: record,
                        role: kind.hasRoles ? randomRole() : nil))
                personIndex["u\(person)"] = person
                channel.people.append(person)
            }
            channel.endDevice = devices.count
            channelIndex[channel.name] = channels.count
            channels.append(channel)
        }
        recent = Array(repeating: [], count: channels.count)
        definitions = SimKind.definitions(Set(channels.map(\.kind)), isReversed: false)
        loopsState = SimLoops(channels: channels.count)
        hub = newHub()
    }

    func deviceIndex(_ name: String) -> Int { Int(name.dropFirst()) ?? 0 }

    func isRunning(_ device: SimDevice) -> Bool { device.mode == .looking || device.mode == .hidden && device.kind.runsUnseen }

    // MARK: What people do

    private func become(_ index: Int, _ mode: SimDevice.Mode, nextIn delay: ClosedRange<Int64>) {
        devices[index].mode = mode
        devices[index].step += 1
        if !isEnding { schedule(between(delay.lowerBound, delay.upperBound), .person(index, step: devices[index].step)) }
    }

    func live(_ index: Int) {
        if devices[index].isUninstalled { return }
        switch devices[index].mode {
        case .gone:
            if chance(10) { return become(index, .gone, nextIn: 10_000...120_000) }
            become(index, .looking, nextIn: 3000...40_000)
            connect(index)
        case .looking where devices[index].flaps:
            cut(index, isNoticed: true)
            become(index, .looking, nextIn: chance(20) ? 60_000...120_000 : 1000...4000)
            schedule(between(100, 500), .connect(index, step: devices[index].step))
        case .looking where devices[index].leaks.isEmpty && chance(3):
            // The app opens another socket without need.
            become(index, .looking, nextIn: 3000...30_000)
            connect(index)
        case .looking: leaveOrStumble(index)
        case .hidden, .suspended:
            if chance(20) {
                cut(index, isNoticed: chance(50))
                devices[index].unseen = []
                become(index, .gone, nextIn: 2000...60_000)
            } else {
                comeBack(index)
            }
        }
    }

    private func leaveOrStumble(_ index: Int) {
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<45:
            become(index, .hidden, nextIn: 1000...60_000)
            if devices[index].kind.runsUnseen {
                say(index, .background)
            } else if chance(90) {
                say(index, .background)
                // For some seconds it still answers.
                schedule(between(0, 15_000), .suspend(index, step: devices[index].step))
            } else if devices[index].kind.isBrowser {
                // Hidden pages are told before they are frozen.
                say(index, .background)
                suspend(index)
            } else {
                // Suspended before it could say a word.
                suspend(index)
            }
        case 45..<60:
            say(index, .background)
            answer(index, .close)
            hangUp(index)
            become(index, .gone, nextIn: 3000...90_000)
        case 60..<80:
            cut(index, isNoticed: chance(50))
            become(index, .looking, nextIn: 5000...40_000)
            schedule(between(1000, 4000), .connect(index, step: devices[index].step))
        case 80..<92:
            let stall = between(300, 8000)
            devices[index].stalledUntil = now + stall
            schedule(stall, .drain(index))
            become(index, .looking, nextIn: 3000...30_000)
        default:
            cut(index, isNoticed: chance(50))
            become(index, .gone, nextIn: 2000...60_000)
        }
    }

    private func comeBack(_ index: Int) {
        become(index, .looking, nextIn: 1000...40_000)
        for event in devices[index].unseen { seen(event, on: index) }
        devices[index].unseen = []
        for socket in sockets(of: index) { connections[socket].responsiveAt = now }
        guard let connection = devices[index].connection, connections[connection].isOpenAtServer, !connections[connection].isCut else {
            return connect(index)
        }
        say(index, .foreground)
        drain(index)
    }

    func suspend(_ index: Int) {
        devices[index].mode = .suspended
        guard !devices[index].kind.isBrowser else { return }
        for connection in sockets(of: index) {
            connections[connection].responsiveAt = now
            schedule(25_000, .silence(connection))
        }
    }

    private func sockets(of index: Int) -> [Int] { devices[index].leaks + (devices[index].connection.map { [$0] } ?? []) }

    /// The last event is out: everybody closes the app.
    func goHome(_ index: Int) {
        answer(index, .close)
        if devices[index].mode == .suspended || devices[index].mode == .hidden { cut(index, isNoticed: false) }
        hangUp(index)
        devices[index].mode = .gone
        devices[index].step += 1
    }

    private func say(_ index: Int, _ state: AppState) {
        guard devices[index].kind.declares else { return }
        if devices[index].kind.tellsOverHTTP { return schedule(latency() + latency(), .deviceState(index, state)) }
        answer(index, .state(state, keepsWorking: devices[index].kind.showsUnseen && state == .background))
    }

    // MARK: Networks

    func connect(_ index: Int) {
        guard !isEnding, isRunning(devices[index]), !devices[index].isUninstalled else { return }
        guard isUp else { return schedule(between(500, 3000), .connect(index, step: devices[index].step)) }
        if let old = devices[index].connection, connections[old].isOpenAtClient {
            // Nobody says goodbye on a socket that seems dead; the server finds out. Some are forgotten and go on answering.
            if chance(10), !connections[old].isCut, !devices[index].kind.isBrowser {
                devices[index].leaks.append(old)
            } else {
                cut(index, isNoticed: false)
            }
        }
        let number = connections.count
        let id = ConnectionID(loop: Int.random(in: 0..<Self.loops, using: &random), slot: number & 0xFF_FFFF, generation: 1)
        let connection = SimConnection(id: id, device: index, life: life)
        connection.upAt = now + between(50, 500)
        connections.append(connection)
        connectionIndex[id] = number
        devices[index].connection = number
        answer(index, .subscribe)
        say(index, devices[index].mode == .looking ? .foreground : .background)
    }

    /// Nothing passes any more, in either direction, on any of its sockets.
    private func cut(_ index: Int, isNoticed: Bool) {
        for number in sockets(of: index) where !connections[number].isCut {
            connections[number].isCut = true
            connections[number].isOpenAtClient = false
            if devices[index].mode != .suspended { connections[number].responsiveAt = now }
            if isNoticed { schedule(between(20, 500), .lost(number)) } else { schedule(25_000, .silence(number)) }
        }
        devices[index].leaks = []
    }

    private func hangUp(_ index: Int) {
        for number in devices[index].leaks {
            connections[number].isOpenAtClient = false
            schedule(latency(), .up(number, .close))
        }
        devices[index].leaks = []
        if let connection = devices[index].connection { connections[connection].isOpenAtClient = false }
        devices[index].connection = nil
    }

    func closeIfSilent(_ index: Int) {
        let connection = connections[index]
        let device = devices[connection.device]
        guard connection.isCut || device.mode == .suspended && !device.kind.isBrowser, now - connection.responsiveAt >= 25_000 else {
            return
        }
        disconnect(index, mayReturn: false)
    }

    func write(_ message: Downstream, to index: Int) {
        let connection = connections[index]
        connection.downAt = max(connection.downAt, now + latency())
        schedule(connection.downAt - now, .down(index, message))
    }

    func answer(_ index: Int, _ message: Upstream) {
        if let number = devices[index].connection { answer(index, message, on: number) }
    }

    private func answer(_ index: Int, _ message: Upstream, on number: Int) {
        guard !connections[number].isCut else { return }
        let connection = connections[number]
        connection.upAt = max(connection.upAt, now + latency(), devices[index].stalledUntil)
        schedule(connection.upAt - now, .up(number, message))
    }

    private func latency() -> Int64 { chance(3) ? between(150, 3000) : between(10, 150) }

    // MARK: What programs read

    func arrived(_ message: Downstream, at connection: SimConnection, _ index: Int) {
        guard connection.isOpenAtClient, !connection.isCut else { return }
        let device = devices[connection.device]
        let reads = (device.mode == .looking || device.mode == .hidden) && now >= device.stalledUntil
        if reads, connection.buffer.isEmpty { return read(message, connection, index) }
        if case .ping(let cursor) = message, device.kind.isBrowser, device.mode == .suspended {
            // The browser's network process answers for a page that is frozen.
            return answer(connection.device, .pong(cursor, read: connection.read.count), on: index)
        }
        connection.buffer.append(message)
    }

    /// The program runs again, or the network works again: what has arrived is read.
    func drain(_ index: Int) {
        guard devices[index].mode == .looking || devices[index].mode == .hidden, now >= devices[index].stalledUntil else { return }
        for number in sockets(of: index) {
            let messages = connections[number].buffer
            connections[number].buffer = []
            for message in messages { read(message, connections[number], number) }
        }
    }

    private func read(_ message: Downstream, _ connection: SimConnection, _ number: Int) {
        let index = connection.device
        switch message {
        case .ping(let cursor), .pagePing(let cursor): answer(index, .pong(cursor, read: connection.read.count), on: number)
        case .frame(let event, let replay):
            connection.read.append((event, replay))
            let device = devices[index]
            guard !events[event].cells.isEmpty else { return }
            let cell = index - channels[device.channel].firstDevice
            if events[event].cells[cell].readAt == nil {
                events[event].cells[cell].readAt = now
                events[event].cells[cell].readByStock = !device.kind.declares || device.kind.tellsOverHTTP
            }
            if device.mode == .looking || device.kind.showsUnseen {
                seen(event, on: index)
            } else {
                devices[index].unseen.append(event)
                if device.kind.runsUnseen { events[event].cells[cell].ranUnseen = true }
            }
        }
    }

    private func seen(_ event: Int, on index: Int) {
        let event = events[event]
        guard !event.cells.isEmpty, !event.isCommitted || now <= event.expiresAt else { return }
        let cell = index - channels[event.channel].firstDevice
        if event.cells[cell].seenAt == nil { event.cells[cell].seenAt = now }
    }
}
