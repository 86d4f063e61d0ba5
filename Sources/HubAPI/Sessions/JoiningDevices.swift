internal import HubCore
internal import HubCrypto
internal import HubDefinitions
internal import HubDelivery

/// The device of a join: its row, and the token stored there.
struct JoiningDevices: Sendable {
    let shelf: DeviceRegistry

    static let randomByteCount = 8

    /// Stores a usable device token, and returns the name of the participant's device either way. A bad token never fails a join,
    /// because people must get in without notifications too.
    /// - Parameters:
    ///   - id: as the app sent it; nil: none.
    ///   - installation: of that id, if it is a secret.
    func register(_ body: JSONBody, id: String?, _ installation: InstallationID?, _ participant: Participant) async throws -> String {
        let registration = try? DeviceRegistration(body, names: .join)
        guard let registration, let given = registration.token else {
            if let installation { try await adopt(installation, by: participant) }
            let platform = try? DeviceRegistration.platform(body, names: .join)
            // A unique name: another person with the same e-mail must not get a token for this device.
            return installation?.handle ?? id ?? Self.unnamed(platform, SecureRandom.bytes(Self.randomByteCount))
        }
        // One spelling per token, as stored.
        let token = DeviceToken.isHexBytes(given) ? given.lowercased() : given
        let digest = Digest.sha256(Array(token.utf8)).prefix(Self.randomByteCount)
        let device = installation?.handle ?? id ?? Self.unnamed(registration.inferredPlatform, Array(digest))
        let owner = DeviceRegistration.Owner(app: participant.app, user: participant.user, device: device)
        // The same phone under another name keeps its settings, above all the consent.
        let known = try await shelf.directory.devices(app: participant.app, user: participant.user)
        let former = known.first { $0.id == device } ?? known.first { $0.token == token }
        do {
            _ = try await shelf.put(
                registration, of: owner, by: .participant(session: participant.session), former: former, keepsFormer: true)
        } catch is APIError {
            // The token does not fit its provider; an earlier token stays.
        } catch PeopleStoreError.tooManyDevices {
            // All other devices work; this one is reached over its socket.
        }
        return device
    }

    /// Moves the installation's earlier token, of any session of the app, to this participant.
    private func adopt(_ installation: InstallationID, by participant: Participant) async throws {
        guard var device = try await shelf.directory.installation(app: participant.app, handle: installation.handle),
            device.user != participant.user
        else { return }
        device.user = participant.user
        do {
            _ = try await shelf.directory.putDevice(
                device, by: .participant(session: participant.session), perUserMax: DeviceRegistry.devicesPerUserMax)
        } catch PeopleStoreError.tooManyDevices {
            return
        }
        _ = try await shelf.directory.deleteDevice(app: participant.app, user: installation.owner, id: installation.handle)
    }

    /// - Parameter suffix: distinguishes the person's devices without an id.
    static func unnamed(_ platform: DevicePlatform?, _ suffix: [UInt8]) -> String {
        [DeviceWriter.unnamedPrefix, platform?.rawValue, Hex.encode(suffix)].compactMap(\.self).joined(separator: "-")
    }
}
