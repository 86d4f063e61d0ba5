import CPostgreSQL
import Foundation

/// One connection in libpq's pipeline mode. Confined to one thread at a time; every wait has a deadline.
///
/// Statements have no names, because PgBouncer's transaction mode hands a server connection to somebody else after each transaction.
@safe final class PostgresConnection {
    private let handle: OpaquePointer
    /// Round trips since the connection was made.
    private(set) var roundTrips = 0
    private let pulse: PostgresPulse?

    /// Connects.
    /// - Parameters:
    ///   - address: as libpq reads it: a URL or `name=value` pairs. libpq adds its environment and password file.
    ///   - name: shown in `pg_stat_activity`.
    ///   - pulse: of the server, by all connections to it; nil: a wait ends with its deadline, whatever the others hear.
    init(address: String, name: String, deadline: ContinuousClock.Instant, pulse: PostgresPulse? = nil) throws(PostgresFailure) {
        let (keywords, values) = (["dbname", "fallback_application_name", "client_encoding", "options"], [address, name, "UTF8", ""])
        let handle = unsafe Self.withStrings(keywords) { keywords in
            unsafe Self.withStrings(values) { values in unsafe PQconnectStartParams(keywords, values, 1) }
        }
        guard let handle = unsafe handle else { throw .lost("no memory for a connection") }
        unsafe self.handle = handle
        self.pulse = pulse
        // `deinit` also runs when an initializer throws after all properties are set.
        try connect(deadline)
    }

    deinit { unsafe PQfinish(handle) }

    private func connect(_ deadline: ContinuousClock.Instant) throws(PostgresFailure) {
        guard unsafe PQstatus(handle) != CONNECTION_BAD else { throw failure }
        var state = PGRES_POLLING_WRITING
        while state != PGRES_POLLING_OK {
            try wait(reading: state == PGRES_POLLING_READING, writing: state == PGRES_POLLING_WRITING, deadline)
            state = unsafe PQconnectPoll(handle)
            if state == PGRES_POLLING_FAILED { throw failure }
        }
        guard unsafe PQsetnonblocking(handle, 1) == 0, unsafe PQenterPipelineMode(handle) == 1 else { throw failure }
    }

    /// Process number of the server's backend, for `pg_terminate_backend`; PgBouncer gives one of its own.
    var backend: Int32 { unsafe PQbackendPID(handle) }
    /// Version of the server: 150018 stands for 15.18.
    var serverVersion: Int { Int(unsafe PQserverVersion(handle)) }

    /// Whether the server has not ended the connection while nobody used it.
    var isOpen: Bool {
        var entry = pollfd(fd: unsafe PQsocket(handle), events: Int16(POLLIN), revents: 0)
        guard unsafe poll(&entry, 1, 0) > 0 else { return unsafe PQstatus(handle) == CONNECTION_OK }
        guard unsafe PQconsumeInput(handle) == 1 else { return false }
        return unsafe PQstatus(handle) == CONNECTION_OK
    }

    /// Time between two pieces of an answer, and the least time for each round trip. Long answers have time as long as they come.
    static let silenceMax: Duration = .milliseconds(500)

    /// Carries out statements in one round trip. The first one that is refused ends all that follow it.
    /// - Parameter deadline: of the answer's beginning. An answer that has begun fails after a silence of half a second.
    /// - Returns: a result per statement.
    func run(_ statements: [PostgresStatement], deadline: ContinuousClock.Instant) throws -> [PostgresRows] {
        if statements.isEmpty { return [] }
        let parameters = try statements.map { try PostgresParameters($0.values) }
        for (statement, parameters) in zip(statements, parameters) { try send(statement.sql, parameters) }
        guard unsafe PQpipelineSync(handle) == 1 else { throw failure }
        try flush(deadline)
        roundTrips += 1
        return try receive(statements.count, deadline)
    }

    /// Waits for a notification of a channel that the connection listens to. Several that have come count as one.
    func waitForNotification(until end: ContinuousClock.Instant) throws(PostgresFailure) -> Set<String> {
        var names: Set<String> = []
        while true {
            guard unsafe PQconsumeInput(handle) == 1 else { throw failure }
            while let notification = unsafe PQnotifies(handle) {
                unsafe names.insert(String(cString: notification.pointee.relname))
                unsafe PQfreemem(notification)
            }
            if !names.isEmpty || ContinuousClock.now >= end { return names }
            do { try wait(reading: true, writing: false, end, isPatient: false) } catch { return names }
        }
    }

    private func send(_ sql: String, _ parameters: PostgresParameters) throws(PostgresFailure) {
        let count = parameters.types.count
        let isSent = unsafe parameters.bytes.withUnsafeBytes { bytes in
            // An empty value must not be at address null, which stands for NULL.
            var none: CChar = 0
            return unsafe withUnsafePointer(to: &none) { none in
                let start = unsafe bytes.baseAddress?.assumingMemoryBound(to: CChar.self) ?? none
                var values: [UnsafePointer<CChar>?] = unsafe []
                var lengths: [CInt] = []
                for range in parameters.ranges {
                    unsafe values.append(range.map { unsafe start + $0.lowerBound })
                    lengths.append(CInt(range?.count ?? 0))
                }
                let formats = Array(repeating: CInt(1), count: count)
                return unsafe PQsendQueryParams(handle, sql, CInt(count), parameters.types, values, lengths, formats, 1) == 1
            }
        }
        if !isSent { throw failure }
    }

