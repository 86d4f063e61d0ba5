import HubCore
import PusherProtocol
import Testing

@testable import HubChannels

@Suite("Signed-in users")
struct UserTests {
    @Test("C21: a sign-in is acknowledged with the very string that was signed")
    func success() {
        let hub = TestHub()
        let client = hub.open()
        let userData = #"{ "id":"12345", "user_info":{"name":"Zo\u00eb"} }"#
        hub.signIn(client, userData)
        #expect(client.named("pusher:signin_success").map(TestClient.data) == [["user_data": .string(userData)]])
        #expect(client.errors.isEmpty && client.closeCode == nil && hub.violations.isEmpty)
    }

    @Test("C21: a sign-in that is not signed, or names nobody, is refused with code null and the connection stays")
    func refused() {
        let hub = TestHub()
        let client = hub.open()
        hub.signIn(client, #"{"id":"1"}"#, secret: "wrong")
        hub.signIn(client, #"{"id":""}"#)
        hub.signIn(client, #"{"id":7}"#)
        hub.signIn(client, "x")
        hub.signIn(client, #"{"id":"1","watchlist":"2"}"#)
        hub.say(client, event: "pusher:signin", data: ["auth": "a:b"])
        #expect(client.errors.map { $0["code"] } == Array(repeating: .null, count: 6))
        #expect(client.named("pusher:signin_success").isEmpty && client.closeCode == nil)
        hub.signIn(client, id: "1")
        #expect(client.named("pusher:signin_success").count == 1, "a refused one does not stand in the way")
    }

    @Test("C21: the same id again succeeds, another id is refused")
    func again() {
        let hub = TestHub()
        let client = hub.open()
        hub.signIn(client, id: "1")
        hub.signIn(client, id: "1")
        hub.signIn(client, id: "2")
        #expect(client.named("pusher:signin_success").count == 2)
        #expect(client.errors.map { $0["code"] } == [.null])
    }

    @Test("C21: #server-to-user- is for its owner only, on all of the owner's sockets, and for nobody else")
    func serverToUser() {
        let hub = TestHub(loops: 3)
        let (phone, laptop, stranger) = (hub.open(0), hub.open(1), hub.open(2))
        for client in [phone, laptop] { hub.signIn(client, id: "12345") }
        hub.signIn(stranger, id: "1234")
        let channel = "#server-to-user-12345"
        for client in [phone, laptop, stranger] { hub.subscribe(client, channel) }
        hub.settle()
        #expect(phone.acknowledgements(channel) == 1 && laptop.acknowledgements(channel) == 1 && stranger.acknowledgements(channel) == 0)
        #expect(stranger.named("pusher:subscription_error", on: channel).count == 1)
        hub.publish("note", on: [channel], from: 2)
        hub.settle()
        #expect(phone.published(on: channel) == ["note"] && laptop.published(on: channel) == ["note"])
        #expect(stranger.published(on: channel).isEmpty)
        hub.unsubscribe(phone, channel)
        hub.publish("note", on: [channel], from: 2)
        hub.settle()
        #expect(phone.published(on: channel) == ["note"] && laptop.published(on: channel) == ["note", "note"])
        hub.say(laptop, event: "client-x", channel: channel, data: "y")
        #expect(laptop.errors.count == 1, "no client events there")
        #expect(hub.engines.allSatisfy { $0.home.summaries(app: 0, prefix: "").isEmpty }, "and it is in no list")
        #expect(hub.violations.isEmpty)
    }

    @Test("ids that only look alike are two users: for channels, watchlists, presence and terminating")
    func lookAlikes() {
        let (one, two) = ("Zo\u{00EB}", "Zoe\u{0308}")
        let hub = TestHub(loops: 2)
        let (first, second, watcher) = (hub.open(0), hub.open(1), hub.open(0))
        hub.signIn(watcher, id: "w", watchlist: [one, two])
        hub.settle()
        #expect(watcher.watched.first?.count == 2)
        hub.signIn(first, id: one)
        hub.settle()
        #expect(watcher.watched.count == 2, "only one of them came")
        hub.signIn(first, id: two)
        #expect(first.errors.count == 1, "another user")
        hub.subscribe(first, "#server-to-user-\(two)")
        #expect(first.errors.count == 2, "another user's channel")
        hub.signIn(second, id: two)
        hub.subscribe(first, "presence-a", user: .string(one))
        hub.subscribe(second, "presence-a", user: .string(two))
        hub.settle()
        #expect(hub.summary("presence-a")?.userCount == 2)
        hub.engines[0].terminate(app: hub.directory.apps[0], user: two)
        hub.settle()
        #expect(first.closeCode == nil && second.closeCode == 4009)
    }

    @Test("before the sign-in nobody is anybody")
    func notSignedIn() {
        let hub = TestHub()
        let client = hub.open()
        hub.subscribe(client, "#server-to-user-1")
        #expect(client.acknowledgements("#server-to-user-1") == 0 && client.errors.count == 1)
        hub.say(client, event: "pusher:subscribe", data: ["channel": "presence-a", "auth": .string(hub.auth(client, "presence-a"))])
        #expect(client.errors.count == 2 && client.named("pusher:subscription_error").count == 2, "answered at once, not left hanging")
    }

    @Test("a signed-in connection joins presence channels without channel_data, as itself; channel_data wins where it is there")
    func presence() {
        let hub = TestHub(loops: 2)
        let (client, other) = (hub.open(0), hub.open(1))
        hub.signIn(client, #"{"id":"7","user_info":{"name":"Ann"}}"#)
        hub.say(client, event: "pusher:subscribe", data: ["channel": "presence-a", "auth": .string(hub.auth(client, "presence-a"))])
        hub.subscribe(client, "presence-b", user: "8")
        hub.settle()
        hub.subscribe(other, "presence-a", user: "9")
        hub.settle()
        let list = TestClient.data(other.named("pusher_internal:subscription_succeeded")[0])["presence"]
        #expect(list?["hash"]?["7"] == ["name": "Ann"])
        #expect(hub.users("presence-a") == ["7", "9"] && hub.users("presence-b") == ["8"])
        hub.say(client, event: "client-x", channel: "presence-a", data: "y")
        hub.settle()
        #expect(other.named("client-x").map { $0["user_id"] } == ["7"])
    }

    @Test("C22: the first status of all watched users comes in one event, each change in one of its own", arguments: 1...20)
    func watchlist(seed: UInt64) {
        let hub = TestHub(loops: 3, seed: seed)
        let (watcher, seven, sevenToo, eight) = (hub.open(0), hub.open(1), hub.open(2), hub.open(0))
        hub.signIn(seven, id: "7")
        hub.settle()
        hub.signIn(watcher, id: "1", watchlist: ["7", "8", "9", "1"])
        hub.settle()
        #expect(watcher.watched.map(Set.init) == [["+7", "-8", "-9", "+1"]])
        hub.signIn(sevenToo, id: "7")
        hub.signIn(eight, id: "8")
        hub.settle()
        #expect(watcher.watched.dropFirst() == [["+8"]], "a second connection of a user is no news")
        hub.close(seven)
        hub.settle()
        #expect(watcher.watched.count == 2)
        hub.close(sevenToo)
        hub.settle()
        #expect(watcher.watched.last == ["-7"] && watcher.watched.count == 3)
        hub.close(watcher)
        hub.close(eight)
        hub.settle()
        #expect(hub.engines.allSatisfy { $0.users.isEmpty }, "nothing is kept of who is gone")
        #expect(hub.violations.isEmpty)
    }

    @Test("C22: changes while the first status is on its way are neither lost nor told in the wrong order", arguments: 1...200)
    func watchlistRace(seed: UInt64) {
        let hub = TestHub(loops: 4, seed: seed)
        let watcher = hub.open(0)
        let ids = (0..<8).map { "user-\($0)" }
        var signedIn: [String: TestClient] = [:]
        hub.signIn(watcher, id: "w", watchlist: ids)
        for _ in 0..<30 {
            let id = ids[hub.random.below(ids.count)]
            if let client = signedIn.removeValue(forKey: id) {
                hub.close(client)
            } else {
                let client = hub.open(hub.random.below(4))
                hub.signIn(client, id: id)
                signedIn[id] = client
            }
            for _ in 0..<hub.random.below(4) { hub.step() }
        }
        hub.settle()
        var known: [String: Bool] = [:]
        for (index, event) in watcher.watched.enumerated() {
            for change in event {
                let (id, isOnline) = (String(change.dropFirst()), change.hasPrefix("+"))
                if index > 0 { #expect(known[id] == !isOnline, "no news is told") }
                known[id] = isOnline
            }
        }
        #expect(Set(known.filter(\.value).keys) == Set(signedIn.keys) && known.count == ids.count)
    }

    @Test("C22: a hundred users are watched; of a hundred and one the first hundred, and the client is told 4302")
    func watchlistLimit() {
        let hub = TestHub()
        let (full, over) = (hub.open(), hub.open())
        hub.signIn(full, id: "a", watchlist: (1...100).map(String.init))
        hub.signIn(over, id: "b", watchlist: (1...101).map(String.init))
        hub.settle()
        #expect(full.errors.isEmpty && over.errors.map { $0["code"] } == [4302])
        #expect(full.watched.first?.count == 100 && over.watched.first?.count == 100)
        #expect(over.named("pusher:signin_success").count == 1 && over.closeCode == nil)
    }

    @Test("an app without watchlists tells nothing of other users")
    func watchlistOff() {
        let hub = TestHub { $0.watchlist = false }
        let client = hub.open()
        hub.signIn(client, id: "a", watchlist: ["1"])
        hub.settle()
        #expect(client.watched.isEmpty && client.named("pusher:signin_success").count == 1)
    }

    @Test("terminating ends every connection that stands for the user, and no other")
    func terminate() {
        let hub = TestHub(loops: 3, watched: ["private-wallet-1", "private-wallet-2"])
        hub.traits = { ChannelTraits(user: String($0.last ?? "?")) }
        let (phone, laptop, other, present) = (hub.open(0), hub.open(1), hub.open(2), hub.open(2))
        let (wallet, otherWallet, otherMember) = (hub.open(0), hub.open(0), hub.open(1))
        hub.subscribe(wallet, "private-wallet-1")
        hub.subscribe(otherWallet, "private-wallet-2")
        hub.subscribe(otherMember, "presence-a", user: "2")
        hub.signIn(phone, id: "1")
        hub.signIn(laptop, id: "1")
        hub.signIn(other, id: "2")
        hub.subscribe(present, "presence-a", user: "1")
        hub.settle()
        hub.engines[2].terminate(app: hub.directory.apps[0], user: "1")
        hub.engines[2].terminate(app: hub.directory.apps[2], user: "2")
        hub.settle()
        #expect([phone, laptop, present, wallet].map(\.closeCode) == [4009, 4009, 4009, 4009])
        #expect([other, otherWallet, otherMember].map(\.closeCode) == [nil, nil, nil])
        #expect(phone.errors.map { $0["code"] } == [4009])
        let back = hub.open(0)
        hub.signIn(back, id: "1")
        #expect(back.named("pusher:signin_success").count == 1)
        #expect(hub.violations.isEmpty)
    }

    @Test("delivery is told for whom a connection stands, also when it signs in after subscribing")
    func identity() {
        let hub = TestHub(watched: ["private-a", "presence-a", "presence-b"])
        let client = hub.open()
        hub.subscribe(client, "private-a")
        hub.subscribe(client, "presence-a", user: "member")
        hub.settle()
        #expect(users(hub) == [nil, "member"])
        hub.signIn(client, id: "signed-in")
        #expect(users(hub) == ["signed-in"])
        hub.subscribe(client, "presence-b", user: "member")
        hub.settle()
        #expect(users(hub) == ["member"], "the member id goes before the signed-in one")
    }

    private func users(_ hub: TestHub) -> [String?] {
        hub.engines[0].takeReports().compactMap { if case .attached(_, _, _, _, let user, _, _) = $0 { .some(user) } else { nil } }
    }
}
