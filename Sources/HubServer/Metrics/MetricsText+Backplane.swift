internal import HubScaleOut

/// Counters of the way between nodes, where there are several.
extension MetricsText {
    /// - Parameter skipped: messages that this node could not read.
    mutating func backplane(_ figures: BackplaneFigures, skipped: UInt64) {
        gauge("tandem_backplane_connected", "1 while this node is one of the hub's nodes.", figures.isConnected ? 1 : 0)
        gauge("tandem_backplane_other_nodes", "Other nodes whose beats are there.", figures.others)
        counter("tandem_backplane_deaths_total", "Times that the others have declared this node dead.", figures.deaths)
        gauge(
            "tandem_backplane_message_version", "Version in which this node writes its messages, which all living nodes read.",
            figures.messageVersion)
        counter("tandem_backplane_messages_skipped_total", "Messages of a kind or version that this build does not know.", skipped)
        func each(_ value: (BackplaneFigures.Server) -> Double?) -> [Sample] {
            figures.servers.compactMap { server in value(server).map { Sample($0, [("server", server.name)]) } }
        }
        func kinds(_ label: String, _ kinds: [(name: String, value: (BackplaneFigures.Server) -> UInt64)]) -> [Sample] {
            figures.servers.flatMap { server in
                kinds.map { Sample($0.value(server), [("server", server.name), (label, $0.name)]) }
            }
        }
        counter(
            "tandem_backplane_beats_total", "Beats of this node, answered or missed.",
            kinds("outcome", [("answered", { $0.node.beats }), ("missed", { $0.node.missedBeats })]))
        counter("tandem_backplane_declared_dead_total", "Nodes that this one declared dead.", each { Double($0.node.declaredDead) })
        counter(
            "tandem_backplane_connections_total", "Connections made for writing, those after a loss included.",
            each { Double($0.node.connections) })
        counter(
            "tandem_backplane_entries_total",
            "Messages: read, appended by this node, failed to be appended in time, read twice and dropped, or of an unknown kind.",
            kinds(
                "what",
                [
                    ("read", { $0.stream.read }), ("appended", { $0.stream.appended }), ("failed", { $0.stream.failed }),
                    ("double", { $0.stream.doubles }), ("unknown", { $0.stream.unknown }),
                ]))
        counter("tandem_backplane_gaps_total", "Places where messages of a node were missing.", each { Double($0.stream.gaps) })
        counter("tandem_backplane_lost_replies_total", "Calls to append that got no answer.", each { Double($0.stream.lostReplies) })
        gauge(
            "tandem_backplane_entries_kept", "Messages of this node that are kept, should Redis lose them.",
            each { Double($0.stream.kept) })
        gauge("tandem_backplane_read_age_seconds", "Time since Redis last answered a read.", each { $0.stream.sinceRead.map(Self.seconds) })
        gauge(
            "tandem_backplane_probe_seconds", "Time that the last message took from this node through Redis back to it.",
            each { $0.stream.probe.map(Self.seconds) })
        gauge(
            "tandem_backplane_probe_age_seconds", "Time since something that this node said came back; a silent node sends a probe.",
            each { $0.stream.sinceProbe.map(Self.seconds) })
    }

    private static func seconds(_ duration: Duration) -> Double {
        let (seconds, attoseconds) = duration.components
        return Double(seconds) + Double(attoseconds) / 1e18
    }
}
