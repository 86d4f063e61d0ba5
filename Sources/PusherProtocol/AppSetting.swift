package import HubCore

/// A setting of an app that can change while the hub runs, by its name in the configuration file. Times are whole seconds here.
package enum AppSetting: String, CaseIterable, Sendable {
    case enabled
    case connectionsMax = "max_connections"
    case clientEvents = "client_events"
    case clientEventsPerSecond = "client_events_per_second"
    case subscriptionCount = "subscription_count"
    case presenceMembersMax = "presence_members_max"
    case presenceLinger = "presence_linger"
    case eventDataBytesMax = "event_data_bytes_max"
    case activityTimeout = "activity_timeout"
    case pingInterval = "ping_interval"
    case pongTimeout = "pong_timeout"
    case allowedOrigins = "allowed_origins"
    case watchlist

    /// A sentence for the sender about a wrong value.
    package struct Refusal: Error, Equatable {
        package let sentence: String
    }

    /// Sets the value of an app.
    package func apply(_ value: JSONValue, to app: inout App) throws(Refusal) {
        switch self {
        case .enabled: app.isEnabled = try bool(value)
        case .connectionsMax: app.connectionsMax = try int(value, in: 0...1_000_000_000)
        case .clientEvents: app.clientEvents = try bool(value)
        case .clientEventsPerSecond: app.clientEventsPerSecond = try int(value, in: 1...1_000_000)
        case .subscriptionCount: app.subscriptionCount = try bool(value)
        case .presenceMembersMax: app.presenceMembersMax = try int(value, in: 1...1_000_000)
        case .presenceLinger: app.presenceLinger = .seconds(try int(value, in: 0...3600))
        case .eventDataBytesMax: app.eventDataBytesMax = try int(value, in: 1...(16 << 20))
        case .activityTimeout: app.activityTimeoutSeconds = try int(value, in: 1...86_400)
        case .pingInterval: app.pingInterval = .seconds(try int(value, in: 1...86_400))
        case .pongTimeout: app.pongTimeout = .seconds(try int(value, in: 1...86_400))
        case .allowedOrigins:
            guard let origins = value.arrayValue?.map(\.stringValue), origins.count <= 100, origins.allSatisfy({ $0 != nil }) else {
                throw Refusal(sentence: "\(rawValue) must be a list of at most 100 origins")
            }
            app.allowedOrigins = origins.compactMap(\.self)
        case .watchlist: app.watchlist = try bool(value)
        }
    }

    /// The value of an app.
    package func value(of app: App) -> JSONValue {
        switch self {
        case .enabled: .bool(app.isEnabled)
        case .connectionsMax: .int(Int64(app.connectionsMax))
        case .clientEvents: .bool(app.clientEvents)
        case .clientEventsPerSecond: .int(Int64(app.clientEventsPerSecond))
        case .subscriptionCount: .bool(app.subscriptionCount)
        case .presenceMembersMax: .int(Int64(app.presenceMembersMax))
        case .presenceLinger: .int(app.presenceLinger.components.seconds)
        case .eventDataBytesMax: .int(Int64(app.eventDataBytesMax))
        case .activityTimeout: .int(Int64(app.activityTimeoutSeconds))
        case .pingInterval: .int(app.pingInterval.components.seconds)
        case .pongTimeout: .int(app.pongTimeout.components.seconds)
        case .allowedOrigins: .array(app.allowedOrigins.map(JSONValue.string))
        case .watchlist: .bool(app.watchlist)
        }
    }

    private func bool(_ value: JSONValue) throws(Refusal) -> Bool {
        guard let flag = value.boolValue else { throw Refusal(sentence: "\(rawValue) must be true or false") }
        return flag
    }

    private func int(_ value: JSONValue, in range: ClosedRange<Int>) throws(Refusal) -> Int {
        // 5.0 is a whole number, too.
        let whole: Int? = if case .double(let number) = value { Int(exactly: number) } else { value.intValue.flatMap { Int(exactly: $0) } }
        guard let number = whole, range.contains(number) else {
            throw Refusal(sentence: "\(rawValue) must be a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }
}
