package import HubCore

/// A node as it tells of itself, and as the others see it.
package struct NodeListing: Sendable {
    /// Tells the node's run from all others; nil: a single node.
    package var node: String?
    /// Whether this node answers the request.
    package var isThis: Bool
    /// Seconds since the last beat that Redis has of it; nil: unknown, or a single node.
    package var sinceBeat: Double?
    /// Members of `NodeListing.names`, as the node wrote them.
    package var facts: [String: JSONValue]

    /// Names of the facts that a node tells of itself.
    package static let names = [
        "address", "version", "started_at", "connections", "partitions", "partition_list", "definitions", "lag", "probe_age",
    ]

    package init(node: String?, isThis: Bool, sinceBeat: Double?, facts: [String: JSONValue]) {
        self.node = node
        self.isThis = isThis
        self.sinceBeat = sinceBeat
        self.facts = facts
    }
}

/// Tells of the hub's nodes. Any thread.
package protocol ClusterPort: Sendable {
    /// All nodes that beat, by name.
    /// - Returns: whether others may be missing, because Redis does not answer.
    func nodes() async -> (nodes: [NodeListing], isComplete: Bool)
}

/// `/operator/cluster`: the nodes of the hub.
struct ClusterResource: Sendable {
    let cluster: any ClusterPort

    /// Nil if the path is not this route.
    func respond(to request: HTTPRequest, _ path: [String]) async throws -> HTTPResponse? {
        guard path == ["cluster"] else { return nil }
        guard request.method == "GET" || request.method == "HEAD" else {
            throw APIError.methodNotAllowed(request.method, allowed: ["GET", "HEAD"])
        }
        return await answer()
    }

    func answer() async -> HTTPResponse {
        let (nodes, isComplete) = await cluster.nodes()
        let definitions = Set(nodes.compactMap { $0.facts["definitions"]?.stringValue })
        return .json([
            "nodes": .array(nodes.map(Self.answer)), "complete": .bool(isComplete), "definitions_differ": .bool(definitions.count > 1),
            "partitions": .int(Int64(Partition.count)),
            "partitions_held": .int(nodes.reduce(0) { $0 + ($1.facts["partitions"]?.intValue ?? 0) }),
        ])
    }

    private static func answer(_ listing: NodeListing) -> JSONValue {
        var members: [String: JSONValue] = [
            "node": JSONValue(orNull: listing.node), "this": .bool(listing.isThis),
            "beat_age": listing.sinceBeat.map { .double($0) } ?? .null,
        ]
        for name in NodeListing.names { members[name] = listing.facts[name] ?? .null }
        return .object(members)
    }
}
