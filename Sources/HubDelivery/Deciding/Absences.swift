internal import HubCore

/// A user of an app.
struct Person: Hashable, Sendable {
    let app: String
    let user: ExactText

    init(app: String, user: String) {
        self.app = app
        self.user = ExactText(user)
    }
}

/// Devices that went within the last minute, and how often: tells participants on the way back from those who come and go all the time.
///
/// Part of the attendance book. A plain value; every operation is O(n) in the devices of one participant.
package struct Absences: Sendable {
    private struct Device {
        let id: String?
        /// Time at which the device was cut off, in milliseconds, by channel.
        var cutOff: [String: Int64] = [:]
        /// Whether a connection of the device ended and none has begun since.
        var isGone = false
        /// Times of the last returns, at most `returnsMax` and one.
        var returns: [Int64] = []
        /// Time at which a connection of the device ended last.
        var lastWent: Int64
    }

    /// Most devices that are remembered, at about 300 bytes each. If exceeded, the oldest is forgotten and counts as absent.
    package static let travellersMax = 100_000
    /// Returns within `windowMilliseconds` above which a device is flapping.
    package static let returnsMax = 5
    /// Milliseconds for which a departure is remembered.
    package static let windowMilliseconds: Int64 = 60_000

    private let travellersMax: Int
    private var people: [Person: [Device]] = [:]
    private var queue: [(person: Person, device: String?, went: Int64)] = []
    private var queueHead = 0
    private(set) var count = 0

    init(travellersMax: Int) {
        precondition(travellersMax > 0, "travellersMax \(travellersMax)")
        self.travellersMax = travellersMax
    }

    /// Notes that a connection of the device to the channel ended.
    /// - Parameter mayReturn: whether it was cut off, without a goodbye.
    mutating func went(_ person: Person, device: String?, channel: String, mayReturn: Bool, now: Int64) {
        var devices = people[person] ?? []
        let index = devices.firstIndex { $0.id == device } ?? devices.endIndex
        if index == devices.endIndex {
            devices.append(Device(id: device, lastWent: now))
            count += 1
        }
        let graceEnded = now - Int64(DeviceState.graceSeconds) * 1000
        if devices[index].cutOff.contains(where: { $0.value <= graceEnded }) {
            devices[index].cutOff = devices[index].cutOff.filter { $0.value > graceEnded }
        }
        devices[index].cutOff[channel] = mayReturn ? now : nil
        if !devices[index].isGone || devices[index].lastWent != now {
            queue.append((person, device, now))
        }
        devices[index].isGone = true
        devices[index].lastWent = now
        people[person] = devices
        forget(now: now)
    }

    /// Notes that a connection of the device to the channel began.
    mutating func came(_ person: Person, device: String?, channel: String, isNewConnection: Bool, now: Int64) {
        forget(now: now)
        guard let index = people[person]?.firstIndex(where: { $0.id == device }) else { return }
        people[person]?[index].cutOff[channel] = nil
        guard isNewConnection, people[person]?[index].isGone == true else { return }
        people[person]?[index].isGone = false
        people[person]?[index].returns.append(now)
        if let count = people[person]?[index].returns.count, count > Self.returnsMax + 1 { people[person]?[index].returns.removeFirst() }
    }

    /// Milliseconds for which the return of the device, or of any for nil, is still awaited.
    func graceLeft(_ person: Person, device: String?, channel: String, now: Int64) -> Int64 {
        var left: Int64 = 0
        for known in people[person] ?? [] where device == nil || known.id == nil || known.id == device {
            guard let cutOff = known.cutOff[channel], !isFlapping(known, now: now) else { continue }
            left = max(left, cutOff + Int64(DeviceState.graceSeconds) * 1000 - now)
        }
        return left
    }

    func isFlapping(_ person: Person, device: String?, now: Int64) -> Bool {
        people[person]?.contains { $0.id == device && isFlapping($0, now: now) } ?? false
    }

    private func isFlapping(_ device: Device, now: Int64) -> Bool {
        device.returns.count > Self.returnsMax && device.returns[0] > now - Self.windowMilliseconds
    }

    private mutating func forget(now: Int64) {
        while queueHead < queue.count, queue[queueHead].went <= now - Self.windowMilliseconds || count > travellersMax {
            forget(queue[queueHead])
            queueHead += 1
        }
        // Flapping devices leave outdated entries, which are removed once they outnumber the rest.
        if queue.count - queueHead > 2 * travellersMax + 16 {
            queue = queue[queueHead...].filter { isCurrent($0) }
            queueHead = 0
        } else if queueHead > 1024, queueHead * 2 > queue.count {
            queue.removeFirst(queueHead)
            queueHead = 0
        }
    }

    private func isCurrent(_ entry: (person: Person, device: String?, went: Int64)) -> Bool {
        people[entry.person]?.contains { $0.id == entry.device && $0.lastWent == entry.went } ?? false
    }

    private mutating func forget(_ entry: (person: Person, device: String?, went: Int64)) {
        guard let index = people[entry.person]?.firstIndex(where: { $0.id == entry.device && $0.lastWent == entry.went }) else { return }
        people[entry.person]?.remove(at: index)
        if people[entry.person]?.isEmpty == true { people[entry.person] = nil }
        count -= 1
    }
}
