/// Kinds of APNs pushes: the values of `apns-push-type` (Apple, "Sending notification requests to APNs").
package enum APNsPushType: String, Sendable, CaseIterable {
    case alert, background, liveactivity, voip, pushtotalk, location, complication, widgets, controls, fileprovider, mdm

    /// Suffix of the bundle id in `apns-topic`.
    package var topicSuffix: String {
        switch self {
        case .alert, .background, .mdm: ""
        case .liveactivity: ".push-type.liveactivity"
        case .voip: ".voip"
        case .pushtotalk: ".voip-ptt"
        case .location: ".location-query"
        case .complication: ".complication"
        case .widgets: ".push-type.widgets"
        case .controls: ".push-type.controls"
        case .fileprovider: ".pushkit.fileprovider"
        }
    }

    /// Default of `apns-priority`. Apple refuses background pushes with 10.
    package var priority: String { self == .background ? "5" : "10" }

    /// Apple's limit on the payload, in bytes.
    package var payloadBytesMax: Int { self == .voip ? 5120 : 4096 }
}
