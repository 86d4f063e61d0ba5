import Foundation
import HubStorage
import HubTesting
import StoreTesting
import Synchronization
import Testing

/// One process has a store, whatever path it knows it by.
@Suite("The store's lock")
struct StoreLockTests {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func refusal(_ path: String) throws -> StorageError {
        try #require(#expect(throws: StorageError.self, "\(path)") { _ = try StoreLock(store: path) })
    }

    @Test("who comes second is refused at once, by the first one's process id, and changes nothing")
    func second() throws {
        let path = folder.file("data/tandem.db")
        let lock = try StoreLock(store: path)
        try Data("as it was".utf8).write(to: URL(fileURLWithPath: path))
        let error = try refusal(path)
        #expect(error.code == .inUse && error.message.contains(path) && error.message.contains("pid \(getpid());"))
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data("as it was".utf8))
        let mode = try FileManager.default.attributesOfItem(atPath: lock.path)[.posixPermissions] as? NSNumber
        #expect(mode?.intValue == 0o600)
        withExtendedLifetime(lock) {}
    }

    @Test("a symbolic link, a linked folder and a relative path come to the same lock")
    func otherPaths() throws {
        let path = folder.file("data/tandem.db")
        // A link may be there before what it names.
        try FileManager.default.createDirectory(atPath: folder.file("data"), withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(atPath: folder.file("link.db"), withDestinationPath: "data/tandem.db")
        try FileManager.default.createSymbolicLink(atPath: folder.file("linked"), withDestinationPath: folder.file("data"))
        let lock = try StoreLock(store: folder.file("link.db"))
        let up = String(repeating: "../", count: FileManager.default.currentDirectoryPath.split(separator: "/").count)
        let others = [
            path, folder.file("link.db"), folder.file("linked/tandem.db"), folder.file("data/../data/./tandem.db"), up + path.dropFirst(),
        ]
        for other in others { #expect(try refusal(other).code == .inUse, "\(other)") }
        withExtendedLifetime(lock) {}
        _ = try StoreLock(store: folder.file("data/another.db"))
    }

    @Test("what a crashed process left is no obstacle, and names the new owner from then on")
    func stale() async throws {
        let path = folder.file()
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let lock = try StoreLock(store: path)
            withExtendedLifetime(lock) { _ = kill(getpid(), SIGKILL) }
        }
        #expect(try String(contentsOfFile: path + ".lock", encoding: .utf8) != "\(getpid())\n")
        let lock = try StoreLock(store: path)
        #expect(try String(contentsOfFile: lock.path, encoding: .utf8) == "\(getpid())\n")
    }

    /// A number closed twice is somebody else's file by the second time.
    @Test("a refusal closes its own descriptor, and none that another thread has opened meanwhile")
    func descriptors() async throws {
        let path = folder.file()
        let lock = try StoreLock(store: path)
        let isOver = Atomic(false)
        async let stolen = onOwnThread {
            var count = 0
            while !isOver.load(ordering: .relaxed) {
                let descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
                for _ in 0..<10 { _ = sched_yield() }
                if close(descriptor) != 0 { count += 1 }
            }
            return count
        }
        for _ in 0..<1000 { #expect(try refusal(path).code == .inUse) }
        isOver.store(true, ordering: .relaxed)
        #expect(try await stolen == 0)
        withExtendedLifetime(lock) {}
    }

    @Test("a lock that is given up is the next one's")
    func givenUp() throws {
        for _ in 0..<2 { _ = try StoreLock(store: folder.file()) }
    }

    @Test("a lock that cannot be made is refused with the system's reason")
    func noLock() throws {
        let path = folder.file()
        try FileManager.default.createDirectory(atPath: path + ".lock", withIntermediateDirectories: true)
        let error = try refusal(path)
        #expect(error.code == .notWritable && error.message.contains("directory"))
    }
}
