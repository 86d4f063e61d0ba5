import HubCore
import HubScaleOut
import RedisModel

/// A real Redis and the modelled one, which get the same commands. One task.
///
/// The model's clock follows the server's. Ids and times differ, and so does the order of what has none.
final class RedisTwins {
    /// Parts of a reply whose order is of no matter.
    enum Order {
        case all
        /// The second item has names and values in turn.
        case list
        /// As a beat answers: nodes and beats in turn first, and a set as third.
        case beat
    }

    let model = RedisModel()
    /// First differences between the two, as text.
    private(set) var differences: [String] = []
    /// The machine stood still within a command. A time may have come in one, and not in the other: nothing can be said from here on.
    private(set) var wasHeldUp = false
    /// First part of the keys of the present epoch.
    private(set) var base = ""
    private let link: RedisLink<Void>
    /// Entries of the stream that were read, by id.
    private var (realPlaces, modelPlaces): ([String: Int], [String: Int]) = ([:], [:])
    private var (realLast, modelLast) = ("0-0", "0-0")
    /// When keys of the model end, or ended lately.
    private var ends: Set<Int64> = []
    /// Milliseconds between the two clocks at the most.
    private static let heldMax: Int64 = 150

    init(_ server: TestRedis) throws {
        let address = try server.address()
        link = RedisLink(name: "twins", locate: { _ in (address.hosts[0], address) }, greet: { _ in })
    }

    /// Reads the stream of another epoch from here on.
    func enter(_ base: String) {
        self.base = base
        (realPlaces, modelPlaces, realLast, modelLast) = ([:], [:], "0-0", "0-0")
    }

    /// Carries out a command in both, and compares replies and announcements.
    /// - Returns: the model's reply.
    @discardableResult
    func perform(_ what: String, _ command: RedisCommand, _ order: Order = .all) async throws -> RedisReply {
        while isNearDeadline(try await readTime()) { try await Task.sleep(for: .milliseconds(100)) }
        let replies = try await ask([RedisCommand("TIME"), command, read(after: realLast), RedisCommand("TIME")])
        noteTime(replies[0], replies[3])
        let reply = model.perform(command)
        if wasHeldUp { return reply }
        let (realNews, modelNews) = (replies[2], model.perform(read(after: modelLast)))
        let told = (note(realNews, &realPlaces, &realLast), note(modelNews, &modelPlaces, &modelLast))
        compare("announcements of \(what)", told.0.sorted(), told.1.sorted())
        compare(what, [describe(replies[1], order, realPlaces)], [describe(reply, order, modelPlaces)])
        return reply
    }

    /// Compares all keys and their contents.
    func compareContents() async throws {
        while isNearDeadline(try await readTime()) { try await Task.sleep(for: .milliseconds(100)) }
        let known = model.memory.keys
        let commands = [RedisCommand("KEYS", texts: ["*"])] + known.flatMap { [read($0.name, $0.kind), RedisCommand("PTTL", [$0.name])] }
        let replies = try await ask([RedisCommand("TIME")] + commands + [RedisCommand("TIME")])
        noteTime(replies[0], replies[replies.count - 1])
        if wasHeldUp { return }
        compare("keys", (replies[1].array ?? []).compactMap(\.text).sorted(), known.map { String(decoding: $0.name, as: UTF8.self) })
        for (place, (name, kind)) in known.enumerated() {
            let (real, own) = (replies[(2 + 2 * place)...], [model.perform(read(name, kind)), model.perform(RedisCommand("PTTL", [name]))])
            let key = String(decoding: name, as: UTF8.self)
            compare("whether \(key) expires", ["\(real[real.startIndex + 1].integer ?? 0 > 0)"], ["\(own[1].integer ?? 0 > 0)"])
            compare(key, contents(real[real.startIndex], kind), contents(own[0], kind))
        }
    }

    private func read(_ name: [UInt8], _ kind: RedisMemory.Kind) -> RedisCommand {
        switch kind {
        case .string: RedisCommand("GET", [name])
        case .hash: RedisCommand("HGETALL", [name])
        case .set: RedisCommand("SMEMBERS", [name])
        case .zset: RedisCommand("ZRANGE", [name, Array("0".utf8), Array("-1".utf8), Array("WITHSCORES".utf8)])
        case .stream: RedisCommand("XREVRANGE", [name, Array("+".utf8), Array("-".utf8)])
        }
    }

    /// Both forget everything, as after a restart.
    func lose() async throws {
        _ = try await ask([RedisCommand("FLUSHALL")])
        model.lose(process: "next")
        try await load()
    }

    /// Both learn the scripts.
    func load() async throws {
        let commands = ScaleOutScripts.all.map(\.load)
        compare("digests", try await ask(commands).map { $0.text ?? "" }, commands.map { model.perform($0).text ?? "" })
    }

    func close() async { await link.close() }

    // MARK: Time

