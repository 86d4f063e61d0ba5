import ArgumentParser
import HubCore
import HubJSON
import HubServer

/// `tandem cluster`: the nodes of a running hub.
struct Cluster: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "List the nodes of a running hub, with the partitions that each holds.",
        discussion: """
            Any node tells of all. The hub and this command need the same operator key: operator: of the configuration, or
            TANDEM_OPERATOR_KEY and TANDEM_OPERATOR_SECRET. LAG is the time that what the node says takes through Redis back to it, PROBE
            the time since that was last seen, BEAT the time since the node's last sign of life.

            tandem cluster --config /etc/tandem/tandem.yaml --url http://10.0.0.11:6001
            """)
    @OptionGroup var signer: OperatorOptions
    @OptionGroup var hub: HubAddress
    @Flag(name: .long, help: "Print JSON.") var json = false

    private static let columns = [
        ("NODE", "node"), ("ADDRESS", "address"), ("VERSION", "version"), ("CONNECTIONS", "connections"), ("PARTITIONS", "partitions"),
        ("LAG", "lag"), ("PROBE", "probe_age"), ("BEAT", "beat_age"), ("DEFINITIONS", "definitions"),
    ]

    func run() async throws {
        do throws(ServerError) {
            let answer = try await SignedRequest(method: "GET", path: "/operator/cluster").object(
                from: try hub.resolved(), as: try signer.resolved())
            print(json ? answer.text : Self.text(answer))
        } catch {
            throw Tandem.fail(error)
        }
    }

    private static func text(_ answer: JSONValue) -> String {
        let rows = (answer["nodes"]?.arrayValue ?? []).map { node -> JSONValue in
            var members = node.objectValue ?? [:]
            for name in ["lag", "probe_age", "beat_age"] {
                if let value = members[name], value != .null { members[name] = .string("\(value.text) s") }
            }
            if node["this"]?.boolValue == true { members["beat_age"] = "answers" }
            return .object(members)
        }
        var lines = [TextTable(columns, rows).text]
        let (all, held) = (answer["partitions"]?.intValue ?? 0, answer["partitions_held"]?.intValue ?? 0)
        if held != all { lines.append("warning: \(held) of \(all) partitions are held: they change hands, or a node has gone") }
        if answer["definitions_differ"]?.boolValue == true {
            lines.append("warning: the nodes' channel definitions differ: give all of them the same files, and send each a SIGHUP")
        }
        if answer["complete"]?.boolValue == false { lines.append("warning: Redis does not answer, so other nodes are missing here") }
        return lines.joined(separator: "\n")
    }
}
