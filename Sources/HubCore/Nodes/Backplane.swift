/// The way between the nodes of a hub, as the engines use it. A hub of one node has none. Any thread.
///
/// Wishes about members and subscribers go out with the next `flush`. Only the newest wish of a user or a channel counts.
package protocol Backplane: Sendable {
    /// Bytes of a message.
    var messageBytesMax: Int { get }
    /// Version in which messages are written now: the highest that all living nodes read.
    var messageVersion: UInt8 { get }
    /// This run of the node, unlike all others.
    var node: UInt64 { get }
    /// The nodes whose beats are there, this one included.
    var living: Set<UInt64> { get }

    /// Declares nodes dead that have never beaten in the memory that is read now. Nothing happens to one that has.
    func giveUp(_ nodes: Set<UInt64>)
    /// Index of the server that an app's messages and members are at. The same on all nodes.
    func shard(of app: String) -> Int

    /// Sends a message to all nodes, this one included. All of them read the messages of an app in one order.
    /// - Parameters:
    ///   - message: at least one byte, at most `messageBytesMax`.
    ///   - app: id of the app that it concerns.
    ///   - isKept: it waits for as long as it takes, because the others go by it. Otherwise it fails after a second and a half.
    ///   - done: called once, on any thread. True: all nodes will read it. False: they may, or may not.
    func send(_ message: [UInt8], app: String, isKept: Bool, _ done: @escaping @Sendable (Bool) -> Void)
    /// The node has its first connection of the user in the place, or another info of theirs. The answer names the ticket.
    func join(_ place: MemberPlace, user: String, info: [UInt8]?, membersMax: Int, ticket: UInt64)
    /// The node's last connection of the user in the place is gone.
    /// - Parameters:
    ///   - lingerMilliseconds: time until the others are told, in a large channel; 0: none.
    ///   - lingersAlways: also in a small one, because the user will be back on another node.
    func leave(_ place: MemberPlace, user: String, lingerMilliseconds: Int, lingersAlways: Bool)
    /// The node knew of the member in a memory that was lost, and the next one does not have the member. Somebody says so once.
    func missed(_ place: MemberPlace, user: String)
    /// The node knew of the member in a memory that was lost, and the next one takes them for somebody new.
    func known(_ place: MemberPlace, user: String)
    /// The node has another number of subscribers.
    /// - Parameter tells: announcements that somebody wants.
    func setSubscribers(_ place: MemberPlace, _ count: Int, tells: SubscriberNews)
    /// Asks for the place's members. The answer names the ticket.
    func list(_ place: MemberPlace, ticket: UInt64)
    /// Asks which of the users are members of the place. The answer names the ticket.
    func online(_ users: [String], in place: MemberPlace, ticket: UInt64)
    /// Lets the wishes of a turn go out.
    func flush()

    /// Asks for one more connection of an app with a limit.
    /// - Parameter done: called once, on any thread: whether it is granted; nil: no answer in time.
    func admit(app: String, limit: Int, _ done: @escaping @Sendable (Bool?) -> Void)
    /// Counts one more connection of an app without a limit.
    func count(app: String)
    /// A connection is gone that was granted or counted.
    func release(app: String)

    /// The occupied channels of the app whose names begin with `prefix`, in no order; nil: no answer in time.
    /// - Parameter countsUsers: whether the numbers of users are asked for.
    func channels(app: String, prefix: String, countsUsers: Bool) async -> [ChannelCounts]?
    /// The numbers of those of the places that are occupied; nil: no answer in time.
    func channels(_ places: [MemberPlace]) async -> [ChannelCounts]?
    /// The members of the place; nil: no answer in time.
    func users(_ place: MemberPlace) async -> [String]?
    /// Place of the last message at the app's server; nil: no answer in time.
    func lastMessage(app: String) async -> StreamID?
    /// The members of the place, each with the nodes that have connections of theirs; nil: no answer in time.
    func members(_ place: MemberPlace) async -> [String: [UInt64]]?
    /// Connections of the app on all nodes; nil: no answer in time.
    func connections(app: String) async -> Int?
}
