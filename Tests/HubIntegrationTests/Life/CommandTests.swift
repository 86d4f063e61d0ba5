import Foundation
import HubCore
import Testing

/// The commands beside `serve`, as scripts use them: what they send and sign, their exit codes, and one line for every error.
@Suite struct CommandTests {
    /// EX_USAGE and EX_CONFIG of sysexits.h.
    private static let (usage, badConfiguration): (JSONValue, JSONValue) = (64, 78)

    private func run(_ scenario: String) async throws -> JSONValue {
        try await Stage.run { stage in
            try await stage.python("life/commands.py", scenario, hub: try await stage.hub(), environment: ["TANDEM": Place.tandem.path])
        }
    }

    /// Whether the error of a refusal has the word.
    private func says(_ refusal: JSONValue?, _ word: String) -> Bool {
        refusal?[1]?.stringValue?.contains(word) == true
    }

    @Test("publish reaches several channels, spares a socket, tells, reads standard input, and repeats without harm")
    func publish() async throws {
        let result = try await run("publish")
        #expect(result["plain"] == [:] && result["slash"] == [:] && result["data"] == ["{}", "-5"])
        #expect(
            result.at("several", "channels") == [
                "news": ["subscription_count": 2], "sport": ["subscription_count": 1], "nobody": ["subscription_count": 0],
            ])
        #expect(result["several_seen"] == [1, 2] && result["excluded"] == 0)
        #expect(result["piped"] == true, "byte for byte")
        #expect(result["once"] == [true, 1])

        let usage = result["usage"]?.arrayValue ?? []
        #expect(usage.count == 10 && usage.allSatisfy { $0[0] == Self.usage })
        #expect(result["configuration"]?[0] == Self.badConfiguration && says(result["configuration"], "TANDEM_URL"))
        let failed = result["failed"]?.arrayValue ?? []
        #expect(failed.map { $0[0] } == Array(repeating: 1, count: 5))
        for (refusal, word) in zip(failed, ["401", "404", "413", "is the hub running", "422"]) { #expect(says(refusal, word), "\(word)") }
    }

    @Test("what auth signs is accepted by the hub, for every kind of channel and for a sign-in")
    func auth() async throws {
        let result = try await run("auth")
        for name in ["private", "with_data", "encrypted", "cache"] { #expect(result[name] == [:], "\(name)") }
        let zoë: JSONValue = ["name": "Zoë ë"]
        for name in ["presence", "piped"] { #expect(result.at(name, "presence", "hash", "7") == zoë, "\(name)") }
        #expect(result.at("signed_in", "id") == "7" && result.at("as_user", "presence", "ids") == ["7"])
        let usage = result["usage"]?.arrayValue ?? []
        #expect(usage.count == 13 && usage.allSatisfy { $0[0] == Self.usage })
    }

    @Test(
        "auth signs what the vectors of docs/protocol.md, 4.2, say",
        arguments: [
            (["private-foobar"], ["auth": "58df8b0c36d6982b82c3ecf6b4662e34fe8c25bba48f5369f135bf843651c3a4"]),
            (
                ["presence-foobar", #"{"user_id":10,"user_info":{"name":"Mr. Channels"}}"#],
                [
                    "auth": "31935e7d86dba64c2a90aed31fdc61869f9b22ba9d8863bba239c03ca481bc80",
                    "channel_data": #"{"user_id":10,"user_info":{"name":"Mr. Channels"}}"#,
                ]
            ),
            (["presence-foobar", "--signed-in"], ["auth": "71506e66e7fdca106571b8999a849ad34245bc653772e51e0026c1a2475b92ba"]),
            (
                ["--user-data", #"{"id":"12345","watchlist":["7","8"]}"#],
                [
                    "auth": "d0c2a1e65febc0605103bb64f1b39762ad767efec4fc4ebb85be8fad6ed26c6b",
                    "user_data": #"{"id":"12345","watchlist":["7","8"]}"#,
                ]
            ),
            (
                ["private-encrypted-foobar", "--encryption-master-key", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="],
                [
                    "auth": "e6a18892d037c5d5e76a2265df4f086ffc38631605530dfd214aa5bff495f533",
                    "shared_secret": "g3Au6SZ+UCU+IMfFsFva0rq+Gi4tzSHR6WCcWZbS9sY=",
                ]
            ),
        ] as [([String], [String: String])])
    func vectors(arguments: [String], expected: [String: String]) async throws {
        try await Stage.run { stage in
            let app = ["--key", "278d425bdf160c739803", "--secret", "7ad3773142a6692b25b8"]
            let process = try stage.start(Place.tandem, ["auth", "1234.1234"] + arguments + app)
            #expect(try await process.waitForEnd().code == 0)
            var wanted = expected.mapValues(JSONValue.string)
            wanted["auth"] = .string("278d425bdf160c739803:\(expected["auth"] ?? "")")
            #expect(try JSONValue(parsing: process.output) == .object(wanted))
        }
    }

    @Test("api prints long answers whole, takes a body from standard input and any success, and fails with the hub's words")
    func api() async throws {
        let result = try await run("api")
        #expect(result["all"] == true && result["piped"] == "presence-quiz-monday")
        #expect(result["accepted"] == [0, "202 ACCEPTED\n", ""])
        #expect(result["missing"]?[0] == 1 && says(result["missing"], "404") && says(result["missing"], "nowhere"))
        #expect(result["unknown"]?[0] == 1 && says(result["unknown"], "404"))
    }

    @Test(
        "store copy says what is wrong with its addresses",
        arguments: [
            (["--from", "sqlite:a.db", "--to", "sqlite:b.db"], 64, "one is sqlite:PATH and the other postgres://"),
            (["--from", "a.db", "--to", "postgres://127.0.0.1/x"], 64, "one is sqlite:PATH"),
            (["--from", "sqlite:no.db", "--to", "postgres://u:geheim@127.0.0.1:1/x"], 1, "there is no store at no.db"),
        ] as [([String], Int32, String)])
    func storeCopy(arguments: [String], code: Int32, words: String) async throws {
        try await Stage.run { stage in
            let process = try stage.start(Place.tandem, ["store", "copy"] + arguments)
            #expect(try await process.waitForEnd().code == code)
            #expect(process.errors.contains(words) && !process.errors.contains("geheim") && process.output.isEmpty, "\(process.errors)")
        }
    }
}
