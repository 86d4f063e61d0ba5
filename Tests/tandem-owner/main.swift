import Foundation
import HubCore
import HubDelivery
import HubStorage

// One of several processes on the database that TANDEM_STORE names: commits events to channels of its partitions until SIGTERM. After
// SIGUSR1 it commits one event of the name `large`, whose call has many rows and so ten seconds of time.
//
// Lines of the output, with a moment in milliseconds of CLOCK_BOOTTIME.
//
// - `owns MOMENT NUMBER PARTITIONS BEATS FAILED`: whenever one of these changes.
// - `answered MOMENT EVENT`: its commit is durable.
// - `failed MOMENT EVENT`: its commit was not answered.

/// The system's clocks.
struct Clock: TimeSource {
    var monotonicNanoseconds: UInt64 { Self.nanoseconds(CLOCK_BOOTTIME) }
    var wallMilliseconds: Int64 { Int64(Self.nanoseconds(CLOCK_REALTIME) / 1_000_000) }

    private static func nanoseconds(_ clock: clockid_t) -> UInt64 {
        var now = timespec()
        clock_gettime(clock, &now)
        return UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
    }
}

let writers = 4
let largeRows = 100_000
let clock = Clock()

/// One line in one write: lines of several tasks do not mix.
func say(_ what: String, _ text: String) {
    FileHandle.standardOutput.write(Data("\(what) \(clock.monotonicNanoseconds / 1_000_000) \(text)\n".utf8))
}

/// A channel of the partition.
func channel(of partition: Int32) -> String {
    var count = 0
    while Partition.of(MemberPlace(app: "1", channel: "partition-\(count)")) != partition { count += 1 }
    return "partition-\(count)"
}

let channels = (0..<Partition.count).map(channel)

/// Commits an event to an owned partition. Its id tells who committed it under which epoch.
func write(_ name: String, _ writer: String, _ store: PostgresStore) async {
    guard let figures = store.postgres, let (partition, epoch) = figures.owned.randomElement() else {
        try? await Task.sleep(for: .milliseconds(20))
        return
    }
    let id = "\(figures.process):\(partition):\(epoch):\(writer)"
    let now = clock.wallMilliseconds
    let event = EventRecord(
        id: id, app: "1", channel: channels[Int(partition)], name: name, data: "{}", policy: .critical, committedAt: now,
        expiresAt: now + 60_000)
    do {
        let pushes = (0..<(name == "large" ? largeRows : 0)).map { place in
            PushRecord(
                nid: "\(id):\(place)", event: id, app: "1", user: "\(place)", device: "d", state: .waiting, reason: "absent", dueAt: now)
        }
        _ = try await store.commit([EventCommit(event, pushes)], answers: [], scheduled: [])
        say("answered", id)
    } catch {
        say("failed", id)
        try? await Task.sleep(for: .milliseconds(20))
    }
}

signal(SIGTERM, SIG_IGN)
signal(SIGUSR1, SIG_IGN)
let terminated = DispatchSource.makeSignalSource(signal: SIGTERM)
let asked = DispatchSource.makeSignalSource(signal: SIGUSR1)
let store = try await PostgresStore(
    address: ProcessInfo.processInfo.environment["TANDEM_STORE"] ?? "", time: clock, isAlone: false)
let work = Task {
    await withTaskGroup(of: Void.self) { group in
        for writer in 0..<writers {
            group.addTask {
                var count = 0
                while !Task.isCancelled {
                    count += 1
                    await write("told", "\(writer)-\(count)", store)
                }
            }
        }
        group.addTask {
            var told = ""
            while !Task.isCancelled {
                if let figures = store.postgres {
                    let now = "\(figures.process) \(figures.owned.count) \(figures.beats) \(figures.failedBeats)"
                    if now != told { say("owns", now) }
                    told = now
                }
                try? await Task.sleep(for: .milliseconds(5))
            }
        }
    }
}
terminated.setEventHandler { work.cancel() }
terminated.resume()
asked.setEventHandler { Task { await write("large", "large-\(clock.monotonicNanoseconds)", store) } }
asked.resume()
await work.value
try await store.close()
