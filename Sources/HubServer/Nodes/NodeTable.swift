internal import HubChannels
internal import HubCore
internal import PusherProtocol

/// The other nodes as the delivery task knows them: their loops have indexes behind those of this process in its book.
struct NodeTable {
    private struct Node {
        let loops: Range<Int>
        let process: ProcessTag
    }

    private let process: ProcessTag
    private let loopCount: Int
    private var nodes: [UInt64: Node] = [:]

    init(process: ProcessTag, loopCount: Int) {
        self.process = process
        self.loopCount = loopCount
    }

    var isEmpty: Bool { nodes.isEmpty }

    func contains(_ node: UInt64) -> Bool { nodes[node] != nil }

    /// All of them.
    var names: Set<UInt64> { Set(nodes.keys) }

    mutating func add(_ node: UInt64, _ hello: DeliveryMessage.Hello, loops: Range<Int>) {
        nodes[node] = Node(loops: loops, process: ProcessTag(random: hello.tag, hello.moreTag))
    }

    /// - Returns: the node's loops.
    mutating func remove(_ node: UInt64) -> Range<Int>? { nodes.removeValue(forKey: node)?.loops }

    func loops(of node: UInt64) -> Range<Int>? { nodes[node]?.loops }

    /// The connection as the book names it, and its socket id; nil: the node has no such loop, or is unknown.
    func known(_ connection: ConnectionID, of node: UInt64) -> (connection: ConnectionID, socket: SocketID)? {
        guard let known = nodes[node], connection.loop < known.loops.count else { return nil }
        let loop = known.loops.lowerBound + connection.loop
        return (
            ConnectionID(loop: loop, slot: connection.slot, generation: connection.generation), known.process.socketID(of: connection)
        )
    }

    /// The node of a connection of the book, and the connection as that node names it; nil: it is this process's own, or gone.
    func remote(_ connection: ConnectionID) -> (node: UInt64, connection: ConnectionID)? {
        if connection.loop < loopCount { return nil }
        guard let (node, known) = nodes.first(where: { $0.value.loops.contains(connection.loop) }) else { return nil }
        let loop = connection.loop - known.loops.lowerBound
        return (node, ConnectionID(loop: loop, slot: connection.slot, generation: connection.generation))
    }

    /// The node of a loop of the book, and the loop's index there; nil: it is this process's own, or gone.
    func remote(loop: Int) -> (node: UInt64, loop: Int)? {
        guard loop >= loopCount, let (node, known) = nodes.first(where: { $0.value.loops.contains(loop) }) else { return nil }
        return (node, loop - known.loops.lowerBound)
    }

    /// The connection with this socket id, on whatever node, as the book names it.
    func connection(of socket: SocketID) -> ConnectionID? {
        if let own = process.connection(of: socket) { return own }
        for (node, known) in nodes {
            if let connection = known.process.connection(of: socket) { return self.known(connection, of: node)?.connection }
        }
        return nil
    }

    /// The book's tickets, by node.
    /// - Parameter me: this run of this node.
    func byNode(_ tickets: [UInt64], me: UInt64) -> [UInt64: [UInt64]] {
        var byNode = [me: Array(tickets.prefix(loopCount))]
        for (node, known) in nodes { byNode[node] = Array(tickets[known.loops]) }
        return byNode
    }
}
