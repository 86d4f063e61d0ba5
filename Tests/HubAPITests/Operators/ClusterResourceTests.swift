import HubCore
import HubJSON
import Testing

@testable import HubAPI

@Suite("The nodes' route")
struct ClusterResourceTests {
    private struct Nodes: ClusterPort {
        var listings: [NodeListing]
        var isComplete = true

        func nodes() async -> (nodes: [NodeListing], isComplete: Bool) { (listings, isComplete) }
    }

    private func answer(_ nodes: Nodes, _ method: String = "GET", _ path: [String] = ["cluster"]) async throws -> JSONValue? {
        let request = HTTPRequest(method: method, path: "/operator/" + path.joined(separator: "/"), query: [], headers: [:], body: [])
        let response = try await ClusterResource(cluster: nodes).respond(to: request, path)
        return try response.map { try JSONValue(parsing: $0.body) }
    }

    private func node(_ name: String, definitions: String, partitions: Int64) -> NodeListing {
        let facts: [String: JSONValue] = ["definitions": .string(definitions), "partitions": .int(partitions), "of a later version": true]
        return NodeListing(node: name, isThis: name == "a", sinceBeat: 0.5, facts: facts)
    }

    @Test("adds up what the nodes hold, and says whether their definitions differ")
    func several() async throws {
        let same = try #require(
            await answer(Nodes(listings: [node("a", definitions: "x", partitions: 40), node("b", definitions: "x", partitions: 24)])))
        #expect(same["partitions"] == 64 && same["partitions_held"] == 64 && same["definitions_differ"] == false)
        #expect(same["complete"] == true)
        let names = Set(NodeListing.names + ["node", "this", "beat_age"])
        for listing in same["nodes"]?.arrayValue ?? [] { #expect(Set(listing.objectValue?.keys.map { $0 } ?? []) == names) }
        // A node that has just started has told nothing yet.
        let silent = NodeListing(node: "c", isThis: false, sinceBeat: nil, facts: [:])
        let nodes = [node("a", definitions: "x", partitions: 40), node("b", definitions: "y", partitions: 3), silent]
        let other = try #require(await answer(Nodes(listings: nodes)))
        #expect(other["partitions_held"] == 43 && other["definitions_differ"] == true)
        #expect(other["nodes"]?.arrayValue?.last?["definitions"] == .null)
        #expect(try await answer(Nodes(listings: [], isComplete: false))?["complete"] == false)
    }

    @Test("is read only, and is the only path")
    func paths() async throws {
        await #expect(throws: APIError.self) { _ = try await answer(Nodes(listings: []), "POST") }
        #expect(try await answer(Nodes(listings: []), "GET", ["cluster", "x"]) == nil)
        #expect(try await answer(Nodes(listings: []), "GET", ["apps"]) == nil)
    }
}
