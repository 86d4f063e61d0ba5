/// The scripts that nodes call. Redis takes nothing back of a failed script, so each looks at everything before it writes.
package enum ScaleOutScripts {
    /// Milliseconds for which a database is known after the last beat of its nodes.
    static let databaseMilliseconds = 60_000

    /// The database has to be that of the other nodes. The epoch of the memory is the one that is written down, if this process of Redis
    /// wrote it.
    private static let epoch = """
        local database = redis.call('GET', KEYS[2])
        if database and ARGV[5] ~= '' and database ~= ARGV[5] then
          return redis.error_reply('\(ScriptRefusal.database) another database')
        end
        if ARGV[5] ~= '' then redis.call('SET', KEYS[2], ARGV[5], 'PX', \(databaseMilliseconds)) end
        local value = redis.call('GET', KEYS[1])
        if not value or string.match(value, ' (.*)$') ~= ARGV[1] then
          value = ARGV[2] .. ' ' .. ARGV[1]
          redis.call('SET', KEYS[1], value)
          redis.call('SET', ARGV[3] .. ':' .. ARGV[2] .. ':rebuilding', 1, 'EX', \(MemberScripts.lostSeconds))
        end

        """

    /// Epoch of the memory, and 0. KEYS: epoch, database. ARGV: run_id, candidate, prefix, node, identity of the database or nothing.
    package static let hello = RedisScript(epoch + "return {value, 0}")

    /// Epoch of the memory, and the number of a node's new link. KEYS and ARGV as of `hello`.
    package static let open = RedisScript(
        epoch + """
            local base = ARGV[3] .. ':' .. string.match(value, '^(.-) ') .. ':'
            if redis.call('ZSCORE', base .. 'dead', ARGV[4]) then
              return redis.error_reply('\(ScriptRefusal.dead) the node was declared dead')
            end
            return {value, redis.call('HINCRBY', base .. 'nodes', ARGV[4], 1)}
            """)

    /// The check before every write: KEYS: epoch, nodes, … ARGV: epoch, node, link, …
    static let fence = """
        if redis.call('GET', KEYS[1]) ~= ARGV[1] then return redis.error_reply('\(ScriptRefusal.epoch) the memory was lost') end
        if redis.call('HGET', KEYS[2], ARGV[2]) ~= ARGV[3] then return redis.error_reply('\(ScriptRefusal.link) a later link is open') end

        """

    /// Appends a node's entries, but for those that it appended before. KEYS: …, numbers, events. ARGV: …, first number, payloads.
    package static let append = RedisScript(
        fence + """
            local known = tonumber(redis.call('HGET', KEYS[3], ARGV[2]) or '0')
            local first = tonumber(ARGV[4])
            for place = 5, #ARGV do
              if first + place - 5 > known then redis.call('XADD', KEYS[4], '*', 'm', ARGV[place]) end
            end
            local last = first + #ARGV - 5
            if last > known then redis.call('HSET', KEYS[3], ARGV[2], string.format('%.0f', last)) end
            return 'OK'
            """)

    /// All scripts, those of members included.
    package static let all = [hello, open, append] + MemberScripts.all
}
