internal import HubCore
internal import HubScaleOut

/// The commands, as nodes and their scripts call them.
extension RedisMemory {
    mutating func perform(_ words: [[UInt8]], now: Int64) -> RedisReply {
        do throws(RedisFailure) { return try carryOut(words, now) } catch { return .error(error) }
    }

    private mutating func carryOut(_ words: [[UInt8]], _ now: Int64) throws(RedisFailure) -> RedisReply {
        let name = String(decoding: words[0], as: UTF8.self)
        switch name.utf8.first {
        case UInt8(ascii: "H"): return try hash(name, words)
        case UInt8(ascii: "S") where name != "SET": return try set(name, words)
        case UInt8(ascii: "X"): return try stream(name, words, now)
        case UInt8(ascii: "Z"): return try sortedSet(name, words)
        default: return try plain(name, words, now)
        }
    }

    private mutating func plain(_ name: String, _ words: [[UInt8]], _ now: Int64) throws(RedisFailure) -> RedisReply {
        switch name {
        case "TIME": return .array([.bytes(Array("\(now / 1_000)".utf8)), .bytes(Array("\(now % 1_000 * 1_000)".utf8))])
        case "EXISTS": return .count(words[1...].count { contains($0) })
        case "DEL": return .count(words[1...].count { remove($0) })
        case "PTTL": return .integer(left(words[1], now: now))
        case "EXPIRE": return .flag(setDeadline(words[1], now + 1_000 * (try number(words[2])), now: now))
        case "PEXPIRE": return .flag(setDeadline(words[1], now + (try number(words[2])), now: now))
        case "GET": return (try find(words[1], .string)).map { .bytes($0.string) } ?? .null
        case "SET":
            var (life, place, isNew) = (Int64?.none, 3, false)
            while place < words.count {
                switch String(decoding: words[place], as: UTF8.self) {
                case "NX":
                    isNew = true
                    place += 1
                case "PX", "EX":
                    life = (try number(words[place + 1])) * (words[place] == Array("EX".utf8) ? 1_000 : 1)
                    place += 2
                case let option: fatalError("the model of Redis knows no SET \(option)")
                }
            }
            if isNew, contains(words[1]) { return .null }
            setString(words[1], words[2])
            if let life { _ = setDeadline(words[1], now + life, now: now) }
            return .bytes(Array("OK".utf8))
        default: fatalError("the model of Redis knows no \(name)")
        }
    }

    private mutating func hash(_ name: String, _ words: [[UInt8]]) throws(RedisFailure) -> RedisReply {
        let key = words[1]
        switch name {
        case "HSET":
            return try change(key, .hash) { entry in
                .count(stride(from: 2, to: words.count, by: 2).count { entry.table.set(words[$0], words[$0 + 1]) })
            }
        case "HDEL": return try change(key, .hash) { entry in .count(words[2...].count { entry.table.remove($0) }) }
        case "HINCRBY":
            let step = try number(words[3])
            return try change(key, .hash) { entry throws(RedisFailure) in
                guard let old = integer(entry.table[words[2]] ?? [UInt8(ascii: "0")]) else {
                    throw .refused(code: "ERR", message: "hash value is not an integer")
                }
                _ = entry.table.set(words[2], Array("\(old + step)".utf8))
                return .integer(old + step)
            }
        default: break
        }
        let table = (try find(key, .hash))?.table ?? OrderedTable()
        switch name {
        case "HGET": return table[words[2]].map { .bytes($0) } ?? .null
        case "HEXISTS": return .flag(table.contains(words[2]))
        case "HLEN": return .count(table.count)
        case "HKEYS": return .array(table.all.map { .bytes($0.name) })
        case "HVALS": return .array(table.all.map { .bytes($0.value) })
        case "HGETALL": return .array(table.all.flatMap { [.bytes($0.name), .bytes($0.value)] })
        default: fatalError("the model of Redis knows no \(name)")
        }
    }

    private mutating func set(_ name: String, _ words: [[UInt8]]) throws(RedisFailure) -> RedisReply {
        let key = words[1]
        switch name {
        case "SADD": return try change(key, .set) { entry in .count(words[2...].count { entry.table.set($0, []) }) }
        case "SREM": return try change(key, .set) { entry in .count(words[2...].count { entry.table.remove($0) }) }
        default: break
        }
        let table = (try find(key, .set))?.table ?? OrderedTable()
        switch name {
        case "SISMEMBER": return .flag(table.contains(words[2]))
        case "SMEMBERS": return .array(table.all.map { .bytes($0.name) })
        // The first ones are as good as any.
        case "SRANDMEMBER": return .array(table.all.prefix(Int(try number(words[2]))).map { .bytes($0.name) })
        default: fatalError("the model of Redis knows no \(name)")
        }
    }

