import ArgumentParser
import Foundation
import HubCore
import HubJSON
import HubServer

/// `tandem dead-letters`: lists, shows and resends failed pushes.
struct DeadLetters: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dead-letters", abstract: "List pushes that failed, look at one, send them again.",
        subcommands: [List.self, Show.self, Replay.self], defaultSubcommand: List.self)

    private static let pageMax = 1_000

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List them, the first failed first.", discussion: "tandem dead-letters list --reason UNREGISTERED")

        @OptionGroup var app: AppOptions
        @OptionGroup var hub: HubAddress
        @Option(name: .long, help: "Only those with this reason, such as UNREGISTERED.") var reason: String?
        @Flag(name: .long, help: "Print JSON.") var json = false

        private static let columns = [
            ("FAILED", "failed_at"), ("NID", "nid"), ("USER", "user"), ("DEVICE", "device"), ("PROVIDER", "provider"),
            ("ATTEMPTS", "attempts"),
            ("REASON", "reason"),
        ]

        func run() async throws {
            do {
                let letters = try await DeadLetters.all(reason: reason, app, hub)
                if json { return print(JSONValue.object(["dead_letters": .array(letters)]).text) }
                print(letters.isEmpty ? "no dead letters" : TextTable(Self.columns, letters).text)
            } catch {
                throw Tandem.fail(error)
            }
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show one with its text and data, as JSON: one for each device of the notification.",
            discussion: "tandem dead-letters show NID --device phone-1")

        @OptionGroup var app: AppOptions
        @OptionGroup var hub: HubAddress
        @Argument(help: "The notification's id, as the list has it.") var nid: String
        @Option(name: .long, help: "Only this device.") var device: String?

        func run() async throws {
            do {
                let url = try hub.resolved()
                let devices: [String]
                if let device {
                    devices = [device]
                } else {
                    let letters = try await DeadLetters.all(reason: nil, app, hub)
                    devices = letters.filter { $0["nid"]?.stringValue == nid.lowercased() }.compactMap { $0["device"]?.stringValue }
                }
                guard !devices.isEmpty else {
                    throw ServerError(.failed, "'\(nid)' is no dead letter: tandem dead-letters lists those there are")
                }
                for device in devices {
                    let path = "/apps/\(app.resolvedID)/dead-letters/\(nid)/\(device)"
                    print(try await SignedRequest(method: "GET", path: path).send(to: url, as: app.signer))
                }
            } catch let error as ServerError {
                throw Tandem.fail(error)
            }
        }
    }

    struct Replay: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Send some again, as if they had never been tried.",
            discussion: """
                What has expired needs --ttl. A reason is one that the list shows, up to its colon.

                tandem dead-letters replay --all --reason 'http 503' --ttl 10m
                """)

        @OptionGroup var app: AppOptions
        @OptionGroup var hub: HubAddress
        @Argument(help: "Ids of notifications.") var nids: [String] = []
        @Flag(name: .long, help: "All with the reason, in place of ids.") var all = false
        @Option(name: .long, help: "With --all: only those with this reason, such as 'http 503'.") var reason: String?
        @Option(name: .long, help: "With --all: only those that failed before, such as 2026-01-09T01:00:00Z.") var before: String?
        @Option(name: .long, help: "How long they are worth telling from now on, such as 10m.") var ttl: String?

        func validate() throws {
            guard all == nids.isEmpty else { throw ValidationError("name notifications, or --all with --reason or --before") }
            guard all == (reason != nil || before != nil) else {
                throw ValidationError("--reason and --before go with --all, and --all needs one of them")
            }
        }

        func run() async throws {
            do {
                let url = try hub.resolved()
                var body: [String: JSONValue] = [:]
                if !all { body["nids"] = .array(nids.map(JSONValue.string)) }
                body["reason"] = reason.map(JSONValue.string)
                body["before"] = before.map(JSONValue.string)
                body["ttl"] = ttl.map(JSONValue.string)
                var (replayed, refused): (Int64, [JSONValue]) = (0, [])
                while true {
                    let path = "/apps/\(app.resolvedID)/dead-letters/replay"
                    let answer = try await SignedRequest(method: "POST", path: path, body: Array(JSONValue.object(body).text.utf8)).object(
                        from: url, as: app.signer)
                    replayed += answer["replayed"]?.intValue ?? 0
                    refused += answer["refused"]?.arrayValue ?? []
                    if answer["more"]?.boolValue != true { break }
                }
                print("replayed \(replayed)")
                for refusal in refused {
                    print(
                        "refused \(refusal["nid"]?.stringValue ?? "-") \(refusal["device"]?.stringValue ?? ""): \(refusal["error"]?.stringValue ?? "-")"
                    )
                }
                if !refused.isEmpty { throw ServerError(.failed, "\(refused.count) could not be sent again") }
            } catch let error as ServerError {
                throw Tandem.fail(error)
            }
        }
    }

    /// Reads all pages.
    private static func all(reason: String?, _ app: AppOptions, _ hub: HubAddress) async throws(ServerError) -> [JSONValue] {
        let url = try hub.resolved()
        var letters: [JSONValue] = []
        var after: String? = ""
        while let place = after {
            var query = [(name: "limit", value: String(pageMax))]
            if !place.isEmpty { query.append((name: "after", value: place)) }
            if let reason { query.append((name: "reason", value: reason)) }
            let page = try await SignedRequest(method: "GET", path: "/apps/\(app.resolvedID)/dead-letters", query: query).object(
                from: url, as: app.signer)
            letters += page["dead_letters"]?.arrayValue ?? []
            after = page["next"]?.stringValue
        }
        return letters
    }
}
