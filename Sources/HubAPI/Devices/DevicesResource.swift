internal import HubCore
internal import HubDelivery

/// `PUT|PATCH|GET|DELETE /apps/{app}/users/{user}/devices/{device}` and `GET /apps/{app}/users/{user}/devices`: a backend
/// registers its users' devices, independent of any session.
struct DevicesResource: Sendable {
    let shelf: DeviceRegistry

    func respondToList(_ request: HTTPRequest, app: String, user: String) async throws -> HTTPResponse {
        guard request.method == "GET" else { throw APIError.methodNotAllowed(request.method, allowed: ["GET"]) }
        let devices = try await shelf.directory.devices(app: app, user: try Field.userID(user))
        return .json(["devices": .array(devices.map(DeviceRegistry.answer))])
    }

    func respond(to request: HTTPRequest, app: String, user: String, device: String) async throws -> HTTPResponse {
        let owner = DeviceRegistration.Owner(app: app, user: try Field.userID(user), device: try Field.deviceID(device))
        switch request.method {
        case "GET":
            return .json(DeviceRegistry.answer(try await existing(owner)))
        case "PUT":
            let registration = try DeviceRegistration(JSONBody(request.body))
            try registration.requireToken()
            if registration.platform == nil { throw APIError(400, "platform is missing: send \"android\", \"ios\" or \"web\"") }
            let former = try await shelf.stored(owner)
            return .json(
                DeviceRegistry.answer(try await shelf.put(registration, of: owner, by: .backend, former: former, keepsFormer: false)))
        case "PATCH":
            let registration = try DeviceRegistration(JSONBody(request.body))
            let former = try await existing(owner)
            return .json(
                DeviceRegistry.answer(try await shelf.put(registration, of: owner, by: .backend, former: former, keepsFormer: true)))
        case "DELETE":
            // Deleting a missing device succeeds, so that a logout can be repeated.
            try await shelf.delete(owner)
            return .json([:])
        default: throw APIError.methodNotAllowed(request.method, allowed: ["GET", "PUT", "PATCH", "DELETE"])
        }
    }

    private func existing(_ owner: DeviceRegistration.Owner) async throws -> Device {
        guard let device = try await shelf.stored(owner) else {
            let (user, device) = (APIError.quoted(owner.user), APIError.quoted(owner.device))
            throw APIError(404, "the user \(user) has no device \(device): register it with PUT")
        }
        return device
    }
}
