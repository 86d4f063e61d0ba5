import HubAPI
import HubChannels
import HubConfiguration
import HubCore
import HubDelivery
import HubTesting
import Logging
import OutboxTesting
import PusherProtocol
import Testing

@testable import HubServer

@Suite("AppService") struct AppServiceTests {
    private struct Stage {
        let test: TestStore
        let directory: AppDirectory
        let service: AppService
        let told = Guarded(0)

        init(_ test: TestStore) async throws {
            let file = [Configuration.App(id: "1", key: "app-key", secret: "app-secret")]
            self.test = test
            directory = AppDirectory(file.enumerated().map { App($1, index: $0) })
            service = AppService(
                file, directory: directory, store: test.store, eventDataBytesMax: 10_240, time: test.clock, logger: Logger(label: "test")
            ) { [told] in told.withLock { $0 += 1 } }
            try await service.refresh()
        }

        func key(_ key: String) -> App? { directory.app(key: key) }
    }

    @Test("an added app is in force at once, with its settings, and after a restart")
    func add() async throws {
        let test = try TestStore()
        let stage = try await Stage(test)
        let before = stage.told.withLock { $0 }
        let settings: [AppSetting: JSONValue] = [.connectionsMax: 5, .allowedOrigins: ["https://a.example"]]
        let (listing, secret) = try await stage.service.addApp(id: nil, settings: settings)
        #expect(listing.app.id == "2" && listing.source == .store && !listing.isShadowed && secret.count == 48)
        let key = try #require(listing.keys.first?.key)
        let app = try #require(stage.key(key))
        #expect(app.secrets == [key: secret] && app.connectionsMax == 5 && app.allowedOrigins == ["https://a.example"] && app.index == 1)
        #expect(stage.told.withLock { $0 } > before)
        let again = try await Stage(test)
        #expect(again.key(key)?.secrets == [key: secret] && again.key(key)?.connectionsMax == 5)
        #expect(try await again.service.apps().map(\.app.id) == ["1", "2"])
        #expect(try await again.service.addApp(id: nil, settings: [:]).app.app.id == "3")
    }

    @Test("a rotated key's former ones stay valid for the stated time, and no longer")
    func rotate() async throws {
        let test = try TestStore()
        let stage = try await Stage(test)
        let (first, _) = try await stage.service.addApp(id: "7", settings: [:])
        let old = try #require(first.keys.first?.key)
        let (second, secret) = try await stage.service.rotateKey(app: "7", keptMilliseconds: 60_000)
        let new = try #require(second.keys.first?.key)
        #expect(second.keys.map(\.key) == [new, old] && second.keys[1].expiresAt == test.clock.wallMilliseconds + 60_000)
        #expect(stage.key(old)?.index == stage.key(new)?.index && stage.key(new)?.signingKey == new)
        test.clock.advance(milliseconds: 59_000)
        let told = stage.told.withLock { $0 }
        try await stage.service.refresh()
        #expect(stage.key(old) != nil && stage.told.withLock { $0 } == told, "nothing has changed")
        test.clock.advance(milliseconds: 2_000)
        try await stage.service.refresh()
        #expect(stage.key(old) == nil && stage.key(new)?.secrets == [new: secret])
        // Rotated at once: nothing else is valid.
        let (third, _) = try await stage.service.rotateKey(app: "7", keptMilliseconds: 0)
        #expect(third.keys.count == 1 && stage.key(new) == nil)
        for _ in 0..<AppService.formerKeysMax { _ = try await stage.service.rotateKey(app: "7", keptMilliseconds: 60_000) }
        await #expect(throws: AppRefusal.self) { _ = try await stage.service.rotateKey(app: "7", keptMilliseconds: 60_000) }
    }

    @Test("an app of the configuration file wins, is changed there only, and follows the file")
    func file() async throws {
        let test = try TestStore()
        let stage = try await Stage(test)
        let (listing, _) = try await stage.service.addApp(id: "5", settings: [:])
        let key = try #require(listing.keys.first?.key)
        for refused in ["1", "5"] {
            await #expect(throws: AppRefusal.self) { _ = try await stage.service.addApp(id: refused, settings: [:]) }
        }
        await #expect(throws: AppRefusal.self) { _ = try await stage.service.changeApp(id: "1", settings: [.enabled: false]) }
        await #expect(throws: AppRefusal.self) { _ = try await stage.service.removeApp(id: "1") }
        var own = Configuration.App(id: "5", key: "own", secret: "own-secret")
        own.isEnabled = false
        #expect(await stage.service.replaceFileApps([own]) == 2)
        #expect(stage.key("app-key") == nil && stage.key(key) == nil && stage.key("own")?.isEnabled == false)
        #expect(stage.directory.apps.map(\.id) == ["1", "5"] && stage.directory.apps[0].isRemoved)
        #expect(try await stage.service.apps().map(\.isShadowed) == [false, true])
        #expect(await stage.service.replaceFileApps([]) == 1)
        #expect(stage.key(key)?.index == 1 && stage.key("own") == nil)
    }

    @Test("a removed app is unknown, its id stays taken, and changes are refused")
    func remove() async throws {
        let test = try TestStore()
        let stage = try await Stage(test)
        let (listing, _) = try await stage.service.addApp(id: "7", settings: [:])
        _ = try await test.store.putSession(app: "7", id: "s", definition: "quiz", joinCode: nil, attributes: [:])
        #expect(try await stage.service.removeApp(id: "7").remains.sessions == 1)
        #expect(stage.key(try #require(listing.keys.first?.key)) == nil && stage.directory.app(id: "7") == nil)
        await #expect(throws: AppRefusal.noApp("7")) { _ = try await stage.service.removeApp(id: "7") }
        await #expect(throws: AppRefusal.noApp("7")) { _ = try await stage.service.changeApp(id: "7", settings: [.enabled: true]) }
        await #expect(throws: AppRefusal.self) { _ = try await stage.service.addApp(id: "7", settings: [:]) }
        #expect(try await Stage(test).directory.app(id: "7") == nil)
    }

    @Test("wrong settings are refused with their name, and change nothing")
    func wrong() async throws {
        let stage = try await Stage(try TestStore())
        for (setting, value) in [
            (AppSetting.enabled, 1), (.connectionsMax, -1), (.eventDataBytesMax, 10_241), (.allowedOrigins, "x"), (.pingInterval, 0),
        ] as [(AppSetting, JSONValue)] {
            let error = await #expect(throws: AppRefusal.self) { _ = try await stage.service.addApp(id: nil, settings: [setting: value]) }
            #expect(error?.status == 400 && error?.sentence.contains(setting.rawValue) == true)
        }
        #expect(try await stage.service.apps().count == 1)
    }

    @Test("another hub's change comes in by the store, and a change that crossed it is refused")
    func hubs() async throws {
        let test = try TestStore()
        let (one, two) = (try await Stage(test), try await Stage(test))
        let (listing, _) = try await one.service.addApp(id: "7", settings: [:])
        let key = try #require(listing.keys.first?.key)
        #expect(two.key(key) == nil)
        try await two.service.refresh()
        #expect(two.key(key)?.id == "7")
        _ = try await two.service.changeApp(id: "7", settings: [.connectionsMax: 9])
        _ = try await one.service.changeApp(id: "7", settings: [.watchlist: false])
        #expect(one.key(key)?.connectionsMax == 9 && one.key(key)?.watchlist == false)
    }
}
