/// Finds the server of an address: the host itself, or the one that the sentinels name.
package struct RedisLocator: Sendable {
    private let address: RedisAddress
    private let shard: Int

    /// - Parameter shard: index among the servers; 0 with sentinels.
    package init(_ address: RedisAddress, shard: Int = 0) {
        precondition(shard == 0 || address.sentinel == nil && address.hosts.indices.contains(shard), "the address has no shard \(shard)")
        self.address = address
        self.shard = shard
    }

    /// Where to connect now.
    /// - Throws: when no sentinel knows the server.
    package func locate(_ deadline: ContinuousClock.Instant) throws(RedisFailure) -> (RedisAddress.Host, RedisAddress) {
        guard let name = address.sentinel else { return (address.hosts[shard], address) }
        var asking = address
        (asking.user, asking.password, asking.database) = (nil, address.sentinelPassword, 0)
        var last = RedisFailure.lost("no sentinel answers")
        for (place, sentinel) in address.hosts.enumerated() {
            // A hanging sentinel leaves time for the others.
            let share = (deadline - .now) / Double(address.hosts.count - place)
            do throws(RedisFailure) {
                let connection = try RedisConnection(sentinel, asking, deadline: .now + share)
                let reply = try connection.run(
                    [RedisCommand("SENTINEL GET-MASTER-ADDR-BY-NAME", texts: [name])], deadline: .now + share)[0].value()
                guard let words = reply.array, words.count == 2, let host = words[0].text, let port = words[1].text.flatMap(UInt16.init)
                else {
                    last = .lost("the sentinel \(sentinel.name) knows no server named \(name)")
                    continue
                }
                return (RedisAddress.Host(name: host, port: port), address)
            } catch {
                last = error
            }
        }
        throw last
    }
}
