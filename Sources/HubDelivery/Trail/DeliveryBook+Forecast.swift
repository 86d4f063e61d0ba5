internal import HubDefinitions

extension DeliveryBook {
    /// The decision about an event, for the answer to a publish that only asks.
    /// - Parameter room: most recipients to list.
    func forecast(
        _ decided: Decided, channel: String, definition: ChannelDefinition, audience: EventAudience, room: Int
    ) -> EventForecast {
        var forecast = EventForecast(channel: channel, definition: definition.name)
        guard let event = decided.event else { return forecast }
        forecast.policy = event.policy
        forecast.lifetimeMilliseconds = event.expiresAt - event.committedAt
        for note in decided.notes { forecast.choices[note.choice, default: 0] += 1 }
        let listed = 0..<min(room, decided.recipients.count)
        var targets: [Int: [Escalation.Target]] = [:]
        for target in decided.targets where listed.contains(target.recipient) { targets[target.recipient, default: []].append(target) }
        var pushed: [String: [String]] = [:]
        for push in decided.deliveries where push.state == .due { pushed[push.user, default: []].append(push.device) }
        let entries = Dictionary(audience.entries.map { ($0.user, $0) }, uniquingKeysWith: { first, _ in first })
        for place in listed {
            let user = decided.recipients[place]
            var devices = pushed[user] ?? []
            for target in targets[place] ?? [] {
                devices += target.device.map { [$0] } ?? usable(entries[user]?.devices ?? [], target.policy, now: event.committedAt)
            }
            forecast.recipients.append(
                EventForecast.Recipient(
                    user: user, note: decided.notes[place], waitMilliseconds: targets[place]?.map(\.wait).min(), devices: devices))
        }
        return forecast
    }

    private func usable(_ devices: [Device], _ policy: Policy, now: Int64) -> [String] {
        Decision.usableDevices(settings.tokenAge.worthTrying(devices, for: policy, now: now)).map(\.id)
    }
}