    /// Reads while it writes: a server whose answers nobody takes would take no more statements.
    private func flush(_ deadline: ContinuousClock.Instant) throws(PostgresFailure) {
        while true {
            let left = unsafe PQflush(handle)
            if left == 0 { return }
            guard left == 1 else { throw failure }
            try wait(reading: true, writing: true, deadline)
            guard unsafe PQconsumeInput(handle) == 1 else { throw failure }
        }
    }

    private func receive(_ count: Int, _ deadline: ContinuousClock.Instant) throws(PostgresFailure) -> [PostgresRows] {
        var (results, deadline) = ([PostgresRows](), deadline)
        var refusal: PostgresFailure?
        while true {
            guard let result = unsafe try next(&deadline) else {
                // The end of one statement's results.
                continue
            }
            switch unsafe PQresultStatus(result) {
            case PGRES_PIPELINE_SYNC:
                unsafe PQclear(result)
                if let refusal { throw refusal }
                assert(results.count == count, "\(results.count) results for \(count) statements")
                return results
            case PGRES_COMMAND_OK, PGRES_TUPLES_OK: results.append(unsafe PostgresRows(result))
            case PGRES_PIPELINE_ABORTED: unsafe PQclear(result)
            default:
                if refusal == nil { refusal = unsafe Self.refusal(result) }
                unsafe PQclear(result)
                guard unsafe PQstatus(handle) == CONNECTION_OK else { throw refusal?.state == nil ? failure : .lost(Self.text(refusal)) }
            }
        }
    }

    private func next(_ deadline: inout ContinuousClock.Instant) throws(PostgresFailure) -> OpaquePointer? {
        while unsafe PQisBusy(handle) == 1 {
            try wait(reading: true, writing: false, deadline)
            guard unsafe PQconsumeInput(handle) == 1 else { throw failure }
            pulse?.beat()
            deadline = max(deadline, .now + Self.silenceMax)
        }
        let result = unsafe PQgetResult(handle)
        if unsafe result == nil, unsafe PQstatus(handle) != CONNECTION_OK { throw failure }
        return unsafe result
    }

    /// - Parameter isPatient: an answer is due, so the deadline may be extended.
    private func wait(
        reading: Bool, writing: Bool, _ deadline: ContinuousClock.Instant, isPatient: Bool = true
    ) throws(PostgresFailure) {
        var entry = pollfd(fd: unsafe PQsocket(handle), events: Int16((reading ? POLLIN : 0) | (writing ? POLLOUT : 0)), revents: 0)
        guard entry.fd >= 0 else { throw failure }
        while true {
            let (seconds, attoseconds) = (deadline - .now).components
            var left = seconds * 1000 + attoseconds / 1_000_000_000_000_000
            if left <= 0, isPatient, pulse?.isFresh == true, .now < deadline + PostgresPulse.patienceMax { left = PostgresPulse.lookEvery }
            guard left > 0 else { throw .lost("it answered nothing in time") }
            let count = unsafe poll(&entry, 1, CInt(clamping: left))
            if count > 0 { return }
            if count < 0, errno != EINTR { throw .lost("its socket fails: \(unsafe String(cString: strerror(errno)))") }
        }
    }

    /// libpq's message, in one line. It names host, user and database, and never a password.
    private var failure: PostgresFailure {
        let text = unsafe String(cString: PQerrorMessage(handle))
        return .lost(text.split(whereSeparator: \.isNewline).first.map(String.init) ?? "the connection ended")
    }

    private static func text(_ failure: PostgresFailure?) -> String {
        if case .refused(_, let message)? = failure { message } else { "the connection ended" }
    }

    private static func refusal(_ result: OpaquePointer) -> PostgresFailure {
        func field(_ code: UInt8) -> String? { unsafe PQresultErrorField(result, CInt(code)).map { unsafe String(cString: $0) } }
        return .refused(
            state: field(UInt8(ascii: "C")) ?? "XX000", message: field(UInt8(ascii: "M")) ?? "no message")
    }

    private static func withStrings<Value>(
        _ strings: [String], _ body: (UnsafePointer<UnsafePointer<CChar>?>) -> Value
    ) -> Value {
        let copies = unsafe strings.map { unsafe strdup($0) }
        defer { unsafe copies.forEach { unsafe free($0) } }
        let pointers = unsafe copies.map { unsafe UnsafePointer<CChar>($0) } + [nil]
        return unsafe pointers.withUnsafeBufferPointer { buffer in
            guard let start = buffer.baseAddress else { preconditionFailure("an array with its end is not empty") }
            return unsafe body(start)
        }
    }
}
