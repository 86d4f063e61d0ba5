internal import HubAPI
internal import HubCore
internal import HubDefinitions
internal import HubDelivery
internal import Logging
internal import PusherProtocol

/// Delivery as a part of several nodes.
extension DeliveryService {
    /// Parts of a hub of several nodes.
    struct Several: Sendable {
        let nodes: NodeDelivery
        let pushes: NodePushQueue
        /// Events are numbered from here on this node.
        let firstNumber: UInt64
        /// Reads open events of partitions that become this node's.
        let recovery: @Sendable (PartitionSet) async throws -> [RecoveredEvent]

        /// Whether the owners of the channels have to decide, perhaps this node among them.
        func isForOthers(_ command: PublishCommand) -> Bool {
            switch command.purpose {
            case .trial, .forecast: false
            case .publish: true
            // Its row is read by the owner of the first channel.
            case .scheduled: !isOwn(command, nodes.ownedNow)
            }
        }

        func isOwn(_ command: PublishCommand, _ owned: PartitionSet) -> Bool {
            command.requests.allSatisfy { $0.channels.allSatisfy { owned.contains(app: command.app.id, channel: $0.text) } }
        }
    }

    /// One thing that the delivery task hears from the nodes, this one included.
    enum NodeWord: Sendable {
        case joined(node: UInt64, DeliveryMessage.Hello)
        case left(node: UInt64)
        /// Words about dead nodes may be missing, and these nodes have shown up since.
        case remained(Set<UInt64>)
        /// Messages of the node are missing.
        case gap(node: UInt64)
        case reports(node: UInt64, loop: Int, [NodeLoopReport])
        case publish(ForwardedPublish, of: UInt64)
        case wasLetOut(node: UInt64, number: UInt64, tickets: [UInt64])
        case heard(node: UInt64, round: UInt64, newcomers: Int)
        case attended(node: UInt64, round: UInt64)
        /// The nodes had their time to say who is present.
        case attendedNoMore(round: UInt64)
        case order(DeliveryMessage.AttendanceOrder, done: @Sendable () -> Void)
        case presence(app: String, channel: String, users: [String], answer: @Sendable ([String: ParticipantPresence]) -> Void)
        case forecast(ForwardedForecast, answer: @Sendable (ForecastAnswer) -> Void)
        case pushes(events: [String])
        /// A publish under a key is decided.
        case keyed(String, ForwardedPublish, PublishedPart)
        /// The partitions of this node have changed.
        case owned(PartitionSet, done: @Sendable () -> Void = {})
        /// The open events of a takeover are in the inbox.
        case taken(round: UInt64)
        /// This node had been declared dead, and begins as another run.
        case restarted
    }

    /// Reads the open pushes and events of partitions that have become this node's, for the delivery task.
    /// - Parameter isAlone: no other node is there that could have let the events out.
    func read(_ partitions: PartitionSet, of round: UInt64, isAlone: Bool) async {
        guard let several else { return }
        await several.pushes.takeOver(partitions)
        do {
            let events = try await several.recovery(partitions)
            let now = time.wallMilliseconds
            for event in events {
                // Frames of long ago reached who was there, and the others get replays and pushes.
                let isFresh = !isAlone && event.committedAt > now - Self.freshMilliseconds
                inbox.post(.book(isFresh ? .takenOver(event) : .recovered(event)))
            }
            post(.taken(round: round))
        } catch {
            logger.error("open events could not be read; trying again", metadata: ["error": "\(error)"])
            do { try await Task.sleep(for: .milliseconds(500)) } catch { return }
            await read(partitions, of: round, isAlone: isAlone)
        }
    }

    /// Milliseconds for which every node remembers the events that it let out, less some for the takeover.
    private static let freshMilliseconds = NodeDelivery.rememberedMilliseconds - 10_000

    /// Takes a word of the nodes. A publish beyond the bound is dropped, and its sender leaves it to the store. The sender of a forecast
    /// beyond it gives up.
    func post(_ word: NodeWord) {
        switch word {
        case .publish, .forecast: _ = inbox.offer(.node(word), limit: DeliveryBook.waitingMax)
        // Its sender waits for it, also while the hub stops.
        case .order(_, let done): if !inbox.offer(.node(word), limit: .max) { done() }
        default: inbox.post(.node(word))
        }
    }
}

extension DeliveryMessage.AttendanceOrder {
    static func removed(_ session: Session, users: [String], isOver: Bool) -> Self {
        .removed(app: session.app, session: session.id, definition: session.definition, users: users, isOver: isOver)
    }
}
