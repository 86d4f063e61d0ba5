internal import HubCore
internal import HubDefinitions
internal import HubDelivery
internal import PusherProtocol

/// `POST /me/receipts`: an app confirms an event, or its notification.
struct ReceiptsResource: Sendable {
    let store: any DeliveryStore
    let directory: any PeopleStore
    let delivery: any AttendancePort
    let definitions: @Sendable () -> DefinitionSet

    /// Both settle the recipient, because an opened notification has arrived.
    private enum Status: String, CaseIterable {
        case received, opened
    }

    private static let idCharactersMax = 64

    /// - Parameter reachesPerson: false: the bearer may confirm only events of the session's own channels.
    func respond(to request: HTTPRequest, _ bearer: Bearer, reachesPerson: Bool) async throws -> HTTPResponse {
        let body = try JSONBody(request.body)
        guard let status = try body.choice("status", of: Status.allCases) else {
            throw APIError(400, "status is missing: send \"received\" or \"opened\"")
        }
        let (app, user) = (bearer.app.id, bearer.participant.user)
        guard let (event, isOfNotification) = try await eventID(body, app: app, user: user),
            let target = try await store.receiptTarget(event: event, app: app, user: user),
            reachesPerson ? true : try await isOfSession(target.event.channel, bearer)
        else {
            // The same answer for an unknown id and for another person's.
            throw APIError(404, "no event of yours has this id: send the nid of a notification, or the event_id of an event, as it came")
        }
        await delivery.received(
            AppReceipt(
                event: event, app: app, channel: target.event.channel, user: user, device: bearer.device, recipient: target.recipient,
                isOfNotification: isOfNotification))
        return .json([
            "event_id": .string(event),
            "nid": .string(NotificationID.make(event: event, app: app, user: user)),
            "status": .string(status.rawValue),
        ])
    }

    private func isOfSession(_ channel: String, _ bearer: Bearer) async throws -> Bool {
        let participant = bearer.participant
        guard let session = try await directory.session(app: bearer.app.id, id: participant.session) else { return false }
        return SessionChannel(definitions: definitions()).isOpen(
            channel, session: session.id, definition: session.definition, user: participant.user)
    }

    private func eventID(_ body: JSONBody, app: String, user: String) async throws -> (id: String, isOfNotification: Bool)? {
        if let nid = try body.string("nid", charactersMax: Self.idCharactersMax) {
            return try await store.eventID(nid: nid.lowercased(), app: app, user: user).map { ($0, true) }
        }
        guard let event = try body.string("event_id", charactersMax: Self.idCharactersMax) else {
            throw APIError(400, "nid is missing: send the nid of the notification, or the event_id of the event")
        }
        return (event.lowercased(), false)
    }
}
