package import HubCore

/// Facts of one Redis server of the backplane, for the start and for `tandem check --live`. Writes nothing.
package enum RedisCheck {
    /// The answer of a server.
    package struct Answer: Sendable, Equatable {
        /// Version of the server, and the prefix with the nodes that beat under it.
        package let facts: String
        /// Settings and neighbours that endanger the backplane, each with its remedy.
        package let warnings: [String]
    }

    /// Keys that are looked at for those of other programs.
    private static let keysMax = 1_000

    /// Asks the server once, within a second.
    /// - Parameters:
    ///   - shard: index of the server among those of the address; 0 with sentinels.
    ///   - database: identity of the database that the nodes share; nil: not compared.
    ///   - versions: versions of messages that this build reads.
    ///   - now: milliseconds since 1970 by this machine's clock.
    /// - Throws: why the server cannot be the backplane, or does not answer.
    package static func ask(
        _ address: RedisAddress, shard: Int, database: String?, versions: MessageVersions = .known, now: @escaping @Sendable () -> Int64
    ) async throws(RedisFailure) -> Answer {
        let locator = RedisLocator(address, shard: shard)
        let link = RedisLink(
            name: "check", locate: { deadline throws(RedisFailure) in try locator.locate(deadline) },
            greet: { greeter throws(RedisFailure) in try look(greeter, address.prefix, database, versions, now) })
        let answer = Guarded<Answer?>(nil)
        do throws(RedisFailure) {
            _ = try await link.run { greeting in
                answer.withLock { $0 = greeting }
                return []
            }
        } catch {
            await link.close()
            throw error
        }
        await link.close()
        guard let answer = answer.withLock({ $0 }) else { throw .lost("it ended the connection") }
        return answer
    }

    private static func look(
        _ greeter: RedisGreeter, _ prefix: String, _ database: String?, _ versions: MessageVersions, _ now: () -> Int64
    ) throws(RedisFailure) -> Answer {
        let server = try ServerFacts(greeter)
        if let problem = server.problem { throw .unfit(problem) }
        let before = now()
        let time = try greeter.run([RedisCommand("TIME")])[0].array ?? []
        let after = now()
        guard time.count == 2, let seconds = time[0].integer, let microseconds = time[1].integer else {
            throw .notRedis("TIME answers in another shape")
        }
        let replies = try greeter.run([
            RedisCommand("MGET", texts: [ScaleOutKeys.databaseKey(prefix), ScaleOutKeys.epochKey(prefix)]),
            RedisCommand("SCAN", texts: ["0", "COUNT", "\(keysMax)"]),
        ])
        guard let known = replies[0].array, known.count == 2, let scan = replies[1].array, scan.count == 2 else {
            throw .notRedis("MGET or SCAN answers in another shape")
        }
        if let database, let other = known[0].text, other != database { throw .unfit(NodeGreeting.otherDatabase(prefix)) }
        var warnings: [String] = []
        let ahead = ClockDifference.ahead(before: before, after: after, server: seconds * 1_000 + microseconds / 1_000)
        if let warning = ClockDifference.warning(ahead: ahead, of: "Redis") { warnings.append(warning) }
        if let foreign = (scan[1].array ?? []).compactMap(\.text).first(where: { !$0.hasPrefix("\(prefix):") }) {
            warnings.append(
                "others keep keys in this Redis (such as '\(foreign.prefix(40))'): they can fill it or block it; "
                    + "give the hub a server of its own")
        }
        // Some providers allow no CONFIG.
        if server.replicas > 0, let setting = try? greeter.run([RedisCommand("CONFIG GET", texts: ["min-replicas-to-write"])])[0].array,
            setting.last?.text == "0"
        {
            warnings.append(
                "a failover to a replica may lose what was answered, and an old master may go on alone; set min-replicas-to-write 1")
        }
        var beats = 0
        if let epoch = known[1].text {
            let keys = ScaleOutKeys(prefix: prefix, epoch: epoch)
            beats = Int(clamping: try greeter.run([RedisCommand("HLEN", texts: [keys.beats])])[0].integer ?? 0)
            if let theirs = try otherVersions(greeter, keys, versions, at: seconds * 1_000 + microseconds / 1_000) {
                throw .unfit(NodeGreeting.otherVersions(theirs, versions, prefix))
            }
        }
        return Answer(facts: "Redis \(server.version), prefix '\(prefix)', nodes that beat: \(beats)", warnings: warnings)
    }

    /// Versions of messages of a living node that have none in common with this build; nil: there is no such node.
    private static func otherVersions(
        _ greeter: RedisGreeter, _ keys: ScaleOutKeys, _ own: MessageVersions, at now: Int64
    ) throws(RedisFailure) -> String? {
        let since = "\(now - Int64(NodeGreeting.versionMilliseconds))"
        let living = try greeter.run([RedisCommand("ZRANGEBYSCORE", texts: [keys.lastBeats, since, "+inf"])])[0].array ?? []
        let nodes = living.compactMap(\.text)
        if nodes.isEmpty { return nil }
        let replies = try greeter.run([keys.beats, keys.versions].map { RedisCommand("HMGET", texts: [$0] + nodes) })
        let (beats, told) = (replies[0].array ?? [], replies[1].array ?? [])
        // A dead node's last beat stays until its members are gone.
        let theirs = zip(beats, told).filter { $0.0.text != nil }.map { $0.1.text.flatMap { MessageVersions($0) } ?? .untold }
        return theirs.first { !$0.overlaps(own) }?.description
    }
}
