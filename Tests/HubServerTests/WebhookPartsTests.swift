import HubConfiguration
import HubCore
import HubStorage
import HubWebhooks
import Logging
import OutboxTesting
import PusherProtocol
import Testing

@testable import HubServer

@Suite("From the configuration to webhooks")
struct WebhookPartsTests {
    private var configuration: Configuration {
        var configuration = Configuration()
        var talking = Configuration.App(id: "7", key: "old", secret: "old-secret")
        talking.credentials.append(AppCredential(key: "new", secret: "new-secret"))
        talking.webhooks = [
            .init(url: "http://a.example/x", events: [.channelVacated]),
            .init(url: "https://b.example/y", events: [.clientEvent, .cacheMiss]),
        ]
        configuration.apps = [.init(id: "1", key: "k", secret: "s"), talking]
        return configuration
    }

    @Test("every address gets its kinds and its app's first key")
    func endpoints() {
        let endpoints = configuration.webhookEndpoints
        #expect(endpoints.map(\.url) == ["http://a.example/x", "https://b.example/y"])
        #expect(endpoints.map(\.kinds) == [.vacated, [.clientEvent, .cacheMiss]])
        #expect(endpoints.allSatisfy { $0.app == 1 && $0.appID == "7" && $0.key == "old" })
    }

    @Test("the engine reports what the webhooks need, also what only calls a removal off; nothing to apps without")
    func factKinds() {
        #expect(Server.apps(configuration).apps.map(\.factKinds) == [[], [.occupied, .vacated, .clientEvent, .cacheMiss]])
    }

    @Test("every kind of event has its fact")
    func kinds() {
        var app = Configuration.App(id: "1", key: "k", secret: "s")
        var seen: ChannelFact.Kinds = []
        for event in WebhookEvent.allCases {
            app.webhooks = [.init(url: "http://a.example", events: [event])]
            var configuration = Configuration()
            configuration.apps = [app]
            let kinds = configuration.webhookEndpoints[0].kinds
            #expect(!kinds.isEmpty && seen.isDisjoint(with: kinds), "\(event)")
            seen.formUnion(kinds)
        }
        #expect(seen.withCounterparts == seen)
    }

    @Test("without webhooks there is no service")
    func none() throws {
        var configuration = configuration
        let stage = try TestStore()
        #expect(try Server.webhooks(configuration, store: stage.store, time: stage.clock, logger: Logger(label: "test")) != nil)
        configuration.apps.removeLast()
        #expect(try Server.webhooks(configuration, store: stage.store, time: stage.clock, logger: Logger(label: "test")) == nil)
    }
}
