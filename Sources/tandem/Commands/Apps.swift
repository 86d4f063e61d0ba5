import ArgumentParser
import HubCore
import HubJSON
import HubServer

/// `tandem apps`: apps of a running hub, changed without a restart.
struct Apps: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "List, add, change and remove the apps of a running hub.",
        discussion: """
            The hub and this command need the same operator key: operator: of the configuration, or TANDEM_OPERATOR_KEY and
            TANDEM_OPERATOR_SECRET. Apps of the configuration file are only listed: change them there, and send the hub a SIGHUP.

            tandem apps add max_connections=500 client_events=false
            tandem apps limit 7 max_connections=1000
            tandem apps rotate 7 --keep 2d
            """,
        subcommands: [List.self, Add.self, Rotate.self, Limit.self, Enable.self, Disable.self, Remove.self])

    /// Options of all subcommands.
    struct Options: ParsableArguments {
        @OptionGroup var signer: OperatorOptions
        @OptionGroup var hub: HubAddress
        @Flag(name: .long, help: "Print JSON.") var json = false

        func ask(_ method: String, _ path: String = "", body: JSONValue? = nil) async throws(ServerError) -> JSONValue {
            try await SignedRequest(method: method, path: "/operator/apps\(path)", body: body?.serialized() ?? [])
                .object(from: try hub.resolved(), as: try signer.resolved())
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List all apps.", discussion: "tandem apps list --config /etc/tandem/tandem.yaml")
        @OptionGroup var options: Options

        private static let columns = [
            ("APP", "id"), ("SOURCE", "source"), ("IN FORCE", "in_force"), ("ENABLED", "enabled"), ("CONNECTIONS", "connections"),
            ("MAXIMUM", "max_connections"), ("KEY", "first_key"), ("KEYS", "key_count"),
        ]

        func run() async throws {
            do {
                let answer = try await options.ask("GET")
                if options.json { return print(answer.text) }
                let rows = (answer["apps"]?.arrayValue ?? []).map { app -> JSONValue in
                    var members = app.objectValue ?? [:]
                    let keys = app["keys"]?.arrayValue ?? []
                    members["first_key"] = keys.first?["key"]
                    members["key_count"] = .int(Int64(keys.count))
                    return .object(members)
                }
                print(TextTable(Self.columns, rows).text)
            } catch {
                throw Tandem.fail(error)
            }
        }
    }

    struct Add: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Add an app, and print its key and secret.", discussion: "The secret is not shown again. tandem apps add --id 7")
        @OptionGroup var options: Options
        @Option(name: .long, help: "Id of the app, in digits; the next free one when not given.") var id: String?
        @Argument(help: ArgumentHelp("Settings by their names in the configuration file; times in seconds.", valueName: "name=value"))
        var settings: [String] = []

        func run() async throws {
            var body = try AppSettings.object(settings)
            if let id { body["id"] = .string(id) }
            do {
                let answer = try await options.ask("POST", body: .object(body))
                print(options.json ? answer.text : AppSettings.credentials(answer))
            } catch {
                throw Tandem.fail(error)
            }
        }
    }

    struct Rotate: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Give an app a new key, and print it with its secret.",
            discussion:
                "Keys before it stay valid for the stated time, for signatures and participant tokens alike. tandem apps rotate 7 --keep 2d"
        )
        @OptionGroup var options: Options
        @Option(name: .long, help: "How long the keys before stay valid: seconds, or a number with m, h or d; 25h when not given.")
        var keep: String?
        @Argument(help: "Id of the app.") var app: String

        func run() async throws {
            var body: [String: JSONValue] = [:]
            if let keep {
                guard let seconds = AppSettings.seconds(keep) else {
                    throw ValidationError("--keep is seconds, or a number with m, h or d, such as 36h; it was '\(keep)'")
                }
                body["keep_seconds"] = .int(seconds)
            }
            do {
                let answer = try await options.ask("POST", "/\(app)/rotate", body: .object(body))
                if options.json { return print(answer.text) }
                print(AppSettings.credentials(answer))
                for key in (answer["keys"]?.arrayValue ?? []).dropFirst() {
                    print("valid until \(key["expires_at"]?.stringValue ?? "-"): \(key["key"]?.stringValue ?? "-")")
                }
            } catch {
                throw Tandem.fail(error)
            }
        }
    }

    struct Limit: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Change settings of an app.", discussion: "tandem apps limit 7 max_connections=1000 presence_members_max=50")
        @OptionGroup var options: Options
        @Argument(help: "Id of the app.") var app: String
        @Argument(help: ArgumentHelp("Settings by their names in the configuration file; times in seconds.", valueName: "name=value"))
        var settings: [String]

        func run() async throws { try await AppSettings.change(options, app, try AppSettings.object(settings)) }
    }

    struct Enable: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Let an app's clients and backends in again.", discussion: "tandem apps enable 7")
        @OptionGroup var options: Options
        @Argument(help: "Id of the app.") var app: String

        func run() async throws { try await AppSettings.change(options, app, ["enabled": true]) }
    }

    struct Disable: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Close an app's connections with 4003, and refuse its requests.", discussion: "tandem apps disable 7")
        @OptionGroup var options: Options
        @Argument(help: "Id of the app.") var app: String

        func run() async throws { try await AppSettings.change(options, app, ["enabled": false]) }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove an app with its sessions, participants, devices and scheduled events.",
            discussion: """
                Its connections are closed with 4001. Events, trails and dead letters go with their retention. Nothing brings the app
                back, and its id stays taken. Without --yes the command only says how many connections the app has.

                tandem apps remove 7 --yes
                """)
        @OptionGroup var options: Options
        @Flag(name: .long, help: "Remove it.") var yes = false
        @Argument(help: "Id of the app.") var app: String

        func run() async throws {
            do throws(ServerError) {
                if !yes {
                    let connections = try await options.ask("GET", "/\(app)")["connections"]?.intValue ?? 0
                    throw ServerError(
                        .usage, "app \(app) has \(connections) connections, which would be closed: add --yes to remove the app")
                }
                let answer = try await options.ask("DELETE", "/\(app)")
                if options.json { return print(answer.text) }
                let counts = ["connections", "sessions", "participants", "devices", "scheduled"].map { name in
                    "\(answer[name]?.intValue ?? 0) \(name)"
                }
                print("removed app \(app): \(counts.joined(separator: ", "))")
            } catch {
                throw Tandem.fail(error)
            }
        }
    }
}
