internal import CLoadSockets
internal import Glibc

/// Opening and ending connections.
extension Worker {
    /// Characters quoted from a server's answer in an error.
    private static let quotedMax = 300

    /// Starts opening a connection.
    /// - Returns: its slot; nil if the system refused at once, which is counted.
    @discardableResult
    func open(_ plan: ConnectionPlan) -> Int? {
        let node = node(for: plan)
        let target = targets.all[node]
        let descriptor = tandem_load_connect(target.source(of: plan.number), target.address, target.port)
        let now = tandem_load_now()
        guard descriptor >= 0 else {
            if plan.path != nil { fail("connecting failed: \(Self.reason(-descriptor))", node: node) }
            plan.watcher?.closed(-1, plan: plan, wasOpen: false, code: nil, now: now)
            return nil
        }
        let slot = takeSlot()
        links[slot].descriptor = descriptor
        links[slot].phase = .connecting
        links[slot].channel = Int32(plan.channel)
        links[slot].node = Int32(node)
        links[slot].due = plan.due ?? now
        links[slot].isSecure = target.isSecure
        links[slot].isListenedTo = plan.wantsMessages
        links[slot].isTallied = plan.isCounted && plan.isTallied
        plans[slot] = plan
        if plan.isSubscriber { counts.opening += 1 }
        _ = tandem_load_poll_add(poll, descriptor, tag(slot), 1)
        return slot
    }

    func tag(_ slot: Int) -> UInt64 { UInt64(links[slot].generation) << 32 | UInt64(slot) }

    func finishConnecting(_ slot: Int) {
        let error = tandem_load_socket_error(links[slot].descriptor)
        guard error == 0 else {
            end(slot, code: nil, because: "connecting failed: \(Self.reason(error))")
            return
        }
        _ = tandem_load_poll_change(poll, links[slot].descriptor, tag(slot), 0)
        guard links[slot].isSecure else { return greet(slot) }
        links[slot].phase = .securing
        secure?.begin(slot, descriptor: links[slot].descriptor, host: targets.all[Int(links[slot].node)].host)
        goOnSecuring(slot)
    }

    func goOnSecuring(_ slot: Int) {
        switch secure?.handshake(slot) {
        case .done:
            _ = tandem_load_poll_change(poll, links[slot].descriptor, tag(slot), 0)
            greet(slot)
        case .needsReading: _ = tandem_load_poll_change(poll, links[slot].descriptor, tag(slot), 0)
        case .needsWriting: _ = tandem_load_poll_change(poll, links[slot].descriptor, tag(slot), 1)
        case .failed, nil: end(slot, code: nil, because: "the TLS handshake failed: does the server speak TLS on this port?")
        }
    }

    private func greet(_ slot: Int) {
        guard let plan = plans[slot] else { return }
        guard let path = plan.path else {
            links[slot].phase = .http
            plan.watcher?.opened(slot, now: tandem_load_now())
            return
        }
        links[slot].phase = .upgrading
        let target = targets.all[Int(links[slot].node)]
        var request = "GET \(target.prefix)\(path) HTTP/1.1\r\nHost: \(target.authority)\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        // The key is constant: later messages show whether the upgrade was understood.
        request += "Sec-WebSocket-Key: dGFuZGVtIGxvYWQgdGVzdA==\r\nSec-WebSocket-Version: 13\r\n"
        if let subprotocol = plan.subprotocol { request += "Sec-WebSocket-Protocol: \(subprotocol)\r\n" }
        send(slot, Array((request + "\r\n").utf8))
    }

