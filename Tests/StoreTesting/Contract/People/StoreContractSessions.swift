import HubCore
import HubDelivery
import Testing

extension StoreContract {
    static let sessions: [StoreContract] = [
        StoreContract("a session is read as it was put, by id and by join code in any case") { store in
            let attributes: [String: JSONValue] = [
                "radius": 3, "teams": ["a", "ü"], "ratio": .double(2.5), "open": true, "note": .null,
            ]
            let put = try await store.putSession(
                app: "1", id: "game-7", definition: "quiz", joinCode: "abC12", attributes: attributes)
            #expect(put.joinCode == "ABC12" && put.attributes == attributes && put.number > 0)
            #expect(put.definition == "quiz" && put.createdAt > 0)
            #expect(try await store.session(app: "1", id: "game-7") == put)
            #expect(try await store.sessions(joinCode: "aBc12") == [put])
            #expect(try await store.session(app: "2", id: "game-7") == nil)
            #expect(try await store.sessions(joinCode: "ABC13") == [])
        },
        StoreContract("putting a session again replaces it and keeps number and creation time") { store in
            let first = try await store.putSession(
                app: "1", id: "s", definition: "quiz", joinCode: "AAA", attributes: ["a": 1])
            let second = try await store.putSession(app: "1", id: "s", definition: "orders", joinCode: nil, attributes: ["b": 2])
            #expect(second.number == first.number && second.createdAt == first.createdAt)
            #expect(second.definition == "orders" && second.joinCode == nil && second.attributes == ["b": 2])
            #expect(try await store.sessions(joinCode: "AAA") == [])
        },
        StoreContract("a join code belongs to one living session of its app") { store in
            _ = try await store.makeSession("s", joinCode: "CODE")
            await #expect(throws: PeopleStoreError.joinCodeTaken("CODE")) {
                _ = try await store.makeSession("t", joinCode: "code")
            }
            #expect(try await store.session(app: "1", id: "t") == nil)
            _ = try await store.makeSession("other", app: "2", joinCode: "code")
            #expect(Set(try await store.sessions(joinCode: "Code").map(\.id)) == ["s", "other"])
            // Its own code is not a clash.
            _ = try await store.makeSession("s", joinCode: "code")
            #expect(try await store.deleteSession(app: "1", id: "s"))
            #expect(try await store.makeSession("t", joinCode: "code").joinCode == "CODE")
        },
        StoreContract("deleting a session removes its participants, keeps devices and never gives its number again") { store in
            let session = try await store.makeSession()
            let ada = try await store.join(session, "ada@example.org")
            _ = try await store.putDevice(.sample(user: ada.user))
            #expect(try await store.deleteSession(app: "1", id: "game-7"))
            #expect(try await store.deleteSession(app: "1", id: "game-7") == false)
            #expect(try await store.participants(app: "1", session: "game-7") == [])
            #expect(try await store.devices(app: "1", user: ada.user).count == 1)
            let again = try await store.makeSession()
            #expect(again.number > session.number)
            let back = try await store.join(again, "ada@example.org")
            #expect(back.number > ada.number)
            // The old value names a session that is gone, although one of the same name lives.
            await #expect(throws: PeopleStoreError.noSuchSession("game-7")) { _ = try await store.join(session, "b@example.org") }
        },
    ]

    static let participants: [StoreContract] = [
        StoreContract("a participant is created, then replaced with the same number and joining time") { store in
            _ = try await store.makeSession()
            let first = try await store.putParticipant(
                app: "1", session: "game-7", user: "alice", name: "Alice", email: "Al@Example.org", role: "hider")
            #expect(first.email == "Al@Example.org" && first.role == "hider" && first.number > 0 && first.joinedAt > 0)
            let second = try await store.putParticipant(
                app: "1", session: "game-7", user: "alice", name: "Alicia", email: nil, role: nil)
            #expect(second.number == first.number && second.joinedAt == first.joinedAt)
            #expect(second.name == "Alicia" && second.email == nil && second.role == nil)
            #expect(try await store.participant(app: "1", session: "game-7", user: "alice") == second)
            #expect(try await store.participant(app: "1", session: "game-7", user: "bob") == nil)
        },
        StoreContract("a participant of an unknown session is refused") { store in
            await #expect(throws: PeopleStoreError.noSuchSession("nowhere")) {
                _ = try await store.putParticipant(
                    app: "1", session: "nowhere", user: "a", name: "A", email: nil, role: nil)
            }
        },
        StoreContract("an e-mail is one participant's in a session, whatever its case") { store in
            _ = try await store.makeSession()
            _ = try await store.makeSession("other")
            for (session, user) in [("game-7", "a"), ("other", "b")] {
                _ = try await store.putParticipant(
                    app: "1", session: session, user: user, name: "A", email: "Ärger@example.org", role: nil)
            }
            await #expect(throws: PeopleStoreError.emailTaken) {
                _ = try await store.putParticipant(
                    app: "1", session: "game-7", user: "c", name: "C", email: "äRGER@EXAMPLE.org", role: nil)
            }
            // Its own e-mail is not a clash, and having none is not either.
            for (user, email) in [("a", "ärger@example.org"), ("c", nil), ("d", nil), ("e", ""), ("f", "")] {
                _ = try await store.putParticipant(
                    app: "1", session: "game-7", user: user, name: "N", email: email, role: nil)
            }
            #expect(try await store.participants(app: "1", session: "game-7").count == 5)
        },
        StoreContract("participants come in the order of their numbers and can be deleted one by one") { store in
            _ = try await store.makeSession()
            for user in ["zoe", "adam", "mia"] {
                _ = try await store.putParticipant(
                    app: "1", session: "game-7", user: user, name: user, email: nil, role: nil)
            }
            #expect(try await store.participants(app: "1", session: "game-7").map(\.user) == ["zoe", "adam", "mia"])
            #expect(try await store.deleteParticipant(app: "1", session: "game-7", user: "adam"))
            #expect(try await store.deleteParticipant(app: "1", session: "game-7", user: "adam") == false)
            #expect(try await store.participants(app: "1", session: "game-7").map(\.user) == ["zoe", "mia"])
        },
    ]

    static let joins: [StoreContract] = [
        StoreContract("a new participant's user id is its number; the same e-mail is the same participant") { store in
            let session = try await store.makeSession()
            let ada = try await store.join(
                session: session, name: "Ada", email: "ada@example.org", role: "seeker", identity: .email, installation: nil, membersMax: 1)
            #expect(ada.user == String(ada.number) && ada.role == "seeker" && ada.email == "ada@example.org")
            let again = try await store.join(session, "ADA@example.org", name: "Ada L.")
            #expect(again.number == ada.number && again.name == "Ada L." && again.email == "ada@example.org")
            #expect(again.role == "seeker" && again.joinedAt == ada.joinedAt)
            #expect(try await store.participants(app: "1", session: "game-7") == [again])
            let other = try await store.join(try await store.makeSession("other"), "ada@example.org")
            #expect(other.number != ada.number)
        },
        StoreContract("a join does not find the participant that a backend made, and leaves who joined a joiner") { store in
            let session = try await store.makeSession()
            let put = try await store.putParticipant(
                app: "1", session: "game-7", user: "alice", name: "A", email: "alice@example.org", role: nil)
            #expect(put.joinedBy == nil)
            await #expect(throws: PeopleStoreError.emailOfBackend) { _ = try await store.join(session, "Alice@example.org", name: "B") }
            #expect(try await store.participants(app: "1", session: "game-7") == [put])
            let ada = try await store.join(session, "ada@example.org")
            #expect(ada.joinedBy == .email)
            let promoted = try await store.putParticipant(
                app: "1", session: "game-7", user: ada.user, name: "Ada", email: "ada@example.org", role: "hider")
            #expect(promoted.joinedBy == .email && promoted.number == ada.number)
            #expect(try await store.join(session, "ada@example.org") == promoted)
        },
        StoreContract("recognising by device knows the installation and not the e-mail, which is a note then") { store in
            let session = try await store.makeSession()
            let ada = try await store.join(session, device: "dev_1", email: "ada@example.org")
            #expect(ada.role == "hider" && ada.joinedBy == .device && ada.email == "ada@example.org")
            let again = try await store.join(session, device: "dev_1", email: "other@example.org", name: "Eve")
            #expect(again.number == ada.number && again.name == "Eve")
            #expect(try await store.join(session, device: "dev_2").number != ada.number)
            #expect(try await store.join(session, device: nil).number != ada.number)
            #expect(try await store.join(session, device: "dev_3", email: "ADA@example.org").number != ada.number)
            // Nor does an e-mail alone find somebody who joined by device, also after a change by the backend.
            _ = try await store.putParticipant(
                app: "1", session: "game-7", user: ada.user, name: "Ada", email: "ada@example.org", role: nil)
            #expect(try await store.join(session, "ada@example.org").number != ada.number)
            #expect(try await store.join(session, device: "dev_1").number == ada.number)
        },
        StoreContract("a device row recognises nobody") { store in
            let session = try await store.makeSession()
            _ = try await store.putParticipant(app: "1", session: "game-7", user: "alice", name: "A", email: nil, role: nil)
            _ = try await store.putDevice(.sample(user: "alice", id: "dev_1", token: nil))
            #expect(try await store.join(session, device: "dev_1").user != "alice")
        },
        StoreContract("the sessions that a user stands in are counted, up to two and in one app") { store in
            for session in ["a", "b", "c"] { _ = try await store.makeSession(session) }
            _ = try await store.makeSession("a", app: "2")
            for (app, session, user) in [("1", "a", "u"), ("1", "a", "v"), ("1", "b", "v"), ("1", "c", "v"), ("2", "a", "u")] {
                _ = try await store.putParticipant(app: app, session: session, user: user, name: "N", email: nil, role: nil)
            }
            #expect(try await store.sessionCount(app: "1", user: "u") == 1)
            #expect(try await store.sessionCount(app: "1", user: "v") == 2)
            #expect(try await store.sessionCount(app: "1", user: "w") == 0)
        },
        StoreContract("a number that is somebody's user id already is passed over") { store in
            let session = try await store.makeSession()
            let elsewhere = try await store.makeSession("elsewhere", app: "2")
            let base = try await store.join(session, "first@example.org").number
            // The backend's own ids: two participants' and two device owners'. Only those of the same app count.
            for step in 1...2 {
                _ = try await store.putDevice(.sample(user: String(base + 2 + Int64(step)), token: nil))
                _ = try await store.putDevice(.sample(user: String(base + 6), app: "2", token: nil))
            }
            _ = try await store.putParticipant(
                app: "1", session: "game-7", user: String(base + 2), name: "N", email: nil, role: nil)
            let next = try await store.join(session, "second@example.org")
            #expect(next.number == base + 5 && next.user == String(base + 5))
            #expect(try await store.join(session, "third@example.org").number == base + 6)
            #expect(try await store.join(elsewhere, "fourth@example.org").number == base + 7)
        },
        StoreContract("a join finds a number behind thousands of taken ones") { store in
            let session = try await store.makeSession()
            await withTaskGroup(of: Void.self) { group in
                for user in 1...3_000 {
                    group.addTask {
                        await #expect(throws: Never.self) {
                            _ = try await store.putDevice(.sample(user: String(user), token: nil))
                        }
                    }
                }
            }
            let ada = try await store.join(session, "ada@example.org")
            #expect(ada.number > 3_000 && ada.user == String(ada.number))
        },
    ]
}
