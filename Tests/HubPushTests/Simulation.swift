import Foundation
import GatewaySimulators
import HubCore
import HubDefinitions
import HubDelivery
import HubTesting
import Logging
import Synchronization
import Testing

@testable import HubPush

/// Keeps every line for the test to read.
struct KeepingLogHandler: LogHandler {
    final class Lines: Sendable {
        let all = Mutex<[String]>([])
        var text: String { all.withLock { $0.joined(separator: "\n") } }
    }
    let lines: Lines
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace
    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }
    func log(event: LogEvent) {
        lines.all.withLock { $0.append("\(event.level) \(event.message) \(event.metadata ?? [:])") }
    }
}

/// Both simulated gateways over TLS and HTTP/2, and Tandem's gateways pointed at them by the settings they print.
final class Simulation: Sendable {
    let gateways: SimulatedGateways
    let apnsConfiguration: APNsConfiguration
    let fcmConfiguration: FCMConfiguration
    let apns: APNsGateway
    let fcm: FCMGateway
    let clock: ManualClock
    let reports: PushReports
    let lines = KeepingLogHandler.Lines()
    private let told = Mutex((alarms: [PushAlarm](), details: [String](), dead: [DeadToken]()))
    private let folder: URL

    /// Keys made once and copied for each simulation: an RSA key costs more than all the rest of a test.
    private static let keys: URL? = {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("tandem-push-keys-\(getpid())")
        guard let gateways = try? SimulatedGateways(.init(folder: folder.path)) else { return nil }
        gateways.stop()
        atexit { try? Simulation.keys.map(FileManager.default.removeItem) }
        return folder
    }()

    /// - Parameter behind: seconds the clock starts before the true time, so that it can be moved forward to it.
    init(behind: Int64 = 0, trusts: Bool = true, topic: String? = nil, change: (inout SimulatedGateways.Options) -> Void = { _ in }) throws
    {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("tandem-push-\(UInt64.random(in: 0 ... .max))")
        try FileManager.default.copyItem(at: try #require(Self.keys), to: folder)
        var options = SimulatedGateways.Options(folder: folder.path)
        change(&options)
        gateways = try SimulatedGateways(options)
        clock = ManualClock(wall: Int64(Date().timeIntervalSince1970 * 1000) - behind * 1000)
        reports = PushReports(time: clock)
        let settings = Dictionary(gateways.settings, uniquingKeysWith: { first, _ in first })
        let ca = trusts ? settings["TANDEM_PUSH_CA_FILE"] : nil
        let logger = Logger(label: "test") { [lines] _ in KeepingLogHandler(lines: lines) }
        apnsConfiguration = try .load(
            keyPath: settings["APNS_KEY_PATH"] ?? "", keyID: settings["APNS_KEY_ID"] ?? "", teamID: settings["APNS_TEAM_ID"] ?? "",
            topic: topic ?? settings["APNS_TOPIC"] ?? "", url: settings["TANDEM_APNS_URL"],
            sandboxURL: settings["TANDEM_APNS_SANDBOX_URL"], caFile: ca)
        fcmConfiguration = try .load(
            path: settings["GOOGLE_APPLICATION_CREDENTIALS"] ?? "", url: settings["TANDEM_FCM_URL"], caFile: ca)
        apns = try APNsGateway(apnsConfiguration, time: clock, logger: logger, reports: reports)
        fcm = try FCMGateway(fcmConfiguration, time: clock, logger: logger, reports: reports)
        reports.onAlarm { [weak self] alarm, lane, detail in
            self?.told.withLock {
                $0.alarms.append(alarm)
                $0.details.append("\(lane) \(detail)")
            }
        }
        reports.onDeadToken { [weak self] token in self?.told.withLock { $0.dead.append(token) } }
    }

    var logger: Logger { Logger(label: "test") { [lines] _ in KeepingLogHandler(lines: lines) } }
    var alarms: [PushAlarm] { told.withLock { $0.alarms } }
    var alarmDetails: String { told.withLock { $0.details.joined(separator: "\n") } }
    /// Tokens that the gateways said are to be removed.
    var dead: [String] { told.withLock { $0.dead.map(\.token) } }

    func stop() {
        apns.shutdown(grace: .zero)
        fcm.shutdown(grace: .zero)
        gateways.stop()
        try? FileManager.default.removeItem(at: folder)
    }

    func message(
        event: String = UUID().uuidString.lowercased(), kind: PushKind = .alert, data: [String: JSONValue] = ["game_id": 7],
        group: String? = "g.q17"
    ) -> PushMessage {
        PushMessage(
            nid: UUID().uuidString.lowercased(), event: event, kind: kind,
            title: kind == .alert ? "Hide & Seek" : nil, body: kind == .alert ? "A 3 km radar question has been asked. 🎯" : nil, data: data,
            apns: ["sound": "default", "interruption-level": "time-sensitive"], android: ["channel_id": "game"], group: group,
            expiresAt: clock.wallMilliseconds + 600_000, committedAt: clock.wallMilliseconds, sequence: 42)
    }
}

func apnsTarget(_ number: Int = 1, environment: APNsEnvironment = .sandbox, isProven: Bool = false) -> PushTarget {
    let hex = String(number, radix: 16)
    let token = "a" + String(repeating: "0", count: 63 - hex.count) + hex
    return PushTarget(
        device: "device-\(number)", provider: .apns, platform: .ios, token: token, environment: environment, isProven: isProven)
}

func fcmTarget(_ token: String, platform: DevicePlatform = .android, isProven: Bool = false) -> PushTarget {
    PushTarget(device: token, provider: .fcm, platform: platform, token: token, environment: .production, isProven: isProven)
}

extension PushTarget {
    /// The same after its gateway has accepted it.
    var proven: PushTarget {
        var target = self
        target.isProven = true
        return target
    }
}
