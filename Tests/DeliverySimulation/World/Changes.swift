import HubCore
import HubDefinitions
import HubDelivery
import HubTesting

/// Changes while events are under way: rosters, roles, sessions, definitions, the wall clock.
extension Simulation {
    func change() {
        if !isEnding { schedule(between(0, 2 * settings.changeInterval), .change) }
        // The backend's request, or the signal, needs a process.
        guard isUp, !isEnding else { return }
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<40: leave()
        case 40..<85: changeRole()
        case 85..<90: endSession()
        case 90..<94: reload()
        case 94..<98: uninstall()
        default: setClock()
        }
    }

    func randomRole() -> String? { ([nil] + SimKind.roles.map(Optional.some)).randomElement(using: &random) ?? nil }

    func session(_ id: String) -> Session? {
        guard let number = Int(id), channels[number].isLiving else { return nil }
        return Session(
            app: "1", id: id, number: Int64(number), definition: channels[number].kind.name, joinCode: nil, attributes: [:], createdAt: 0)
    }

    func participant(_ person: Int) -> Participant {
        Participant(
            app: "1", session: channels[people[person].channel].session, user: people[person].name, number: Int64(person),
            name: people[person].name, email: nil, role: people[person].role, joinedAt: 0)
    }

    func count(_ change: String) { report.changes[change, default: 0] += 1 }

    private func leave() {
        guard let person = people.indices.randomElement(using: &random), people[person].isOnRoster,
            let session = session(channels[people[person].channel].session)
        else { return }
        count("leaves")
        people[person].isOnRoster = false
        people[person].changedAt = now
        post(.item(.removed(session, users: [people[person].name], isOver: false)))
        schedule(between(500, 60_000), .rejoin(person: person))
    }

    func rejoin(_ person: Int) {
        guard channels[people[person].channel].isLiving, !people[person].isOnRoster else { return }
        // Without a process there is nobody to take the request.
        guard isUp else { return schedule(1000, .rejoin(person: person)) }
        count("joins")
        people[person].isOnRoster = true
        people[person].role = channels[people[person].channel].kind.hasRoles ? randomRole() : nil
        tellRoster(person)
    }

    private func tellRoster(_ person: Int) {
        people[person].changedAt = now
        post(.item(.rosterChanged(app: "1", session: channels[people[person].channel].session, user: people[person].name)))
        // Its apps subscribe once more.
        for device in people[person].devices where devices[device].mode == .looking { answer(device, .subscribe) }
    }

    private func changeRole() {
        let playing = people.indices.filter { channels[people[$0].channel].kind.hasRoles && people[$0].isOnRoster }
        guard let person = playing.randomElement(using: &random) else { return }
        count("role changes")
        people[person].role = randomRole()
        people[person].changedAt = now
        if settings.broken == .roleUnheard { return }
        tellRoster(person)
    }

    private func endSession() {
        guard let channel = channels.indices.randomElement(using: &random), let session = session(channels[channel].session) else { return }
        count("sessions ended")
        channels[channel].isLiving = false
        let members = channels[channel].people.filter { people[$0].isOnRoster }
        for person in members {
            people[person].isOnRoster = false
            people[person].changedAt = now
        }
        post(.item(.removed(session, users: members.map { people[$0].name }, isOver: true)))
        schedule(between(5_000, 20_000), .revive(channel: channel))
    }

    /// A new session of the same name, with everybody.
    func revive(_ channel: Int) {
        guard isUp else { return schedule(1000, .revive(channel: channel)) }
        channels[channel].isLiving = true
        for person in channels[channel].people { rejoin(person) }
    }

    /// The app is removed from a phone; only its gateway knows.
    private func uninstall() {
        guard let device = devices.indices.randomElement(using: &random), devices[device].hasToken, !devices[device].isUninstalled else {
            return
        }
        count("apps uninstalled")
        goHome(device)
        devices[device].isUninstalled = true
    }

    /// SIGHUP: the roles have each other's place now.
    private func reload() {
        count("reloads")
        swap(&definitions, &reversed)
        hub.reloads += 1
        post(.item(.definitions(definitions, waiter: 0)))
    }

    private func setClock() {
        count("clock steps")
        clockSteps.append(now)
        wallShift += chance(50) ? between(10_000, 3_600_000) : -between(10_000, 3_600_000)
    }
}
