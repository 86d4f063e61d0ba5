package import HubDelivery

/// Checks a notification against each gateway's limit before it is stored, so that the publisher gets the error.
package struct PayloadSizes: PayloadCheck {
    package init() {}

    /// As long as every real id.
    private static let sampleID = String(repeating: "0", count: 36)

    /// Tries the longest formats: FCM's for each platform, and APNs'.
    package func problem(_ message: PushMessage) -> String? {
        var sample = message
        sample.nid = Self.sampleID
        // Unknown before the event is stored.
        sample.sequence = max(sample.sequence, Int64(Int32.max))
        let now = sample.committedAt
        if FCMPayload.fitsEverywhere(sample, now: now) { return nil }
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

    /// Checks one notification of a direct send against its target's gateway.
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
