import Dispatch
import HubTesting
import Synchronization
import Testing

@testable import HubServer

@Suite("ServiceManager on a real datagram socket")
struct ServiceManagerTests {
    @Test("each state is one message, at a path and at an abstract name", arguments: [false, true])
    func states(isAbstract: Bool) throws {
        let end = try NotifySocket(isAbstract: isAbstract)
        let manager = try #require(ServiceManager(environment: ["NOTIFY_SOCKET": end.name]))
        #expect(manager.tell(.ready(status: "Serves\nport 6001")) && end.next() == "READY=1\nSTATUS=Serves port 6001")
        #expect(manager.tell(.reloading))
        let reloading = try #require(end.next()).split(separator: "\n")
        #expect(reloading.first == "RELOADING=1")
        let told = try #require(reloading.first { $0.hasPrefix("MONOTONIC_USEC=") }.flatMap { Int64($0.dropFirst(15)) })
        #expect(abs(told - Int64(DispatchTime.now().uptimeNanoseconds / 1000)) < 3_600_000_000, "the clock that systemd compares with")
        #expect(manager.tell(.stopping) && end.next()?.hasPrefix("STOPPING=1\n") == true)
        #expect(manager.tell(.alive) && end.next() == "WATCHDOG=1" && end.next() == nil)
    }

    @Test("a manager that has gone costs nothing but the message")
    func gone() throws {
        var end: NotifySocket? = try NotifySocket(isAbstract: true)
        let manager = try #require(ServiceManager(environment: ["NOTIFY_SOCKET": end?.name ?? ""]))
        end = nil
        #expect(!manager.tell(.alive))
    }

    @Test(
        "no manager, or an address of another kind",
        arguments: [nil, "", "@", "relative", "vsock:2:1234", "/" + String(repeating: "x", count: 107)])
    func none(name: String?) {
        #expect(ServiceManager(environment: name.map { ["NOTIFY_SOCKET": $0] } ?? [:]) == nil)
    }

    @Test("the watchdog's limit counts for the process that it names")
    func limits() {
        #expect(ServiceManager.watchdog(["WATCHDOG_USEC": "30000000"], pid: 7) == .seconds(30))
        #expect(ServiceManager.watchdog(["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "7"], pid: 7) == .seconds(30))
        #expect(ServiceManager.watchdog(["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "8"], pid: 7) == nil)
        for text in ["0", "-1", "soon", ""] { #expect(ServiceManager.watchdog(["WATCHDOG_USEC": text]) == nil) }
        #expect(ServiceManager.watchdog([:]) == nil)
    }

    @Test("the watchdog hears of every proof, and of nothing while a part hangs")
    func watchdog() async throws {
        let end = try NotifySocket(isAbstract: true)
        let manager = try #require(ServiceManager(environment: ["NOTIFY_SOCKET": end.name, "WATCHDOG_USEC": "2000"]))
        let (hang, release) = AsyncStream.makeStream(of: Void.self)
        let proofs = Mutex(0)
        let task = Task {
            await manager.keepAlive {
                let count = proofs.withLock { count in
                    count += 1
                    return count
                }
                if count == 4 { for await _ in hang {} }
            }
        }
        while proofs.withLock({ $0 }) < 4 { try await Task.sleep(for: .milliseconds(1)) }
        for _ in 0..<3 { #expect(end.next() == "WATCHDOG=1") }
        #expect(end.next() == nil, "the fourth proof is open")
        release.finish()
        while proofs.withLock({ $0 }) < 6 { try await Task.sleep(for: .milliseconds(1)) }
        #expect(end.next() == "WATCHDOG=1")
        task.cancel()
        await task.value
    }

    @Test("without a limit nothing is told")
    func withoutWatchdog() async throws {
        let end = try NotifySocket(isAbstract: true)
        let manager = try #require(ServiceManager(environment: ["NOTIFY_SOCKET": end.name]))
        await manager.keepAlive { Issue.record("nobody waits for a proof") }
        #expect(end.next() == nil)
    }

    @Test("one socket for this process is taken over, others are not")
    func inherited() throws {
        #expect(try InheritedSocket.descriptor(in: ["LISTEN_FDS": "1", "LISTEN_PID": "7"], pid: 7) == 3)
        #expect(try InheritedSocket.descriptor(in: ["LISTEN_FDS": "1", "LISTEN_PID": "8"], pid: 7) == nil)
        #expect(try InheritedSocket.descriptor(in: ["LISTEN_FDS": "1"], pid: 7) == nil)
        #expect(try InheritedSocket.descriptor(in: [:]) == nil)
        let error = #expect(throws: ServerError.self) {
            try InheritedSocket.descriptor(in: ["LISTEN_FDS": "2", "LISTEN_PID": "7"], pid: 7)
        }
        #expect(error?.exitCode == .badConfiguration && error?.description.contains("ListenStream=") == true)
    }
}