    /// Something whose time comes now may have come in one, and not in the other.
    private func isNearDeadline(_ now: Int64) -> Bool {
        model.now = now
        var times: [Int64] = []
        let lives: [(String, Int64)] = [
            ("leaving", 0), ("staying", 0), ("vacating", 0), ("counting", 0), ("early", 0), ("last-beats", 5_000),
        ]
        for (name, life) in lives {
            let words = model.perform(RedisCommand("ZRANGE", texts: [base + name, "0", "-1", "WITHSCORES"])).array ?? []
            times += stride(from: 1, to: words.count, by: 2).compactMap { words[$0].integer.map { $0 + life } }
        }
        return (times + ends).contains { (now - 2 * Self.heldMax...now + 2 * Self.heldMax).contains($0) }
    }

    /// Sets the model's clock to the server's, before a command.
    private func noteTime(_ before: RedisReply, _ after: RedisReply) {
        let (before, after) = (Self.milliseconds(before), Self.milliseconds(after))
        wasHeldUp = wasHeldUp || after - before > Self.heldMax
        model.now = before
        ends = ends.filter { $0 > before - 4 * Self.heldMax }
        for (name, _) in model.memory.keys {
            if let left = model.perform(RedisCommand("PTTL", [name])).integer, left >= 0 { ends.insert(before + left) }
        }
    }

    private func readTime() async throws -> Int64 { Self.milliseconds(try await ask([RedisCommand("TIME")])[0]) }

    private static func milliseconds(_ reply: RedisReply) -> Int64 {
        let parts = (reply.array ?? []).compactMap(\.integer)
        return parts.count == 2 ? parts[0] * 1_000 + parts[1] / 1_000 : 0
    }

    // MARK: Replies

    private func ask(_ commands: [RedisCommand]) async throws -> [RedisReply] {
        try await withCheckedThrowingContinuation { continuation in
            link.send({ _ in commands }, { continuation.resume(with: $0) })
        }
    }

    private func read(after id: String) -> RedisCommand { RedisCommand("XREAD COUNT 10000 STREAMS", texts: ["\(base)events", id]) }

    /// Remembers entries that were read.
    /// - Returns: their fields.
    private func note(_ reply: RedisReply, _ places: inout [String: Int], _ last: inout String) -> [String] {
        (reply.array?.first?.array?.last?.array ?? []).map { entry in
            let id = entry.array?.first?.text ?? ""
            places[id] = places.count
            last = id
            return describe(entry.array?.last ?? .null)
        }
    }

    /// A reply without its ids, and sorted where order is of no matter.
    private func describe(_ reply: RedisReply, _ order: Order = .all, _ places: [String: Int] = [:]) -> String {
        let parts = reply.array ?? []
        switch order {
        case .list where parts.count == 2:
            return describe(parts[0], .all, places) + " \(pairs(parts[1]))"
        case .beat where parts.count == 7:
            return "\(pairs(parts[0])) \(words(parts[2])) " + describe(.array([parts[1]] + parts[3...]))
        default: break
        }
        return switch reply {
        case .array(let items): "[" + items.map { describe($0, .all, places) }.joined(separator: ", ") + "]"
        case .bytes(let bytes): places[reply.text ?? ""].map { "entry \($0)" } ?? (reply.text.map { "'\($0)'" } ?? "\(bytes)")
        // Redis adds the place in the script to errors of its own.
        case .error(.refused(let code, let message)): code.hasPrefix("TANDEM") ? "\(code) \(message)" : code
        case .error(let failure): "\(failure)"
        case .integer(let number): "\(number)"
        case .null: "nothing"
        }
    }

    private func contents(_ reply: RedisReply, _ kind: RedisMemory.Kind) -> [String] {
        switch kind {
        case .string: [describe(reply)]
        case .hash, .zset: pairs(reply)
        case .set: words(reply)
        case .stream: (reply.array ?? []).map { describe($0.array?.last ?? .null) }.sorted()
        }
    }

    private func words(_ reply: RedisReply) -> [String] { (reply.array ?? [reply]).map { describe($0) }.sorted() }

    /// Names and values in turn, sorted. Times are told in seconds.
    private func pairs(_ reply: RedisReply) -> [String] {
        let words = reply.array ?? []
        guard words.count % 2 == 0, case .array = reply else { return [describe(reply)] }
        return stride(from: 0, to: words.count, by: 2).map { describe(words[$0]) + "=" + describe(words[$0 + 1]) }.sorted()
    }

    private func compare(_ what: String, _ real: [String], _ model: [String]) {
        let isSame = real.count == model.count && zip(real, model).allSatisfy { $0 == $1 || Self.isSameTime($0, $1) }
        if !isSame, differences.count < 10 { differences.append("\(what): Redis has \(real), the model \(model)") }
    }

    /// Whether two values of one name are times that differ by the way of a command.
    private static func isSameTime(_ one: String, _ other: String) -> Bool {
        let parts = [one, other].map { $0.split(separator: "=", omittingEmptySubsequences: false) }
        guard parts[0].dropLast() == parts[1].dropLast() else { return false }
        let times = parts.compactMap { Int64($0.last?.filter { $0 != "'" } ?? "") }
        return times.count == 2 && times.allSatisfy { $0 > 1_000_000_000_000 } && abs(times[0] - times[1]) < 200
    }
}
