internal import HubStorage

/// Counters of the work with PostgreSQL, where that is the store.
extension MetricsText {
    mutating func postgres(_ figures: PostgresFigures) {
        gauge("tandem_postgres_failing", "1 while PostgreSQL takes no writes.", figures.isFailing ? 1 : 0)
        gauge("tandem_postgres_partitions_owned", "Partitions that this hub owns, of 64.", figures.owned.count)
        gauge("tandem_postgres_other_hubs", "Other hubs on the database whose beats move.", figures.others)
        counter("tandem_postgres_takeovers_total", "Partitions that this hub took from a hub that was dead.", figures.takeovers)
        counter(
            "tandem_postgres_beats_total", "Beats of this hub, answered in time or failed.",
            [Sample(figures.beats, [("outcome", "answered")]), Sample(figures.failedBeats, [("outcome", "failed")])])
        gauge(
            "tandem_postgres_beat_age_seconds", "Time since the last answered beat was sent; from 3 s on the hub writes nothing.",
            figures.sinceBeat.map { [Sample(Double($0) / 1000)] } ?? [])
        counter("tandem_postgres_connections_total", "Connections made, those after a loss included.", figures.calls.connections)
        counter(
            "tandem_postgres_calls_failed_total",
            "Calls that failed: unanswered by the server or refused for all, or given up at once after such a call.",
            [Sample(figures.calls.failed, [("how", "unanswered")]), Sample(figures.calls.refused, [("how", "at_once")])])
        counter(
            "tandem_postgres_round_trips_total", "Round trips of the link that writes, and of all others, beats included.",
            [Sample(figures.calls.writerRoundTrips, [("link", "writer")]), Sample(figures.calls.otherRoundTrips, [("link", "others")])])
    }
}
