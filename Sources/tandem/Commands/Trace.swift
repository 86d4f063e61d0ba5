import ArgumentParser
import Foundation
import HubCore
import HubJSON
import HubServer

/// `tandem trace`: shows per recipient how, when and why an event was delivered.
struct Trace: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show what became of an event, recipient by recipient.",
        discussion: """
            The event id is what publishing answers as event_id, where a definition gives the event a policy.

            tandem trace 019b9fd1-6ed2-7c5e-8f2a-0d4f1c7b9a35 --user u17
            """)

    @OptionGroup var app: AppOptions
    @OptionGroup var hub: HubAddress
    @Option(name: .long, help: "Only this recipient.") var user: String?
    @Flag(name: .long, help: "Print JSON, all recipients in one object.") var json = false
    @Argument(help: "Id of the event.") var event: String

    private static let pageMax = 1_000
    private static let idCharacters = Set("0123456789abcdefABCDEF-".utf8)

    func run() async throws {
        do {
            guard !event.isEmpty, event.utf8.allSatisfy({ Self.idCharacters.contains($0) }) else {
                throw ServerError(.usage, "'\(event)' is no event id: it looks like 019b9fd1-6ed2-7c5e-8f2a-0d4f1c7b9a35")
            }
            let answer = try await trail(of: try hub.resolved())
            if let user, answer["deliveries"]?.arrayValue?.isEmpty != false {
                throw ServerError(.failed, "'\(user)' is no recipient of event \(event): leave out --user to see who is")
            }
            print(json ? answer.text : TrailTable(answer).text)
        } catch let error as ServerError {
            throw Tandem.fail(error)
        }
    }

    /// Reads all pages of the trail.
    private func trail(of url: String) async throws -> JSONValue {
        var whole: [String: JSONValue] = [:]
        var deliveries: [JSONValue] = []
        var after: JSONValue? = .int(0)
        while let next = after?.intValue {
            var query = [(name: "limit", value: String(Self.pageMax)), (name: "after", value: String(next))]
            if let user { query.append((name: "user", value: user)) }
            let path = "/apps/\(app.resolvedID)/events/\(event)/deliveries"
            let text = try await SignedRequest(method: "GET", path: path, query: query).send(to: url, as: app.signer)
            guard let page = try? JSONValue(parsing: text), let members = page.objectValue else {
                throw ServerError(.failed, "\(url)\(path) answered no JSON object: is it a hub?")
            }
            whole = members
            deliveries += page["deliveries"]?.arrayValue ?? []
            after = page["next"]
        }
        whole["deliveries"] = .array(deliveries)
        whole["next"] = nil
        return .object(whole)
    }
}

/// A trail as text for people: the event, then one line per recipient and push.
struct TrailTable {
    let text: String

    private static let header = ["USER", "STATE", "KNOWN", "DECISION", "RECEIPT", "DEVICE", "PUSH", "ATTEMPTS", "ANSWER"]

    init(_ trail: JSONValue) {
        let trail = Self.printable(trail)
        let event = trail["event"] ?? .null
        func member(_ name: String) -> String { event[name]?.stringValue ?? "-" }
        let count = trail["recipients"]?.intValue ?? 0
        let rows = trail["deliveries"]?.arrayValue ?? []
        let committedAt = Timestamp.milliseconds(iso8601: member("committed_at"))
        var lines = [
            "event \(member("event_id")): '\(member("name"))' to \(member("channel")), number \(event["sequence"]?.intValue ?? 0) there",
            "policy \(member("policy")), committed \(member("committed_at")), expires \(member("expires_at")), \(count) recipient\(count == 1 ? "" : "s")"
                + (trail["open"]?.boolValue == true ? ", receipts are still awaited" : ""),
            "",
        ]
        lines += Self.aligned([Self.header] + rows.flatMap { Self.lines($0, committedAt: committedAt) })
        // A single recipient leaves room for full sentences.
        if rows.count == 1, let row = rows.first {
            lines += ["", "why: \(row["why"]?.stringValue ?? "-")"]
            for push in row["pushes"]?.arrayValue ?? [] { lines += Self.attempts(push) }
        }
        text = lines.joined(separator: "\n")
    }

    private static func lines(_ row: JSONValue, committedAt: Int64?) -> [[String]] {
        func member(_ name: String) -> String { row[name]?.stringValue ?? "-" }
        var receipt = "-"
        if let text = row["confirmed_at"]?.stringValue, let at = Timestamp.milliseconds(iso8601: text), let committedAt {
            receipt = "+\(seconds(at - committedAt))"
        }
        let own = [member("user"), member("state"), member("known"), member("decision"), receipt]
        let pushes = row["pushes"]?.arrayValue ?? []
        if pushes.isEmpty { return [own + ["-", "-", "-", member("outcome")]] }
        return pushes.enumerated().map { index, push in
            func text(_ name: String) -> String { push[name]?.stringValue ?? "-" }
            let attempts = String(push["attempts"]?.intValue ?? 0)
            // A recipient's further devices follow below the first one.
            return (index == 0 ? own : ["", "", "", "", ""]) + [
                text("device") + (isClear(push) ? " (clear)" : ""), text("state"), attempts, text("outcome"),
            ]
        }
    }

    private static func isClear(_ push: JSONValue) -> Bool { push["purpose"]?.stringValue == "clear" }

    private static func attempts(_ push: JSONValue) -> [String] {
        let device = push["device"]?.stringValue ?? "-"
        var lines = ["\(isClear(push) ? "clear" : "push") to \(device): \(push["why"]?.stringValue ?? "-")"]
        for attempt in push["answers"]?.arrayValue ?? [] {
            let started = attempt["started_at"]?.stringValue ?? "-"
            var took = ""
            if let from = Timestamp.milliseconds(iso8601: started),
                let to = attempt["ended_at"]?.stringValue.flatMap(Timestamp.milliseconds(iso8601:))
            {
                took = " after \(seconds(to - from))"
            }
            lines.append("  attempt \(attempt["attempt"]?.intValue ?? 0), \(started): \(attempt["answer"]?.stringValue ?? "-")\(took)")
        }
        return lines
    }

    /// Replaces control characters: event names may hold any character, and a terminal would obey them.
    private static func printable(_ value: JSONValue) -> JSONValue {
        switch value {
        case .string(let text):
            let scalars = text.unicodeScalars.map { $0.properties.generalCategory == .control ? "\u{FFFD}" : $0 }
            return .string(String(String.UnicodeScalarView(scalars)))
        case .array(let elements): return .array(elements.map(printable))
        case .object(let members): return .object(members.mapValues(printable))
        default: return value
        }
    }

    private static func seconds(_ milliseconds: Int64) -> String {
        let tenths = max(0, milliseconds) / 100
        return "\(tenths / 10).\(tenths % 10) s"
    }

    /// Columns of equal width, two spaces apart.
    private static func aligned(_ rows: [[String]]) -> [String] {
        let widths = header.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { row in
            let cells = row.enumerated().map { column, cell in
                column == row.count - 1 ? cell : cell + String(repeating: " ", count: widths[column] - cell.count)
            }
            let line = cells.joined(separator: "  ")
            return String(line.reversed().drop { $0 == " " }.reversed())
        }
    }
}
