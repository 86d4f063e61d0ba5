package import HubConfiguration

/// Judges a machine for a configuration. Pure.
package enum Examination {
    /// Connections to expect where the configuration has no limit.
    private static let connectionsExpected = 10_000
    /// Descriptors that the hub needs besides those of connections.
    private static let descriptorsOwn = 64
    /// Memory of a connection in the hub and in the kernel, in bytes: docs/operations.md, Capacity.
    private static let (plainBytes, tlsBytes) = (7 << 10, 21 << 10)
    private static let memoryOwnBytes = 128 << 20
    private static let (diskWarningBytes, diskProblemBytes) = (1 << 30, 64 << 20)
    private static let backlogMin = 4096
    private static let certificateDaysMin: Int64 = 14

    /// All findings about the machine, good ones as well.
    package static func findings(_ configuration: Configuration, _ facts: MachineFacts) -> [Finding] {
        let limit = configuration.limits.connectionsMax
        let connections = limit > 0 ? limit : connectionsExpected
        return [
            descriptors(facts, connections: connections), backlog(facts),
            memory(facts, configuration, connections: connections), clock(facts),
        ] + disk(facts)
    }

    private static func descriptors(_ facts: MachineFacts, connections: Int) -> Finding {
        let room = facts.descriptorsMax - descriptorsOwn
        guard room < connections else { return .good("descriptors: room for \(room) connections") }
        return .warning(
            "descriptors: room for \(room) of \(connections) connections",
            "raise LimitNOFILE= of the unit, or the hard limit of ulimit -n, to \(connections + descriptorsOwn) or more")
    }

    private static func backlog(_ facts: MachineFacts) -> Finding {
        guard facts.backlogMax < backlogMin else { return .good("backlog: \(facts.backlogMax) connections wait in the kernel") }
        return .warning(
            "backlog: the kernel keeps \(facts.backlogMax) connections, and a storm of clients brings more",
            "sysctl -w net.core.somaxconn=\(backlogMin)")
    }

    private static func memory(_ facts: MachineFacts, _ configuration: Configuration, connections: Int) -> Finding {
        let each = configuration.listen.tls == nil ? plainBytes : tlsBytes
        let needed = memoryOwnBytes + connections * each + configuration.limits.sendQueueBytesTotalMax
        let (needs, has) = (needed >> 20, facts.memoryBytes >> 20)
        guard facts.memoryBytes < needed else { return .good("memory: \(has) MiB free, \(needs) MiB for \(connections) connections") }
        return .warning(
            "memory: \(has) MiB free, and \(connections) connections take up to \(needs) MiB",
            "lower limits.max_connections or limits.send_queue_bytes_total_max, or give the machine more")
    }

    private static func clock(_ facts: MachineFacts) -> Finding {
        facts.isClockKept
            ? .good("clock: a time service keeps it")
            : .warning(
                "clock: no time service keeps it, and signatures hold for 600 s around it", "run one, such as systemd-timesyncd or chrony")
    }

    private static func disk(_ facts: MachineFacts) -> [Finding] {
        guard let folder = facts.storeFolder else { return [] }
        guard let bytes = facts.diskBytes else {
            return [.problem("store: the disk of \(folder) does not answer", "see whether it is mounted")]
        }
        guard facts.canWriteStore else {
            return [.problem("store: this account may not write into \(folder)", "run this as the hub's account, or chown the folder")]
        }
        let free = "store: \(bytes >> 20) MiB free in \(folder)"
        if bytes < diskProblemBytes { return [.problem(free, "make room: the hub answers 503 when the disk is full")] }
        return [bytes < diskWarningBytes ? .warning(free, "make room: a push takes some 350 bytes for 30 days") : .good(free)]
    }

    /// The finding about a certificate.
    /// - Parameter now: seconds since 1970.
    package static func certificate(_ summary: CertificateSummary, now: Int64) -> [Finding] {
        if !summary.warnings.isEmpty { return summary.warnings.map { .warning("certificate (\(summary.text))", $0) } }
        let days = (summary.expiresAt - now) / 86_400
        return [
            days < certificateDaysMin
                ? .warning("certificate (\(summary.text)): \(days) days are left", "renew it, and send the hub a SIGHUP")
                : .good("certificate (\(summary.text))")
        ]
    }

    /// The finding about the silence of a WebSocket through everything that stands before the hub.
    /// - Parameter pingInterval: silence after which the hub pings.
    package static func silence(_ silence: Silence, pingInterval: Duration) -> Finding {
        func seconds(_ duration: Duration) -> String { "\(Int((duration / .seconds(1)).rounded())) s" }
        switch silence {
        case .pinged(let after): return .good("public WebSocket: silent for \(seconds(after)), until the hub pinged")
        case .unbroken(let after):
            return .warning(
                "public WebSocket: silent for \(seconds(after)), and the hub did not ping",
                "ask with the configuration of the hub that runs there: this one has the ping_interval \(seconds(pingInterval))")
        case .ended(let after):
            return .problem(
                "public WebSocket: ended after \(seconds(after)) of silence, and the hub pings after \(seconds(pingInterval))",
                "give the proxy a longer time-out, such as nginx's proxy_read_timeout or HAProxy's timeout tunnel, or lower ping_interval")
        case .refused(let answer):
            return .problem(
                "public WebSocket: \(answer)",
                "have the proxy pass Upgrade and Connection on in HTTP/1.1, as docs/deploy/nginx.conf does, and look at the app's key")
        }
    }
}

/// How a WebSocket on which nobody says a word went on.
package enum Silence: Sendable, Equatable {
    /// The hub pinged after so long.
    case pinged(Duration)
    /// Nothing came for so long.
    case unbroken(Duration)
    /// Somebody ended it after so long.
    case ended(Duration)
    /// No WebSocket came about.
    case refused(String)
}
