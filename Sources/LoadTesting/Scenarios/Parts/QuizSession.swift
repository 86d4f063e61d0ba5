internal import CLoadSockets
internal import Glibc
internal import HubCore

/// A session of Tandem's `quiz` definition with people and devices, created over the HTTP API and removed afterwards.
///
/// Each person `N` has one device at the simulated gateways. Its token names the run and the person, so that pushes of other runs are
/// recognised.
final class QuizSession {
    /// The gateway of the devices.
    package enum Provider: String, Sendable, CaseIterable { case fcm, apns }

    let name: String
    let channel: String
    private let dialect: PusherDialect
    private let line: HTTPLine
    private let people: Int
    private let provider: Provider
    /// Eight digits, unique to this run.
    private let run: String

    private static let bulk = 1000

    init(_ dialect: PusherDialect, target: Target, people: Int, provider: Provider) throws(LoadError) {
        self.dialect = dialect
        self.people = people
        self.provider = provider
        line = try HTTPLine(target)
        let digits = String(UInt32(truncatingIfNeeded: tandem_load_now() / 1000 ^ UInt64(getpid()) << 16), radix: 16)
        run = String(repeating: "0", count: 8 - digits.count) + digits
        name = "load-\(run)"
        channel = "presence-quiz-\(name)"
    }

    func user(_ number: Int) -> String { "load-\(run)-\(number)" }

    /// APNs tokens have 64 hexadecimal digits.
    func token(_ number: Int) -> String {
        switch provider {
        case .fcm: return "load-\(run)-\(number)"
        case .apns:
            let digits = String(number, radix: 16)
            return run + String(repeating: "0", count: 56 - digits.count) + digits
        }
    }

    /// The person with this token; nil: one of another run.
    func person(of token: String) -> Int? {
        switch provider {
        case .fcm:
            guard token.hasPrefix("load-\(run)-") else { return nil }
            return Int(token.dropFirst(6 + run.count))
        case .apns:
            guard token.hasPrefix(run) else { return nil }
            return Int(token.dropFirst(run.count), radix: 16)
        }
    }

    /// Creates the session, the people on its roster and their devices.
    func create() throws(LoadError) {
        try ask("PUT", "/sessions/\(name)", ["definition": "quiz", "join_code": .string("L\(run)")], what: "making a session")
        var from = 0
        while from < people {
            let part = from..<min(people, from + Self.bulk)
            let devices = part.map { number -> JSONValue in
                [
                    "user": .string(user(number)), "device": "phone", "token": .string(token(number)),
                    "platform": provider == .fcm ? "android" : "ios", "provider": .string(provider.rawValue),
                ]
            }
            let answer = try ask("POST", "/devices", ["devices": .array(devices)], what: "registering devices")
            for outcome in answer["devices"]?.arrayValue ?? [] where outcome["status"]?.intValue != 200 {
                throw LoadError("a device was not registered: \(outcome.text)")
            }
            for number in part {
                try ask(
                    "PUT", "/sessions/\(name)/participants/\(user(number))", ["name": .string("Person \(number)")],
                    what: "adding a participant")
            }
            from = part.upperBound
        }
    }

    /// Publishes one `session-started` with policy `critical`; the mark is in its data and in the notification's.
    /// - Returns: time of the answer, in milliseconds since 1970.
    func publish(_ mark: EventMark) throws(LoadError) -> Int64 {
        let data = JSONValue.object(["started_at": .string(mark.text)]).text
        let request = dialect.event("session-started", channel: channel, data: data)
        _ = try line.json(request, what: "publishing")
        return wallMilliseconds()
    }

    /// Removes the session and the devices.
    func remove() throws(LoadError) {
        try ask("DELETE", "/sessions/\(name)", nil, what: "ending the session")
        var from = 0
        while from < people {
            let part = from..<min(people, from + Self.bulk)
            let devices = part.map { JSONValue.object(["user": .string(user($0)), "device": "phone", "delete": true]) }
            try ask("POST", "/devices", ["devices": .array(devices)], what: "forgetting devices")
            from = part.upperBound
        }
    }

    @discardableResult
    private func ask(_ method: String, _ path: String, _ body: JSONValue?, what: String) throws(LoadError) -> JSONValue {
        try line.json(dialect.request(method, "/apps/\(dialect.app.id)\(path)", body: body?.text ?? ""), what: what)
    }
}

func wallMilliseconds() -> Int64 {
    var time = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
}
