/// The measurements of one run, for the table, the JSON file and the HTML page. Property names are the file's keys.
package struct LoadReport: Codable, Sendable, Equatable {
    /// `fanout`, `rooms` and so on.
    package var scenario: String
    /// The server's URL.
    package var target: String
    /// The kind of server; `pusher` for any Pusher-compatible one.
    package var dialect: String
    /// ISO 8601, UTC.
    package var started: String
    /// Duration of the measurement.
    package var seconds: Double
    package var settings: [Setting] = []
    package var machine: [Setting] = []
    package var figures: [Figure] = []
    package var latencies: [Latency] = []
    package var timelines: [Timeline] = []
    /// Reasons to doubt the figures: the client was the bottleneck, or the machine was busy otherwise.
    package var warnings: [String] = []

    package init(scenario: String, target: String, dialect: String, started: String, seconds: Double) {
        self.scenario = scenario
        self.target = target
        self.dialect = dialect
        self.started = started
        self.seconds = seconds
    }

    package struct Setting: Codable, Sendable, Equatable {
        package var name: String
        package var value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// One number with its printed unit: `us`, `MB`, `1/s`, `%`, or empty for a count.
    package struct Figure: Codable, Sendable, Equatable {
        package var name: String
        package var value: Double
        package var unit: String

        package init(_ name: String, _ value: Double, _ unit: String = "") {
            self.name = name
            self.value = value
            self.unit = unit
        }
    }

    /// A distribution in microseconds, measured from the due time and not from the start of the work (no coordinated omission).
    package struct Latency: Codable, Sendable, Equatable {
        package var name: String
        package var count: UInt64
        package var minimum: UInt64
        package var mean: Double
        package var maximum: UInt64
        /// Rising percentiles up to 100, each with the value that so many percent do not exceed.
        package var percentiles: [Percentile]

        package init(
            name: String, count: UInt64, minimum: UInt64, mean: Double, maximum: UInt64, percentiles: [Percentile]
        ) {
            self.name = name
            self.count = count
            self.minimum = minimum
            self.mean = mean
            self.maximum = maximum
            self.percentiles = percentiles
        }
    }

    package struct Percentile: Codable, Sendable, Equatable {
        package var percent: Double
        package var microseconds: UInt64

        package init(percent: Double, microseconds: UInt64) {
            self.percent = percent
            self.microseconds = microseconds
        }
    }

    /// One value per `secondsPerPoint` of the run, from its beginning.
    package struct Timeline: Codable, Sendable, Equatable {
        package var name: String
        package var unit: String
        package var secondsPerPoint: Double
        package var points: [Double]

        package init(name: String, unit: String, secondsPerPoint: Double, points: [Double]) {
            self.name = name
            self.unit = unit
            self.secondsPerPoint = secondsPerPoint
            self.points = points
        }
    }
}
