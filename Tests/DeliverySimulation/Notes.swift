import HubCore
import HubDelivery

/// Notes of what really happened, beside what the hub knows: the material for the ledger.
extension Simulation {
    /// A publish is decided: these pushes are due with its commit.
    func note(_ prepared: PreparedPublish) {
        let event = events[Int(prepared.publish.id)]
        let first = channels[event.channel].firstDevice
        for record in prepared.records.flatMap(\.deliveries) where record.state == .due && !event.cells.isEmpty {
            let cell = deviceIndex(record.device) - first
            event.cells[cell].atCommit = record.reason
            event.cells[cell].pushDecidedAt = now
            event.cells[cell].pushLife = life
        }
    }

    /// Somebody is not waited for any more, and gets a push.
    func note(_ work: PushPlan.Work) {
        guard case .push(let name, let targets, _) = work, let index = eventIndex[name], !events[index].cells.isEmpty else { return }
        let event = events[index]
        let first = channels[event.channel].firstDevice
        for target in targets {
            guard let person = personIndex[target.user] else { continue }
            for device in people[person].devices where target.device == nil || devices[device].name == target.device {
                let cell = event.cells[device - first]
                if event.policy != .both, cell.arrivedInLife == life, cell.receiptAt == nil, cell.arrivedAt <= hub.heardUpTo,
                    people[person].changedAt < event.postedAt
                {
                    violation("push of \(event.name) to \(target.user), whose receipt lies in the inbox")
                }
                // Receipts count no more for events of before a change of roles.
                if event.policy != .both, cell.settledInLife == life, people[person].changedAt < event.postedAt {
                    violation(
                        "push of \(event.name) to \(target.user), who confirmed it on \(devices[device].name): \(cell)"
                    )
                }
                if cell.pushDecidedAt == nil {
                    event.cells[device - first].pushDecidedAt = now
                    event.cells[device - first].pushLife = life
                }
            }
        }
    }

    /// A receipt comes to the book: what it means in truth.
    func noteReceipt(_ connection: SimConnection, _ index: Int, cursor: UInt64, read: Int) {
        let device = devices[connection.device]
        let isOnScreen = !device.kind.tellsOverHTTP && connection.attachedUserState == .foreground || connection.keepsWorking
        let counts = device.kind.isBrowser || device.attached == [index]
        while connection.receipted < read {
            let (number, replay) = connection.read[connection.receipted]
            let event = events[number]
            if event.policy.pushKind != nil {
                guard let needed = replay > 0 ? replay : event.cursors[connection.id.loop], cursor >= needed else { return }
            }
            connection.receipted += 1
            guard !event.cells.isEmpty else { continue }
            let cell = connection.device - channels[event.channel].firstDevice
            if event.cells[cell].receiptAt == nil {
                event.cells[cell].receiptAt = now
                event.cells[cell].receiptState = connection.attachedUserState
            }
            if !counts { event.cells[cell].isContradicted = true }
            if isOnScreen, counts, event.cells[cell].settledInLife == nil { event.cells[cell].settledInLife = life }
        }
    }
}