    private mutating func sortedSet(_ name: String, _ words: [[UInt8]]) throws(RedisFailure) -> RedisReply {
        let key = words[1]
        switch name {
        case "ZADD":
            let isForNew = words[2] == Array("NX".utf8)
            var scores: [(score: Double, member: [UInt8])] = []
            for place in stride(from: isForNew ? 3 : 2, to: words.count, by: 2) {
                scores.append((try score(words[place]), words[place + 1]))
            }
            return try change(key, .zset) { entry in
                .count(scores.count { !(isForNew && entry.sorted.score($0.member) != nil) && entry.sorted.set($0.member, $0.score) })
            }
        case "ZREM": return try change(key, .zset) { entry in .count(words[2...].count { entry.sorted.remove($0) }) }
        default: break
        }
        let sorted = (try find(key, .zset))?.sorted ?? SortedTable()
        switch name {
        case "ZSCORE": return sorted.score(words[2]).map { .bytes(Array(describe($0).utf8)) } ?? .null
        case "ZCARD": return .count(sorted.count)
        case "ZREMRANGEBYSCORE":
            let gone = sorted.items[sorted.range(try score(words[2]), try score(words[3]))]
            return try change(key, .zset) { entry in .count(gone.count { entry.sorted.remove($0.member) }) }
        case "ZRANGEBYSCORE":
            var items = sorted.items[sorted.range(try score(words[2]), try score(words[3]))]
            if words.count > 4 {
                precondition(words[4] == Array("LIMIT".utf8), "the model of Redis knows no such ZRANGEBYSCORE")
                items = items.dropFirst(Int(try number(words[5]))).prefix(Int(try number(words[6])))
            }
            return .array(items.map { .bytes($0.member) })
        case "ZRANGE":
            let (start, end) = (Int(try number(words[2])), Int(try number(words[3])))
            let bounds = [start, end].map { $0 < 0 ? $0 + sorted.count : $0 }
            let items = sorted.items.prefix(max(0, bounds[1] + 1)).dropFirst(max(0, bounds[0]))
            if words.count == 4 { return .array(items.map { .bytes($0.member) }) }
            return .array(items.flatMap { [.bytes($0.member), .bytes(Array(describe($0.score).utf8))] })
        default: fatalError("the model of Redis knows no \(name)")
        }
    }

    private mutating func stream(_ name: String, _ words: [[UInt8]], _ now: Int64) throws(RedisFailure) -> RedisReply {
        switch name {
        case "XADD":
            precondition(words[2] == [UInt8(ascii: "*")], "the model of Redis knows no such XADD")
            return try change(words[1], .stream) { entry in .id(entry.stream.append(Array(words[3...]), now: now)) }
        case "XTRIM":
            // Redis may keep some older ones.
            precondition(words[2...3].elementsEqual([Array("MINID".utf8), Array("~".utf8)]), "the model of Redis knows no such XTRIM")
            guard contains(words[1]) else { return .count(0) }
            let id = try id(words[4])
            return try change(words[1], .stream) { entry in .count(entry.stream.trim(before: id)) }
        case "XREVRANGE":
            precondition(words[2...3].elementsEqual(["+", "-"].map { Array($0.utf8) }), "the model of Redis knows no such XREVRANGE")
            let items = (try find(words[1], .stream))?.stream.items ?? []
            let most = words.count > 5 ? Int(try number(words[5])) : .max
            return .array(items.suffix(most).reversed().map { .entry($0) })
        case "XREAD": return try read(words)
        default: fatalError("the model of Redis knows no \(name)")
        }
    }

    private func read(_ words: [[UInt8]]) throws(RedisFailure) -> RedisReply {
        var (place, most) = (1, Int.max)
        while words[place] != Array("STREAMS".utf8) {
            if words[place] == Array("COUNT".utf8) { most = Int(try number(words[place + 1])) }
            place += 2
        }
        let names = words[(place + 1)...]
        let half = names.count / 2
        var found: [RedisReply] = []
        for (key, word) in zip(names.prefix(half), names.suffix(half)) {
            let after = try id(word)
            guard let items = (try find(key, .stream))?.stream.entries(after: after, most: most), !items.isEmpty else { continue }
            found.append(.array([.bytes(key), .array(items.map { .entry($0) })]))
        }
        return found.isEmpty ? .null : .array(found)
    }

    // MARK: Arguments

    private func number(_ word: [UInt8]) throws(RedisFailure) -> Int64 {
        guard let number = integer(word) else { throw .refused(code: "ERR", message: "value is not an integer or out of range") }
        return number
    }

    private func score(_ word: [UInt8]) throws(RedisFailure) -> Double {
        guard let score = Double(String(decoding: word, as: UTF8.self)) else {
            throw .refused(code: "ERR", message: "value is not a valid float")
        }
        return score
    }

    private func id(_ word: [UInt8]) throws(RedisFailure) -> StreamID {
        guard let id = StreamID(String(decoding: word, as: UTF8.self)) else {
            throw .refused(code: "ERR", message: "Invalid stream ID specified as stream command argument")
        }
        return id
    }
}

extension RedisReply {
    fileprivate static func flag(_ isTrue: Bool) -> RedisReply { .integer(isTrue ? 1 : 0) }
    fileprivate static func count(_ count: Int) -> RedisReply { .integer(Int64(count)) }
    fileprivate static func id(_ id: StreamID) -> RedisReply { .bytes(Array("\(id)".utf8)) }
    fileprivate static func entry(_ entry: (id: StreamID, fields: [[UInt8]])) -> RedisReply {
        .array([.id(entry.id), .array(entry.fields.map { .bytes($0) })])
    }
}
