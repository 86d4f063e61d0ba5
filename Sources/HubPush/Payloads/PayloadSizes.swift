package import HubDelivery

/// Whether a notification fits each gateway's payload: asked before it is stored, so that a publisher learns it and not a log.
package struct PayloadSizes: PayloadCheck {
    package init() {}

    /// As long as every notification's own.
    private static let sampleID = String(repeating: "0", count: 36)

    /// Tries the longest forms there are: FCM's for each platform, and APNs'.
    package func problem(_ message: PushMessage) -> String? {
        var sample = message
        sample.nid = Self.sampleID
        // Not known before the event is stored.
        sample.sequence = max(sample.sequence, Int64(Int32.max))
        let now = sample.committedAt
        do throws(PayloadFault) {
            for platform in [DevicePlatform.ios, .android, .web] {
                let target = PushTarget(device: "", provider: .fcm, platform: platform, token: "", environment: .production)
                _ = try FCMPayload(sample, target: target, now: now)
            }
            _ = try APNsPayload(sample, topic: "", device: "", now: now)
        } catch {
            return error.reason
        }
        return nil
    }

    /// As above, for where one notification of a direct send goes.
    package func problem(_ message: PushMessage, to target: PushTarget) -> String? {
        var sample = message
        sample.nid = Self.sampleID
        do throws(PayloadFault) {
            switch target.provider {
            case .fcm: _ = try FCMPayload(sample, target: target, now: sample.committedAt)
            case .apns: _ = try APNsPayload(sample, topic: sample.apnsHeaders["apns-topic"] ?? "", device: "", now: sample.committedAt)
            }
        } catch {
            return error.reason
        }
        return nil
    }
}
