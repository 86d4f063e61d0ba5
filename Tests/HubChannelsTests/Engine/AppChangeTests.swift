import HubCore
import PusherProtocol
import Testing

@testable import HubChannels

/// Apps that are added, changed and removed while connections are open.
@Suite struct AppChangeTests {
    private func change(_ hub: TestHub, _ body: (inout [App]) -> Void) {
        var apps = hub.directory.apps
        body(&apps)
        hub.directory.replace(AppTable(apps))
    }

    private func announce(_ hub: TestHub) {
        for engine in hub.engines { engine.receive(.appsChanged) }
        hub.settle()
    }

    @Test("an added app is served at once, also by a loop that has not been told yet")
    func added() {
        let hub = TestHub(loops: 2, seed: 3)
        #expect(hub.open(0, key: "new").closeCode == 4001)
        change(hub) { apps in
            var app = App(index: apps.count, id: "9", secrets: ["new": "new-secret"])
            app.subscriptionCount = true
            apps.append(app)
        }
        // Loop 0 is told first, and its client subscribes to channels whose home is loop 1.
        hub.engines[0].receive(.appsChanged)
        let client = hub.open(0, key: "new")
        for number in 0..<8 { hub.say(client, #"{"event":"pusher:subscribe","data":{"channel":"room-\#(number)"}}"#) }
        hub.settle()
        #expect(client.closeCode == nil && client.named("pusher_internal:subscription_succeeded").count == 8)
        announce(hub)
        #expect(hub.open(1, key: "new").closeCode == nil)
    }

    @Test("a removed app's connections are closed with 4001, a disabled one's with 4003, and others stay")
    func removed() {
        let hub = TestHub(loops: 2)
        let count = ChannelEngine.dismissedPerTurn * 2 + 3
        let clients = (0..<count).map { hub.open($0 % 2) }
        let (first, other) = (hub.open(0, key: "other"), hub.open(1, key: "other"))
        change(hub) { $0[0].isRemoved = true }
        announce(hub)
        for _ in 0..<4 { hub.settle() }
        #expect(clients.allSatisfy { $0.closeCode == 4001 })
        #expect(first.closeCode == nil && hub.open(0).closeCode == 4001)
        #expect(hub.directory.connectionCount(hub.directory.apps[0]) == 0)
        change(hub) { $0[2].isEnabled = false }
        announce(hub)
        #expect(first.closeCode == 4003 && other.closeCode == 4003)
        change(hub) { $0[2].isEnabled = true }
        announce(hub)
        #expect(hub.open(0, key: "other").closeCode == nil)
    }

    @Test("connections that are open follow the new settings and keys")
    func changed() {
        let hub = TestHub { $0.clientEvents = false }
        let client = hub.open()
        hub.subscribe(client, "private-x")
        hub.settle()
        hub.say(client, #"{"event":"client-x","channel":"private-x","data":{}}"#)
        hub.settle()
        #expect(client.errors.count == 1)
        change(hub) { apps in
            var app = App(index: 0, id: "1", secrets: ["next": "next-secret"])
            app.clientEvents = true
            apps[0] = app
        }
        announce(hub)
        hub.say(client, #"{"event":"client-x","channel":"private-x","data":{}}"#)
        hub.settle()
        #expect(client.errors.count == 1 && client.closeCode == nil)
        #expect(hub.open().closeCode == 4001 && hub.open(key: "next").closeCode == nil)
    }
}
