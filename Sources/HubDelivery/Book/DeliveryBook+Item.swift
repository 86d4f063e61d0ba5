package import HubCore
package import HubDefinitions

extension DeliveryBook {
    /// One thing that the delivery task is told. Items are taken in the order of their arrival.
    package enum Item: Sendable {
        case publish(Publish)
        case report(loop: Int, Report)
        /// A source has reported everything that had come when it was asked. A loop of this process goes by its index, another node by the
        /// index of its first loop. `newcomers` are connections that the source has not let in yet.
        case heard(round: UInt64, source: Int, newcomers: Int)
        /// An app's receipt over HTTP.
        case received(AppReceipt)
        /// A device's app state over HTTP.
        case deviceState(app: String, user: String, device: String, AppState, keepsWorking: Bool)
        /// The hub signed a subscription of this socket for a participant's device; a nil channel is a sign-in.
        case signed(ConnectionID, socket: String, app: String, user: String, device: String, channel: String?)
        /// These users left the session's roster, or the session is over.
        case removed(Session, users: [String], isOver: Bool)
        /// The user joined the roster or has another role.
        case rosterChanged(app: String, session: String, user: String)
        /// New definitions are to be in force; `waiter` is told by `Effect.done`.
        case definitions(DefinitionSet, waiter: UInt64)
        /// An event that an earlier process left open.
        case recovered(RecoveredEvent)
        /// The same of another node, whose frames may have reached some loops.
        case takenOver(RecoveredEvent)
        /// Missed events of somebody were read; without items there were none, or the store failed.
        case replay(Replay)
        /// A wait may be over.
        case tick
    }

    /// A loop's report in delivery's words.
    package enum Report: Sendable {
        /// A subscription to a channel with a definition. A nil ticket means that the subscription keeps its ticket after a reload.
        /// `silenceMax` is the longest silence that the transport allows.
        case attached(
            ConnectionID, socket: String, app: String, channel: String, user: String?, isBrowser: Bool, ticket: UInt64?,
            silenceMax: Duration)
        /// A subscription that an earlier owner of the channel knew. It replays nothing.
        case present(
            ConnectionID, socket: String, app: String, channel: String, user: String?, isBrowser: Bool, ticket: UInt64,
            silenceMax: Duration, state: AppState, keepsWorking: Bool)
        /// The loop has reported everybody who is present, up to this ticket.
        case presentUpTo(ticket: UInt64)
        case detached(ConnectionID, channel: String)
        case state(ConnectionID, AppState, keepsWorking: Bool)
        /// `mayReturn`: the end was no goodbye, so the device counts as on its way back.
        case disconnected(ConnectionID, socket: String, mayReturn: Bool)
        /// A PING with this cursor went to every subscriber after these events.
        case pinged(events: [UInt64], cursor: UInt64)
        /// A PING with this cursor went to the connections of `Effect.prove`.
        case proving(event: UInt64, cursor: UInt64)
        /// Replays went out with a PING after them. Cursor 0: the subscription had ended.
        case replayed(ConnectionID, tokens: [UInt64], cursor: UInt64)
        /// The peer has read everything before the PING with this cursor.
        case receipt(ConnectionID, cursor: UInt64)
        /// Every subscription of the loop was reported under the new definitions.
        case definitionsRead
    }

    /// A publish without its payload.
    package struct Publish: Sendable {
        package struct Request: Sendable {
            /// Event name.
            package var name: String
            package var channels: [String]
            /// The connection that published over its own socket.
            package var excluded: ConnectionID?

            package init(name: String, channels: [String], excluded: ConnectionID? = nil) {
                self.name = name
                self.channels = channels
                self.excluded = excluded
            }
        }

        /// Names the publish to the caller.
        package var id: UInt64
        package var app: String
        package var requests: [Request]
        package var purpose: PublishPurpose

        package init(id: UInt64, app: String, requests: [Request], purpose: PublishPurpose = .publish) {
            self.id = id
            self.app = app
            self.requests = requests
            self.purpose = purpose
        }
    }

    // MARK: Reads

    /// Data that the caller reads before `take`.
    package enum Need: Sendable {
        /// One `EventInput` per event, in order.
        case events([EventNeed])
        /// The user's place on the roster; the session as well where `withSession` says so.
        case person(app: String, session: String, user: String, withSession: Bool)
    }

    /// An event that has a definition.
    package struct EventNeed: Sendable {
        /// Index of the request in the publish.
        package var request: Int
        package var channel: String
        package var definition: ChannelDefinition
        package var placeholders: ChannelPattern.Match
        package var event: EventDefinition
    }

    /// Everything that deciding one event takes from outside.
    package struct EventInput: Sendable {
        package var audience: EventAudience
        /// The publisher's data string.
        package var content: String
        /// The same, parsed; null for text that is not JSON.
        package var data: JSONValue
        /// At least `EventID.randomByteCount` bytes.
        package var random: [UInt8]
        /// Time in the event's id, in milliseconds since 1970; nil: now. A publish that may be taken twice names it, so that both events
        /// have one id.
        package var idTime: Int64?

        package init(audience: EventAudience, content: String, data: JSONValue, random: [UInt8], idTime: Int64? = nil) {
            self.audience = audience
            self.content = content
            self.data = data
            self.random = random
            self.idTime = idTime
        }
    }

    /// The caller's answer to a `Need`.
    package enum Answer: Sendable {
        case nothing
        case events([EventInput])
        /// The audience is missing or unreadable.
        case refused(PublishRefusal)
        /// Nil: not there.
        case person(session: Session?, Participant?)
        /// The directory failed, at the latest for the participant.
        case unreadable(session: Session?)
    }

    /// Data that `take` needs for the item; nil: none. Costs one match of the channel's name per event.
    package mutating func need(of item: Item) -> Need? {
        switch item {
        case .publish(let publish):
            if change != nil { return nil }
            let events = eventNeeds(of: publish)
            return events.isEmpty ? nil : .events(events)
        case .report(_, .attached(_, _, let app, let channel, let user, _, let ticket, _)):
            guard let (definition, placeholders) = definitions.match(channel: channel), !definition.roles.isEmpty,
                let user = user ?? placeholders.user, let session = placeholders.session,
                ticket != nil || change?.keeps(definition, of: channel) != true
            else { return nil }
            return .person(app: app, session: session, user: user, withSession: false)
        case .report(_, .present(_, _, let app, let channel, let user, _, _, _, _, _)):
            guard let (definition, placeholders) = definitions.match(channel: channel), !definition.roles.isEmpty,
                let user = user ?? placeholders.user, let session = placeholders.session
            else { return nil }
            return .person(app: app, session: session, user: user, withSession: false)
        case .rosterChanged(let app, let session, let user): return .person(app: app, session: session, user: user, withSession: true)
        default: return nil
        }
    }

    func eventNeeds(of publish: Publish) -> [EventNeed] {
        var events: [EventNeed] = []
        for (index, request) in publish.requests.enumerated() {
            for channel in request.channels {
                guard let (definition, placeholders) = definitions.match(channel: channel), let event = definition.events[request.name]
                else { continue }
                events.append(EventNeed(request: index, channel: channel, definition: definition, placeholders: placeholders, event: event))
            }
        }
        return events
    }
}
