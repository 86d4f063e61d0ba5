internal import Foundation
internal import GatewaySimulators
internal import Glibc
package import HubCore
internal import HubCrypto
internal import HubJSON

/// A running demo: simulated gateways, a hub as its child process, the phones' networks, and the page. Everything is on loopback, and in
/// a temporary folder that is removed at the end.
package final class DemoRun: Sendable {
    /// The address of the page, with a random token in it.
    package let url: String

    private let folder: DemoFolder
    private let lifeline: PipeEnds
    /// The process that removes the folder if this one is killed.
    private let keeper = Guarded<pid_t>(0)
    private let gateways: SimulatedGateways
    private let relay: Relay
    private let backend: Backend
    private let hub: HubProcess
    private let page: PageServer
    private let stage: Guarded<Stage>
    private let cast: Cast
    private let wishes: Inbox<PageServer.Wish>
    /// Questions to publish: number, and when it was asked.
    private let questions = Inbox<(Int, Int64)>()
    private let time: any TimeSource
    /// Makes the publishes of this run unlike those of another one.
    private let run = Hex.encode(SecureRandom.bytes(8))
    private let tokens: Guarded<[String: String]>

    private static let retry = Duration.milliseconds(150)
    /// Nothing else of the demo's own environment reaches the hub.
    private static let inherited: Set<String> = ["PATH", "HOME", "TMPDIR", "LANG", "TZ"]

    /// Starts everything, and waits until the page can be opened.
    /// - Parameter port: of the page; 0 for one chosen by the system.
    /// - Throws: `DemoError` or `GatewayError`; nothing stays behind then.
    package static func start(port: UInt16, time: any TimeSource) async throws -> DemoRun {
        let folder = try DemoFolder()
        do {
            let demo = try DemoRun(folder: folder, port: port, time: time)
            do {
                try await demo.raise()
            } catch {
                demo.end()
                throw error
            }
            return demo
        } catch {
            folder.remove()
            throw error
        }
    }

    private init(folder: DemoFolder, port: UInt16, time: any TimeSource) throws {
        self.folder = folder
        self.time = time
        let cast = Cast()
        let stage = Guarded(Stage(cast: cast))
        let wishes = Inbox<PageServer.Wish>()
        let tokens = Guarded<[String: String]>([:])
        let key = Hex.encode(SecureRandom.bytes(10))
        gateways = try SimulatedGateways(SimulatedGateways.Options(folder: folder.path + "/gateways"))
        let relay = try Relay(phones: cast.phones.count)
        backend = try Backend(key: key, secret: Hex.encode(SecureRandom.bytes(16)), time: time)
        guard let lifeline = PipeEnds(isBlocking: true) else { throw DemoError("cannot make a pipe: raise the limit of open files") }
        self.lifeline = lifeline
        let inherited = ProcessInfo.processInfo.environment.filter { Self.inherited.contains($0.key) }.map { "\($0.key)=\($0.value)" }
        hub = HubProcess(
            folder: folder.path, environment: inherited + gateways.settings.map { "\($0.name)=\($0.value)" }, lifeline: lifeline.reading)
        page = try PageServer(
            token: Hex.encode(SecureRandom.bytes(16)), port: port, relays: relay.ports,
            state: { stage.withLock { $0.snapshot(at: time.wallMilliseconds) } },
            app: { id in
                let line = cast.phones.firstIndex { $0.id == id }
                guard let index = line, let token = tokens.withLock({ $0[id] }) else { return nil }
                return Self.settings(of: cast.phones[index], relay: relay.ports[index], key: key, token: token)
            },
            perform: { wish in
                // Done at once: the page goes on only when the mode is in force.
                if !Self.perform(wish, relay: relay, stage: stage, cast: cast, now: time.wallMilliseconds) {
                    _ = wishes.offer(wish, limit: 64)
                }
            })
        self.relay = relay
        self.cast = cast
        self.stage = stage
        self.wishes = wishes
        self.tokens = tokens
        url = page.url
    }

    /// The settings of an app, as it would have them from its developer and from its login.
    private static func settings(of phone: Cast.Phone, relay: UInt16, key: String, token: String) -> JSONValue {
        [
            "id": .string(phone.id), "user": .string(phone.user), "name": .string(phone.name), "port": .int(Int64(relay)),
            "key": .string(key), "token": .string(token), "channel": .string(Cast.channel), "event": .string(Cast.event),
            "companion": .bool(phone.hasCompanion),
        ]
    }

    /// False: the wish takes its time, so it is not for the page server's thread.
    private static func perform(
        _ wish: PageServer.Wish, relay: Relay, stage: Guarded<Stage>, cast: Cast, now: Int64
    ) -> Bool {
        let line = { (phone: String) in cast.phones.firstIndex { $0.id == phone } }
        switch wish {
        case .ask, .kill, .restart: return false
        case .network(let phone, let mode):
            guard let line = line(phone) else { return true }
            relay.set(mode, line: line)
            stage.withLock { $0.network(of: phone, is: mode, at: now) }
        case .cut(let phone):
            if let line = line(phone) { relay.cut(line: line) }
        case .read(let phone, let number, let isLive):
            stage.withLock { $0.read(number, Telling.Reading(phone: phone, at: now, isLive: isLive)) }
        case .dismissed(let phone, let number): stage.withLock { $0.dismiss(number, on: phone) }
        }
        return true
    }

    /// Writes the hub's files, starts it and lets everybody in.
    private func raise() async throws(DemoError) {
        guard let keeper = ProgramStart.startSelf(["demo", "keeper", folder.path], environment: [], input: lifeline.reading) else {
            throw DemoError("cannot start a process: raise the limit of processes")
        }
        self.keeper.withLock { $0 = keeper }
        _ = try folder.write(PackageResources.channel_yaml, to: "channels/demo.yaml")
        let configuration = """
            listen: { host: 127.0.0.1, port: 0 }
            apps: [ { id: "\(Backend.app)", key: \(backend.key), secret: \(backend.secret) } ]
            cors: { origins: [ "\(page.origin)" ] }
            store: "sqlite:\(folder.path)/hub.db"

            """
        _ = try folder.write(Array(configuration.utf8), to: "hub.yaml")
        try await startHub()
        let admitted = try await backend.admit(cast)
        tokens.withLock { $0 = admitted }
    }

    private func startHub() async throws(DemoError) {
        stage.withLock { [time] in $0.became(.starting, at: time.wallMilliseconds) }
        let port = try await hub.start()
        backend.moved(to: port)
        relay.lead(to: port)
        stage.withLock { [time] in $0.became(.up, at: time.wallMilliseconds) }
    }

    /// Carries wishes out, and reads gateways and trails, until the task is cancelled.
    package func work() async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.watchHub() }
            group.addTask { await self.readGateways() }
            group.addTask { await self.readTrails() }
            group.addTask { await self.publish() }
            await withTaskCancellationHandler {
                while let wishes = await wishes.next() {
                    for wish in wishes { await carryOut(wish) }
                }
            } onCancel: {
                wishes.close()
                questions.close()
            }
            group.cancelAll()
        }
    }

    private func carryOut(_ wish: PageServer.Wish) async {
        switch wish {
        case .ask:
            let now = time.wallMilliseconds
            if let number = stage.withLock({ $0.ask(at: now) }) { questions.post((number, now)) }
        case .kill:
            hub.kill()
            stage.withLock { [time] in $0.became(.down, at: time.wallMilliseconds) }
        case .restart:
            guard !hub.isRunning else { return }
            do throws(DemoError) {
                try await startHub()
            } catch {
                hub.kill()
                stage.withLock { [time] in $0.became(.down, at: time.wallMilliseconds) }
            }
        default: break
        }
    }

    /// Publishes in the order of the questions, each until the hub has answered. Its idempotency key keeps a second try from telling
    /// anybody twice.
    private func publish() async {
        while let waiting = await questions.next() {
            for (number, askedAt) in waiting {
                while !Task.isCancelled {
                    if let event = try? await backend.ask(number, askedAt: askedAt, run: run) {
                        stage.withLock { [time] in $0.published(number, event: event, at: time.wallMilliseconds) }
                        break
                    }
                    try? await Task.sleep(for: Self.retry)
                }
            }
        }
    }

    /// Sees a hub that ended by itself, or by a hand outside the page.
    private func watchHub() async {
        while !Task.isCancelled {
            if !hub.isRunning { stage.withLock { [time] in $0.ended(at: time.wallMilliseconds) } }
            try? await Task.sleep(for: .milliseconds(50))
        }
    }

    private func readGateways() async {
        var last = 0
        while !Task.isCancelled {
            for request in gateways.requests(after: last) {
                last = request.sequence
                guard request.status == 200, let phone = cast.phone(token: request.token), let body = request.json,
                    let news = GatewayNews(body: body, at: request.receivedAt)
                else { continue }
                stage.withLock { $0.accepted(news, for: phone, at: request.receivedAt) }
            }
            try? await Task.sleep(for: .milliseconds(30))
        }
    }

    private func readTrails() async {
        var round = 0
        while !Task.isCancelled {
            round += 1
            let (round, now) = (round, time.wallMilliseconds)
            for (number, event) in stage.withLock({ $0.openTrails(at: now, everySecond: round % 8 == 0) }) {
                guard let trail = try? await backend.trail(of: event) else { continue }
                stage.withLock { $0.traced(number, trail) }
            }
            try? await Task.sleep(for: .milliseconds(120))
        }
    }

    /// Ends the hub, the gateways, the networks and the page, and removes the folder. Idempotent.
    package func end() {
        wishes.close()
        questions.close()
        page.stop()
        hub.kill()
        relay.stop()
        backend.end()
        gateways.stop()
        folder.remove()
        let keeper = self.keeper.withLock { keeper in
            defer { keeper = 0 }
            return keeper
        }
        guard keeper > 0 else { return }
        lifeline.close()
        waitpid(keeper, nil, 0)
    }
}