    /// Handles the upgrade's answer.
    /// - Returns: bytes used; nil if the connection ended.
    func finishUpgrading(_ slot: Int, _ bytes: UnsafeRawBufferPointer) -> Int? {
        switch unsafe HTTPAnswer.read(bytes, hasBody: false) {
        case .incomplete: return 0
        case .malformed(let reason):
            end(slot, code: nil, because: "the upgrade failed: \(reason)")
            return nil
        case .answer(let answer):
            guard answer.status == 101 else {
                let text = unsafe String(decoding: UnsafeRawBufferPointer(rebasing: bytes[..<min(bytes.count, 300)]), as: UTF8.self)
                end(slot, code: nil, because: "the upgrade was answered: \(text.replacing("\r\n", with: " "))")
                return nil
            }
            links[slot].phase = .opening
            if let kind = plans[slot]?.upgradedKind {
                tally.record(kind, from: links[slot].due, to: tandem_load_now(), node: Int(links[slot].node))
            }
            let generation = links[slot].generation
            // For a first step that awaits nothing, or no steps at all.
            takeSteps(slot, hearing: "")
            return links[slot].generation == generation ? answer.count : nil
        }
    }

    /// Performs the opening steps that this message allows.
    func takeSteps(_ slot: Int, hearing message: String) {
        guard let plan = plans[slot] else { return }
        var isHeard = message.isEmpty
        while Int(links[slot].step) < plan.steps.count {
            let step = plan.steps[Int(links[slot].step)]
            if let awaited = step.awaited {
                // One message satisfies one step.
                guard !isHeard, message.contains(awaited) else {
                    if !isHeard { counts.unawaited = String(message.prefix(Self.quotedMax)) }
                    return
                }
                isHeard = true
            }
            links[slot].step += 1
            if let reply = step.reply { sendMessage(slot, reply(step.awaited == nil ? "" : message)) }
            guard links[slot].phase == .opening else { return }
        }
        links[slot].phase = .open
        if plan.isSubscriber {
            counts.opening -= 1
            counts.open += 1
            counts.opened += 1
            counts.nodes[Int(links[slot].node)].opened += 1
        }
        tally.begin(slot, hearsAll: plan.hearsAll)
        let now = tandem_load_now()
        if let kind = plan.openedKind { tally.record(kind, from: links[slot].due, to: now, node: Int(links[slot].node)) }
        plan.steps = []
        plan.watcher?.opened(slot, now: now)
    }

    /// Handles the end of a connection by the other side or by a failure.
    /// - Parameter because: the reason, if it was not open yet.
    func end(_ slot: Int, code: Int?, because reason: String) {
        let phase = links[slot].phase
        guard phase != .free, let plan = plans[slot] else { return }
        let wasOpen = phase == .open
        if plan.isSubscriber {
            if wasOpen {
                counts.open -= 1
                counts.closedByServer[code ?? 0, default: 0] += 1
                counts.nodes[Int(links[slot].node)].closedByServer += 1
            } else {
                counts.opening -= 1
                fail(reason, node: Int(links[slot].node))
            }
        }
        release(slot)
        plan.watcher?.closed(slot, plan: plan, wasOpen: wasOpen || phase == .http, code: code, now: tandem_load_now())
    }

    /// Ends a connection from this side, without a call to its watcher.
    /// - Parameter saysGoodbye: true sends a close frame, like an app that quits; false just closes, like a failing network.
    func hangUp(_ slot: Int, saysGoodbye: Bool) {
        guard links[slot].phase != .free, let plan = plans[slot] else { return }
        if plan.isSubscriber {
            if links[slot].phase == .open { counts.open -= 1 } else { counts.opening -= 1 }
        }
        if saysGoodbye, links[slot].phase == .open {
            send(slot, WebSocketFrame.masked(opcode: WebSocketFrame.Opcode.close, [0x03, 0xE8] as [UInt8]))
        }
        release(slot)
    }

    func fail(_ reason: String, node: Int) {
        counts.failed += 1
        counts.nodes[node].failed += 1
        counts.failure = counts.failure ?? (targets.isSeveral ? "\(targets.all[node].url): \(reason)" : reason)
    }

    static func reason(_ code: Int32) -> String {
        switch code {
        case EMFILE, ENFILE: "no descriptors are left (raise ulimit -n)"
        case EADDRNOTAVAIL: "no local ports are left (net.ipv4.ip_local_port_range)"
        case ECONNREFUSED: "nobody listens there"
        default: unsafe String(cString: strerror(code))
        }
    }
}
