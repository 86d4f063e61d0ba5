internal import HubCore
internal import HubDelivery

/// `POST /apps/{app}/devices`: many registrations, changes and removals in one request and one transaction, with an outcome per item.
struct BulkDevicesResource: Sendable {
    let shelf: DeviceRegistry

    /// Items of one request.
    static let itemsMax = 1_000

    /// Result of one item.
    private enum Outcome {
        case put(Device)
        case remove(DeviceRegistration.Owner)
        case refused(APIError)
    }

    /// A refused item does not affect the others. Only a failure of the store refuses all of them.
    func respond(to request: HTTPRequest, app: String) async throws -> HTTPResponse {
        guard request.method == "POST" else { throw APIError.methodNotAllowed(request.method, allowed: ["POST"]) }
        guard let items = try JSONBody(request.body).array("devices") else {
            throw APIError(400, "devices is missing: send an array of registrations, each with user and device")
        }
        guard items.count <= Self.itemsMax else {
            throw APIError(413, "devices has \(items.count) elements: send at most \(Self.itemsMax) in one request")
        }
        let owners = items.map { item in
            Result { () throws(APIError) in try Self.owner(JSONBody(item, named: "an element of devices"), app: app) }
        }
        let users = Set(owners.compactMap { try? $0.get().user })
        var devices = try await shelf.directory.devices(app: app, users: Array(users))
        var changes: [DeviceChange] = []
        var outcomes: [Outcome] = []
        for (item, owner) in zip(items, owners) {
            do throws(APIError) {
                let owner = try owner.get()
                let body = try JSONBody(item, named: "an element of devices")
                let former = devices[owner.user]?.first { $0.id == owner.device }
                devices[owner.user]?.removeAll { $0.id == owner.device }
                if try body.bool("delete") == true {
                    outcomes.append(.remove(owner))
                    changes.append(.remove(app: app, user: owner.user, id: owner.device))
                } else {
                    let device = try self.device(body, of: owner, former: former)
                    // A later element may name the same device.
                    devices[owner.user, default: []].append(device)
                    outcomes.append(.put(device))
                    changes.append(.put(device))
                }
            } catch {
                outcomes.append(.refused(error))
            }
        }
        assert(outcomes.count == items.count && changes.count <= items.count, "\(items.count) items have \(outcomes.count) outcomes")
        _ = try await shelf.directory.putDevices(changes, by: .backend, perUserMax: DeviceRegistry.devicesPerUserMax)
        return .json(["devices": .array(outcomes.map(Self.answer))])
    }

    private static func owner(_ body: JSONBody, app: String) throws(APIError) -> DeviceRegistration.Owner {
        DeviceRegistration.Owner(
            app: app, user: try Field.userID(body.requiredString("user", charactersMax: .max)),
            device: try Field.deviceID(body.requiredString("device", charactersMax: .max)))
    }

    /// Missing members of an existing device keep their values, so that a token can be changed alone.
    private func device(_ body: JSONBody, of owner: DeviceRegistration.Owner, former: Device?) throws(APIError) -> Device {
        let registration = try DeviceRegistration(body)
        if former == nil { try registration.requireToken() }
        return try registration.device(
            of: owner, former: former, environment: shelf.defaultEnvironment, now: shelf.time.wallMilliseconds)
    }

    private static func answer(_ outcome: Outcome) -> JSONValue {
        switch outcome {
        case .refused(let error): ["status": .int(Int64(error.status)), "error": .string(error.sentence)]
        case .remove(let owner): ["status": 200, "user": .string(owner.user), "device": .string(owner.device)]
        case .put(let device):
            ["status": 200, "user": .string(device.user), "device": .string(device.id), "provider": .string(device.provider.rawValue)]
        }
    }
}
