import HubCore
import HubDelivery
import Testing

extension StoreContract {
    static let devices: [StoreContract] = [
        StoreContract("a device is read as it was put") { store in
            var device = Device.sample(user: "ada")
            let put = try await store.putDevice(device)
            #expect(put == device)
            #expect(try await store.device(app: "1", user: "ada", id: "phone") == device)
            device.notifications = false
            device.locale = nil
            device.environment = .production
            device.platform = .web
            device.form = .fid
            device.timezone = "Europe/Zurich"
            device.appVersion = "3.1"
            device.refreshedAt = 900
            #expect(try await store.putDevice(device) == device)
            #expect(try await store.devices(app: "1", user: "ada") == [device])
            #expect(try await store.device(app: "2", user: "ada", id: "phone") == nil)
            #expect(try await store.deleteDevice(app: "1", user: "ada", id: "phone"))
            #expect(try await store.deleteDevice(app: "1", user: "ada", id: "phone") == false)
            #expect(try await store.devices(app: "1", user: "ada") == [])
        },
        StoreContract("the targets of many devices come in their order, and nothing for those that are not there") { store in
            var device = Device.sample(user: "ada")
            device.notifications = false
            device.form = .fid
            let first = try await store.putDevice(device)
            let second = try await store.putDevice(.sample(user: "bob", token: nil))
            let names = [("ada", "phone"), ("nobody", "phone"), ("bob", "phone"), ("ada", "other"), ("ada", "phone")]
            let found = try await store.targets(of: names.map { DeviceName(app: "1", user: $0.0, id: $0.1) })
            #expect(found == [DeviceTarget(first), nil, DeviceTarget(second), nil, DeviceTarget(first)])
            #expect(try await store.targets(of: []) == [])
        },
        StoreContract("the registration time stays while token and provider do") { store in
            var device = Device.sample(user: "ada", registeredAt: 100)
            _ = try await store.putDevice(device)
            device.registeredAt = 200
            device.locale = "en"
            let refreshed = try await store.putDevice(device)
            #expect(refreshed.registeredAt == 100 && refreshed.locale == "en")
            device.token = "token-b"
            #expect(try await store.putDevice(device).registeredAt == 200)
            device.registeredAt = 300
            device.provider = .apns
            #expect(try await store.putDevice(device).registeredAt == 300)
            #expect(try await store.device(app: "1", user: "ada", id: "phone")?.registeredAt == 300)
        },
        StoreContract("an installation is found under its handle, where an app wrote a token there, the newest first") { store in
            func put(_ user: String, app: String = "1", token: String?, at: Int64, by writer: DeviceWriter) async throws -> Device {
                try await store.putDevice(.sample(user: user, id: "dev_1", app: app, token: token, registeredAt: at), by: writer)
            }
            #expect(try await store.installation(app: "1", handle: "dev_1") == nil)
            _ = try await put("ada", token: nil, at: 900, by: .installation)
            _ = try await put("bob", token: "token-b", at: 200, by: .participant(session: "s"))
            let newest = try await put("cy", token: "token-c", at: 300, by: .participant(session: "s"))
            _ = try await put("dee", app: "2", token: "token-d", at: 400, by: .installation)
            _ = try await put("eve", token: "token-e", at: 500, by: .backend)
            #expect(try await store.installation(app: "1", handle: "dev_1") == newest)
            // Whoever wrote a row first stays its origin.
            _ = try await put("eve", token: "token-e", at: 600, by: .participant(session: "s"))
            #expect(try await store.installation(app: "1", handle: "dev_1") == newest)
        },
        StoreContract("what a gateway accepted is known of the token, until it is another one or of the other environment") { store in
            let device = Device.sample(user: "ada", provider: .apns)
            _ = try await store.putDevice(device)
            try await store.noteAccepted(token: "token-a", app: "1", provider: .apns, environment: .production, at: 700)
            let proven = try #require(try await store.device(app: "1", user: "ada", id: "phone"))
            #expect(proven.environment == .production && proven.lastAcceptedAt == 700 && proven.registeredAt == 100)
            var again = device
            again.environment = .production
            #expect(try await store.putDevice(again).lastAcceptedAt == 700)
            #expect(try await store.putDevice(device).lastAcceptedAt == nil)
            try await store.noteAccepted(token: "token-a", app: "1", provider: .fcm, environment: .production, at: 800)
            #expect(try await store.device(app: "1", user: "ada", id: "phone") == device)
        },
        StoreContract("a token that works under one row works under another of its app and environment") { store in
            _ = try await store.putDevice(.sample(user: "ada"))
            try await store.noteAccepted(token: "token-a", app: "1", provider: .fcm, environment: .sandbox, at: 700)
            #expect(try await store.putDevice(.sample(user: "bob", id: "d"), by: .installation).lastAcceptedAt == 700)
            #expect(try await store.putDevice(.sample(user: "eve", app: "2")).lastAcceptedAt == nil)
            try await store.noteAccepted(token: "token-a", app: "2", provider: .fcm, environment: .sandbox, at: 900)
            #expect(try await store.device(app: "1", user: "ada", id: "phone")?.lastAcceptedAt == 700)
        },
        StoreContract("the backend moves a token among the rows it wrote, in one app and under one provider") { store in
            _ = try await store.putDevice(.sample(user: "ada", id: "phone"))
            _ = try await store.putDevice(.sample(user: "ada", id: "apple", provider: .apns))
            _ = try await store.putDevice(.sample(user: "7", id: "dev_1"), by: .participant(session: "s"))
            _ = try await store.putDevice(.sample(user: "client:x", id: "dev_1"), by: .installation)
            _ = try await store.putDevice(.sample(user: "eve", app: "2"))
            #expect(try await store.device(app: "1", user: "ada", id: "phone")?.token == "token-a")
            _ = try await store.putDevice(.sample(user: "bob", id: "phone", registeredAt: 500))
            #expect(try await store.device(app: "1", user: "ada", id: "phone") == .sample(user: "ada", token: nil))
            for (app, user, id) in [
                ("1", "ada", "apple"), ("1", "bob", "phone"), ("1", "7", "dev_1"), ("1", "client:x", "dev_1"), ("2", "eve", "phone"),
            ] {
                #expect(try await store.device(app: app, user: user, id: id)?.token == "token-a", "\(user)")
            }
        },
        StoreContract("a participant takes a token from the others of one session, and from nobody else") { store in
            _ = try await store.makeSession("s")
            _ = try await store.makeSession("t")
            for (session, user) in [("s", "ada"), ("s", "bob"), ("s", "eve"), ("t", "cy")] {
                _ = try await store.putParticipant(app: "1", session: session, user: user, name: user, email: nil, role: nil)
            }
            _ = try await store.putDevice(.sample(user: "ada", id: "own"), by: .participant(session: "s"))
            _ = try await store.putDevice(.sample(user: "cy"), by: .participant(session: "t"))
            _ = try await store.putDevice(.sample(user: "bob"))
            _ = try await store.putDevice(.sample(user: "zoe"), by: .participant(session: "u"))
            _ = try await store.putDevice(.sample(user: "client:x"), by: .installation)
            _ = try await store.putDevice(.sample(user: "eve", app: "2"))
            _ = try await store.putDevice(.sample(user: "bob", id: "new"), by: .participant(session: "s"))
            func token(_ user: String, _ id: String = "phone", app: String = "1") async throws -> String? {
                let device = try await store.device(app: app, user: user, id: id)
                return device?.token
            }
            #expect(try await token("bob", "new") == "token-a")
            #expect(try await token("ada", "own") == nil)
            // The backend's rows of the same person stay.
            #expect(try await token("bob") == "token-a")
            #expect(try await token("cy") == "token-a")
            #expect(try await token("zoe") == "token-a")
            #expect(try await token("client:x") == "token-a")
            #expect(try await token("eve", app: "2") == "token-a")
            _ = try await store.putDevice(.sample(user: "bob", id: "newer"), by: .participant(session: "s"))
            #expect(try await token("bob", "new") == nil)
            #expect(try await token("bob") == "token-a")
        },
        StoreContract("a token called dead goes only if it was registered before it died") { store in
            _ = try await store.putDevice(.sample(user: "ada", registeredAt: 1_000))
            #expect(try await store.removeToken("token-a", app: "1", provider: .fcm, deadSince: 999) == false)
            #expect(try await store.removeToken("token-a", app: "1", provider: .fcm, deadSince: 1_000) == false)
            #expect(try await store.removeToken("token-a", app: "1", provider: .apns, deadSince: 2_000) == false)
            #expect(try await store.removeToken("token-b", app: "1", provider: .fcm, deadSince: nil) == false)
            #expect(try await store.device(app: "1", user: "ada", id: "phone")?.token == "token-a")
            #expect(try await store.removeToken("token-a", app: "1", provider: .fcm, deadSince: 1_001))
            #expect(
                try await store.device(app: "1", user: "ada", id: "phone")
                    == .sample(user: "ada", token: nil, registeredAt: 1_000))
            #expect(try await store.removeToken("token-a", app: "1", provider: .fcm, deadSince: 1_001) == false)
            // The same value again is a new registration.
            #expect(try await store.putDevice(.sample(user: "ada", registeredAt: 3_000)).registeredAt == 3_000)
            #expect(try await store.removeToken("token-a", app: "1", provider: .fcm, deadSince: 2_000) == false)
            #expect(try await store.removeToken("token-a", app: "2", provider: .fcm, deadSince: nil) == false)
            #expect(try await store.removeToken("token-a", app: "1", provider: .fcm, deadSince: nil))
        },
        StoreContract("a token told again after its gateway called it dead stays") { store in
            _ = try await store.putDevice(.sample(user: "ada", registeredAt: 1_000))
            var again = Device.sample(user: "ada", registeredAt: 5_000)
            again.refreshedAt = 5_000
            #expect(try await store.putDevice(again).registeredAt == 1_000)
            #expect(try await store.removeToken("token-a", app: "1", provider: .fcm, deadSince: 4_000) == false)
            #expect(try await store.removeToken("token-a", app: "1", provider: .fcm, deadSince: 6_000))
        },
        StoreContract("many devices change in one call, in order, with what became of each") { store in
            _ = try await store.putDevice(.sample(user: "old"))
            let changes: [DeviceChange] = [
                .put(.sample(user: "ada")), .put(.sample(user: "bob", registeredAt: 200)), .remove(app: "1", user: "old", id: "phone"),
                .remove(app: "1", user: "nobody", id: "phone"), .put(.sample(user: "eve", token: "token-e")),
            ]
            let results = try await store.putDevices(changes, by: .backend, perUserMax: 50)
            #expect(results.map { $0?.user } == ["ada", "bob", nil, nil, "eve"])
            // The later one of the same token has it.
            #expect(try await store.device(app: "1", user: "ada", id: "phone")?.token == nil)
            let devices = try await store.devices(app: "1", users: ["ada", "bob", "old", "eve", "nobody"])
            #expect(Set(devices.keys) == ["ada", "bob", "eve"] && devices["bob"]?.first?.token == "token-a")
            #expect(try await store.devices(app: "2", users: ["bob"]) == [:])
            #expect(try await store.putDevices([], by: .backend, perUserMax: 50) == [])
        },
        StoreContract("for one device too many the longest registered one of the user goes") { store in
            for index in 0..<3 {
                _ = try await store.putDevice(
                    .sample(user: "ada", id: "d\(index)", token: "t\(index)", registeredAt: Int64(index)), perUserMax: 3)
            }
            _ = try await store.putDevice(.sample(user: "bob", id: "d0", token: "tb"), perUserMax: 3)
            // Known devices need no room.
            _ = try await store.putDevice(.sample(user: "ada", id: "d0", token: "t0"), perUserMax: 3)
            #expect(Set(try await store.devices(app: "1", user: "ada").map(\.id)) == ["d0", "d1", "d2"])
            _ = try await store.putDevice(.sample(user: "ada", id: "d9", token: "t9", registeredAt: 9), perUserMax: 3)
            #expect(Set(try await store.devices(app: "1", user: "ada").map(\.id)) == ["d1", "d2", "d9"])
            #expect(try await store.devices(app: "1", user: "bob").count == 1)
        },
        StoreContract("a participant's device too many takes the place of one without a token, then of the newest unproven one") { store in
            let writer = DeviceWriter.participant(session: "s")
            func put(_ id: String, at: Int64) async throws {
                _ = try await store.putDevice(.sample(user: "ada", id: id, token: "t-\(id)", registeredAt: at), by: writer, perUserMax: 3)
            }
            func ids() async throws -> Set<String> { Set(try await store.devices(app: "1", user: "ada").map(\.id)) }
            for (index, id) in ["a", "b", "c"].enumerated() { try await put(id, at: Int64(index)) }
            try await put("d", at: 4)
            #expect(try await ids() == ["a", "b", "d"])
            _ = try await store.removeToken("t-a", app: "1", provider: .fcm, deadSince: nil)
            try await put("e", at: 5)
            #expect(try await ids() == ["b", "d", "e"])
            for id in ["b", "d", "e"] {
                try await store.noteAccepted(token: "t-\(id)", app: "1", provider: .fcm, environment: .sandbox, at: 9)
            }
            await #expect(throws: PeopleStoreError.tooManyDevices) { try await put("f", at: 6) }
            #expect(try await ids() == ["b", "d", "e"])
            try await put("b", at: 7)
        },
        StoreContract("devices of which nothing was heard for long are removed, a step at a time") { store in
            for (user, refreshed, accepted) in [("a", 10, nil), ("b", 20, nil), ("c", 10, 50), ("d", 50, nil), ("e", 10, 20)]
                as [(String, Int64, Int64?)]
            {
                var device = Device.sample(user: user, token: user == "b" ? nil : "t-\(user)")
                device.refreshedAt = refreshed
                device.lastAcceptedAt = accepted
                _ = try await store.putDevice(device)
            }
            #expect(try await store.pruneDevices(idleSince: 50, limit: 2) == 2)
            #expect(try await store.pruneDevices(idleSince: 50, limit: 2) == 1)
            #expect(try await store.pruneDevices(idleSince: 50, limit: 2) == 0)
            #expect(Set(try await store.devices(app: "1", users: ["a", "b", "c", "d", "e"]).keys) == ["c", "d"])
        },
        StoreContract("the roster holds everybody with all their devices, newest registration first") { store in
            let session = try await store.makeSession()
            _ = try await store.makeSession("other")
            for (session, user) in [("game-7", "zoe"), ("game-7", "ada"), ("other", "eve")] {
                _ = try await store.putParticipant(
                    app: "1", session: session, user: user, name: user, email: nil, role: nil)
            }
            for (user, id, registeredAt) in [("zoe", "old", 1), ("zoe", "new", 9), ("zoe", "mid", 5), ("eve", "x", 1)] {
                _ = try await store.putDevice(
                    .sample(user: user, id: id, token: "t-\(id)", registeredAt: Int64(registeredAt)))
            }
            _ = try await store.putDevice(.sample(user: "ada", id: "foreign", app: "2"))
            let roster = try await store.roster(app: "1", session: session.id)
            #expect(roster.map(\.participant.user) == ["zoe", "ada"])
            #expect(roster.first?.devices.map(\.id) == ["new", "mid", "old"])
            #expect(roster.last?.devices == [])
            #expect(try await store.devices(app: "1", user: "zoe").map(\.id) == ["new", "mid", "old"])
            #expect(try await store.roster(app: "1", session: "nowhere") == [])
        },
    ]
}
