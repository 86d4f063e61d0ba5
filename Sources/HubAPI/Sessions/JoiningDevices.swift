internal import HubCore
internal import HubCrypto
internal import HubDelivery

/// The device that somebody joins with: which row it is, and the token that is stored there.
struct JoiningDevices: Sendable {
    let shelf: DeviceShelf

    static let randomByteCount = 8

    /// Stores the device token if there is a usable one, and returns the name of the participant's device either way. A join
    /// never fails for what it says of the token, because people must get in without notifications too.
    /// - Parameters:
    ///   - id: as the app sent it; nil: none.
    ///   - installation: of that id, where it is a secret.
    func register(_ body: JSONBody, id: String?, _ installation: InstallationID?, _ participant: Participant) async throws -> String {
        let registration = try? DeviceRegistration(body, names: .join)
        guard let registration, let given = registration.token else {
            if let installation { try await adopt(installation, by: participant) }
            let platform = try? DeviceRegistration.platform(body, names: .join)
            // A name of its own: somebody else who knows the e-mail must not get a token for this device.
            return installation?.handle ?? id ?? Self.unnamed(platform, SecureRandom.bytes(Self.randomByteCount))
        }
        // One spelling for one token, as it is stored.
        let token = DeviceToken.isHexBytes(given) ? given.lowercased() : given
        let digest = Digest.sha256(Array(token.utf8)).prefix(Self.randomByteCount)
        let device = installation?.handle ?? id ?? Self.unnamed(registration.inferredPlatform, Array(digest))
        let owner = DeviceRegistration.Owner(app: participant.app, user: participant.user, device: device)
        // The same phone under another name keeps what it said before, of consent above all.
        let known = try await shelf.directory.devices(app: participant.app, user: participant.user)
        let former = known.first { $0.id == device } ?? known.first { $0.token == token }
        do {
            _ = try await shelf.put(
                registration, of: owner, by: .participant(session: participant.session), former: former, keepsFormer: true)
        } catch is APIError {
            // The token does not fit the provider that came with it; an earlier one stays.
        } catch DirectoryError.tooManyDevices {
            // All of them work; this one is told over its socket.
        }
        return device
    }

    /// The token that the installation told before, here or in another session of the app, is this participant's as well.
    private func adopt(_ installation: InstallationID, by participant: Participant) async throws {
        guard var device = try await shelf.directory.installation(app: participant.app, handle: installation.handle),
            device.user != participant.user
        else { return }
        device.user = participant.user
        do {
            _ = try await shelf.directory.putDevice(
                device, by: .participant(session: participant.session), perUserMax: DeviceShelf.devicesPerUserMax)
        } catch DirectoryError.tooManyDevices {
            return
        }
        _ = try await shelf.directory.deleteDevice(app: participant.app, user: installation.owner, id: installation.handle)
    }

    /// - Parameter suffix: tells it from the person's other devices without an id.
    static func unnamed(_ platform: DevicePlatform?, _ suffix: [UInt8]) -> String {
        [DeviceWriter.unnamedPrefix, platform?.rawValue, Hex.encode(suffix)].compactMap(\.self).joined(separator: "-")
    }
}
