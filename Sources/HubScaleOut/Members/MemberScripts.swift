internal import HubCore

/// The scripts that know who is where. An entry is there or not for each member and node, so a call whose answer was lost is made again.
///
/// The script that sees the first or the last also appends the announcement. So there is one for each change, however many nodes there are.
///
/// Keys, after the epoch:
/// - `on:APP CHANNEL`, a hash, has user and node of every entry;
/// - `users:APP CHANNEL`, a hash, has the number of nodes with entries of the user;
/// - `list:APP CHANNEL`, a hash, has the info of each user whom the others know, those that linger included;
/// - `counts:APP CHANNEL`, a hash, has the subscribers of each node;
/// - `channels:APP`, a hash, has the subscribers of each channel that has some;
/// - `connections:APP`, a hash, has the connections of each node;
/// - `rebuilding` is there for the first minute of each memory, also of the first one;
/// - `recovering` is there for the first seconds of a memory after a lost one;
/// - `early`, a sorted set, has members and channels in a new memory of which webhooks hear later, and when;
/// - `staying`, a sorted set, has members who may come back to a node that has lost them, while they are on another, and until when;
/// - `known`, a set, has those of them of whom a node says that they were there in the lost memory;
/// - `vacating`, a sorted set, has channels without subscribers in a memory in which not every node has written, and when others hear;
/// - `versions`, a hash, has the versions of messages that each node reads;
/// - `facts`, a hash, has what each node tells of itself, and `probes` when its last probe came back, in milliseconds of Redis' clock;
/// - `members-of:NODE`, `channels-of:NODE` and `apps-of:NODE`, sets, name everything that goes with the node.
package enum MemberScripts {
    /// Seconds of a new memory in which nodes may still tell of the end of what an earlier one had.
    static let lostSeconds = 60
    /// Seconds of a new memory after which all nodes are there: others are given up.
    static let splitSeconds = 10
    /// Seconds of a new memory in which it is open whether a member was there in the lost one. After `MemberWishes.rebuildMax` nodes tell
    /// of those who left.
    static let earlySeconds = 9
    /// Milliseconds of these after which every node has written its members.
    private static let unwrittenMilliseconds = 3_000

    /// Functions of all scripts. `base` is the first part of the keys, `events` the stream.
    private static let functions = """
        local base, events = KEYS[3], KEYS[4]
        local function now()
          local time = redis.call('TIME')
          return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
        end
        local function tell(kind, place, ...) return redis.call('XADD', events, '*', 'a', kind, 'p', place, ...) end
        -- Tells of the end of what was there in a memory that was lost, once for all nodes that tell.
        local function tellLost(kind, place, user)
          local key = place .. '\\0' .. user
          if redis.call('SADD', base .. 'lost', key) == 0 then return end
          redis.call('EXPIRE', base .. 'lost', \(lostSeconds))
          if user == '' then tell(kind, place, 'l', 1) else tell(kind, place, 'l', 1, 'u', user) end
        end
        -- Whoever comes so early may have been there in the memory that was lost. The nodes hear of it at once, and webhooks at the end
        -- of this time, if no node says that it was so.
        local function isEarly(key)
          local left = redis.call('PTTL', base .. 'recovering')
          if left <= 0 or redis.call('SISMEMBER', base .. 'lost', key) == 1 then return false end
          redis.call('ZADD', base .. 'early', now() + left, key)
          return true
        end
        -- When every node has written what it has into a new memory; 0 where that is over. Until then the last entry of this memory may
        -- not be the last one of all.
        local function wholeAt()
          local left = redis.call('PTTL', base .. 'recovering') - \(unwrittenMilliseconds)
          return left > 0 and now() + left or 0
        end
        -- An end whose beginning webhooks have not heard, and no node knows, is told after it.
        local function removed(place, user)
          local key, list = place .. '\\0' .. user, base .. 'list:' .. place
          if redis.call('ZREM', base .. 'early', key) == 1 and redis.call('SREM', base .. 'known', key) == 0 then
            tell('added', place, 'c', 1, 'u', user, 'i', redis.call('HGET', list, user) or '')
          end
          redis.call('HDEL', list, user)
          tell('removed', place, 'u', user)
        end
        local function vacated(place)
          if redis.call('ZREM', base .. 'early', place .. '\\0') == 1 then tell('occupied', place, 'c', 1) end
          tell('vacated', place)
        end
        local function last()
          local entry = redis.call('XREVRANGE', events, '+', '-', 'COUNT', 1)[1]
          return entry and entry[1] or '0-0'
        end
        -- The last node's entry of the user goes; the others are told at once, or when `due` has come. A former node's `due` holds, too.
        local function remove(place, user, node, due)
          local key = place .. '\\0' .. user
          redis.call('SREM', base .. 'members-of:' .. node, key)
          if redis.call('HDEL', base .. 'on:' .. place, user .. '\\0' .. node) == 0 then return end
          redis.call('ZREMRANGEBYSCORE', base .. 'staying', '-inf', now())
          local staying = tonumber(redis.call('ZSCORE', base .. 'staying', key) or '0')
          if redis.call('HINCRBY', base .. 'users:' .. place, user, -1) > 0 then
            if due > math.max(staying, now()) then redis.call('ZADD', base .. 'staying', due, key) end
            return
          end
          redis.call('HDEL', base .. 'users:' .. place, user)
          redis.call('ZREM', base .. 'staying', key)
          due = math.max(due, staying, wholeAt())
          if due > 0 then
            redis.call('ZADD', base .. 'leaving', due, key)
          else
            removed(place, user)
          end
        end
        local function count(place, app, channel, node, number, tellsOccupancy, tellsCounts, isRepeated)
          local counts = base .. 'counts:' .. place
          local old, before = tonumber(redis.call('HGET', counts, node) or '0'), 0
          for _, value in ipairs(redis.call('HVALS', counts)) do before = before + tonumber(value) end
          local after = before - old + number
          if number == 0 then
            redis.call('HDEL', counts, node)
            redis.call('SREM', base .. 'channels-of:' .. node, place)
          else
            redis.call('HSET', counts, node, number)
            redis.call('SADD', base .. 'channels-of:' .. node, place)
          end
          if after == 0 then
            redis.call('HDEL', base .. 'channels:' .. app, channel)
          else
            redis.call('HSET', base .. 'channels:' .. app, channel, after)
          end
          local key = place .. '\\0'
          if tellsOccupancy and before == 0 and after > 0 and redis.call('ZREM', base .. 'vacating', place) == 0 then
            if isRepeated or isEarly(key) then tell('occupied', place, 'o', 1) else tell('occupied', place) end
          end
          if isRepeated or after == 0 and not tellsOccupancy then redis.call('ZREM', base .. 'early', key) end
          if tellsOccupancy and before == 0 and after == 0 and isRepeated then tellLost('vacated', place, '') end
          if tellsOccupancy and before > 0 and after == 0 then
            if wholeAt() > 0 then redis.call('ZADD', base .. 'vacating', wholeAt(), place) else vacated(place) end
          end
          if not tellsCounts or before == after then return end
          if after > \(SharedMembers.promptCountsMax) then
            redis.call('ZADD', base .. 'counting', 'NX', now() + \(SharedMembers.countMilliseconds), place)
          else
            redis.call('ZREM', base .. 'counting', place)
            if isRepeated then tell('count', place, 'n', after, 'o', 1) else tell('count', place, 'n', after) end
          end
        end
        -- Members and counts whose time has come are told; answers how many members there were.
        local function settle(most)
          local due = redis.call('ZRANGEBYSCORE', base .. 'leaving', '-inf', now(), 'LIMIT', 0, most)
          for _, key in ipairs(due) do
            local place, user = string.match(key, '^(.-)%z(.*)$')
            redis.call('ZREM', base .. 'leaving', key)
            removed(place, user)
          end
          for _, place in ipairs(redis.call('ZRANGEBYSCORE', base .. 'vacating', '-inf', now(), 'LIMIT', 0, most)) do
            local app, channel = string.match(place, '^(.-) (.*)$')
            redis.call('ZREM', base .. 'vacating', place)
            if redis.call('HEXISTS', base .. 'channels:' .. app, channel) == 0 then vacated(place) end
          end
          for _, key in ipairs(redis.call('ZRANGEBYSCORE', base .. 'early', '-inf', now(), 'LIMIT', 0, most)) do
            local place, user = string.match(key, '^(.-)%z(.*)$')
            redis.call('ZREM', base .. 'early', key)
            if user == '' then
              tell('occupied', place, 'c', 1)
            else
              local standing = redis.call('SREM', base .. 'known', key) == 1 and 'o' or 'c'
              tell('added', place, standing, 1, 'u', user, 'i', redis.call('HGET', base .. 'list:' .. place, user) or '')
            end
          end
          for _, place in ipairs(redis.call('ZRANGEBYSCORE', base .. 'counting', '-inf', now(), 'LIMIT', 0, most)) do
            local app, channel = string.match(place, '^(.-) (.*)$')
            redis.call('ZREM', base .. 'counting', place)
            tell('count', place, 'n', redis.call('HGET', base .. 'channels:' .. app, channel) or 0)
          end
          return #due
        end

        """

    /// A user's entry of the node. ARGV: …, place, user, info, members at most, 0. In place of 0: 1 if a memory that was lost had it, 2 if
    /// for a moment only.
    ///
    /// Answers `full`, or an id and whether the coming was told by this call. A node that has read up to the id knows of the member.
    package static let join = RedisScript(
        ScaleOutScripts.fence + functions + """
            local place, user, info, isRepeated = ARGV[4], ARGV[5], ARGV[6], ARGV[8] == '1'
            local users, list = base .. 'users:' .. place, base .. 'list:' .. place
            local isThere = redis.call('HEXISTS', users, user) == 1
            if not isThere and redis.call('HLEN', users) >= tonumber(ARGV[7]) then return 'full' end
            local lingers = redis.call('ZREM', base .. 'leaving', place .. '\\0' .. user) == 1
            local id, isTold
            local key = place .. '\\0' .. user
            if isRepeated then redis.call('ZREM', base .. 'early', key) end
            if not isThere and not lingers then
              -- A user who signs in is nothing for webhooks.
              if isRepeated then
                id = tell('added', place, 'u', user, 'i', info, 'o', 1)
              elseif string.sub(place, -1) ~= ' ' and isEarly(key) then
                -- Nodes may have read a recent coming in the lost memory. That does not mean that it was told.
                if ARGV[8] == '2' then
                  id = tell('added', place, 'u', user, 'i', info, 'o', 1)
                else
                  id = tell('added', place, 'u', user, 'i', info, 'o', 1, 'e', 1)
                end
              else
                id = tell('added', place, 'u', user, 'i', info)
              end
              isTold = true
              if redis.call('EXISTS', base .. 'rebuilding') == 1 then
                redis.call('SADD', base .. 'lost', key)
                redis.call('EXPIRE', base .. 'lost', \(lostSeconds))
              end
            elseif redis.call('HGET', list, user) ~= info then
              id = tell('info', place, 'u', user, 'i', info)
            end
            redis.call('HSET', list, user, info)
            if redis.call('HSET', base .. 'on:' .. place, user .. '\\0' .. ARGV[2], '') == 1 then
              redis.call('HINCRBY', users, user, 1)
              redis.call('SADD', base .. 'members-of:' .. ARGV[2], key)
              redis.call('ZREM', base .. 'staying', key)
            end
            return {id or last(), isTold and 1 or 0}
            """)

    /// Says that a memory was lost before this one. A node that joins anew later than `splitSeconds` says nothing new.
    package static let lost = RedisScript(
        ScaleOutScripts.fence + functions + """
            if redis.call('PTTL', base .. 'rebuilding') > \((lostSeconds - splitSeconds) * 1_000) then
              redis.call('SET', base .. 'recovering', 1, 'PX', \(earlySeconds * 1_000), 'NX')
            end
            return 'OK'
            """)

    /// Says that a member was there in a memory that was lost, of whom webhooks would hear as of a new one. ARGV: …, place, user.
    package static let known = RedisScript(
        ScaleOutScripts.fence + functions + """
            local key = ARGV[4] .. '\\0' .. ARGV[5]
            if redis.call('ZSCORE', base .. 'early', key) then
              redis.call('SADD', base .. 'known', key)
              redis.call('EXPIRE', base .. 'known', \(lostSeconds))
            end
            return 'OK'
            """)

    /// The members of a place, those that linger included. ARGV: …, place. Answers the id of the stream's end, and users and infos in turn.
    package static let list = RedisScript(
        ScaleOutScripts.fence + functions + """
            return {last(), redis.call('HGETALL', base .. 'list:' .. ARGV[4])}
            """)

    /// Whether users of a place are known to the others. ARGV: …, place, users. Answers the id of the stream's end, and 1 or 0 for each.
    package static let online = RedisScript(
        ScaleOutScripts.fence + functions + """
            local known = {}
            for place = 5, #ARGV do known[place - 4] = redis.call('HEXISTS', base .. 'list:' .. ARGV[4], ARGV[place]) end
            return {last(), known}
            """)

    /// The node's connections of an app, more of them as far as the limit allows. ARGV: …, app, number that it has, number that it wants,
    /// limit or 0. Answers the number that it may have: never less than it has.
    package static let quota = RedisScript(
        ScaleOutScripts.fence + functions + """
            local counts, others = base .. 'connections:' .. ARGV[4], 0
            local has, wants, limit = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
            if limit > 0 and wants > has then
              local all = redis.call('HGETALL', counts)
              for place = 1, #all, 2 do
                if all[place] ~= ARGV[2] then others = others + tonumber(all[place + 1]) end
              end
              wants = math.max(has, math.min(wants, limit - others))
            end
            if wants == 0 then
              redis.call('HDEL', counts, ARGV[2])
              redis.call('SREM', base .. 'apps-of:' .. ARGV[2], ARGV[4])
            else
              redis.call('HSET', counts, ARGV[2], wants)
              redis.call('SADD', base .. 'apps-of:' .. ARGV[2], ARGV[4])
            end
            return wants
            """)

    /// Ends a user's entry of the node. ARGV: …, place, user, milliseconds of lingering, whether Redis had it in a memory that
    /// was lost, whether to linger in a small channel, too. Answers 1, or 0 if the others know already that the user is not there.
    package static let leave = RedisScript(
        ScaleOutScripts.fence + functions + """
            local linger, isKnown = tonumber(ARGV[6]), redis.call('HEXISTS', base .. 'list:' .. ARGV[4], ARGV[5])
            local lingers = linger > 0
              and (ARGV[8] == '1' or redis.call('HLEN', base .. 'list:' .. ARGV[4]) > \(SharedMembers.promptMembersMax))
            local isThere = redis.call('HEXISTS', base .. 'on:' .. ARGV[4], ARGV[5] .. '\\0' .. ARGV[2]) == 1
            if ARGV[7] == '1' then redis.call('ZREM', base .. 'early', ARGV[4] .. '\\0' .. ARGV[5]) end
            remove(ARGV[4], ARGV[5], ARGV[2], lingers and now() + linger or 0)
            if ARGV[7] == '1' and not isThere and redis.call('HEXISTS', base .. 'list:' .. ARGV[4], ARGV[5]) == 0 then
              tellLost('removed', ARGV[4], ARGV[5])
            end
            return ARGV[7] == '1' and 1 or isKnown
            """)

    /// The node's subscribers of a channel. ARGV: …, place, app, channel, number, whether to tell occupancy, whether to tell counts,
    /// whether Redis had it in a memory that was lost.
    package static let subscribers = RedisScript(
        ScaleOutScripts.fence + functions + """
            count(ARGV[4], ARGV[5], ARGV[6], ARGV[2], tonumber(ARGV[7]), ARGV[8] == '1', ARGV[9] == '1', ARGV[10] == '1')
            return 'OK'
            """)

    /// Tells of members and counts whose time has come. ARGV: …, at most. Answers how many members there were.
    package static let settle = RedisScript(
        ScaleOutScripts.fence + functions + """
            return settle(tonumber(ARGV[4]))
            """)

    /// The node's sign of life. The first one is refused while a node lives that has no version of messages in common with it.
    /// KEYS: …, database. ARGV: …, and the first three may be empty:
    /// - identity of the database;
    /// - facts of the node;
    /// - milliseconds since its last probe;
    /// - milliseconds for which a probe counts;
    /// - lowest and highest version of messages that the node reads.
    ///
    /// Answers a list:
    /// - nodes and their beats in turn;
    /// - the number of members and counts that wait;
    /// - dead nodes that are not swept;
    /// - the number of other nodes whose last probe counts;
    /// - the highest version that all nodes with a beat read;
    /// - the same without this node, or 0 where there is no other;
    /// - the number of things on the board of the nodes (`NodeBoard`).
    package static let beat = RedisScript(
        ScaleOutScripts.fence + functions + """
            local lowest, highest, others = tonumber(ARGV[8]), tonumber(ARGV[9]), 0
            local isFirst = redis.call('HEXISTS', base .. 'beats', ARGV[2]) == 0
            for _, node in ipairs(redis.call('HKEYS', base .. 'beats')) do
              if node ~= ARGV[2] then
                local theirs = redis.call('HGET', base .. 'versions', node) or '\(MessageVersions.untold)'
                local low, high = string.match(theirs, '^(%d+)-(%d+)$')
                low, high = tonumber(low), tonumber(high)
                if isFirst and (low > highest or high < lowest) then
                  local at = tonumber(redis.call('ZSCORE', base .. 'last-beats', node) or '0')
                  if now() - at < \(NodeGreeting.versionMilliseconds) then
                    return redis.error_reply('\(ScriptRefusal.version) ' .. theirs)
                  end
                end
                if others == 0 or high < others then others = high end
              end
            end
            redis.call('HSET', base .. 'versions', ARGV[2], lowest .. '-' .. highest)
            local common = others == 0 and highest or math.min(highest, others)
            if ARGV[4] ~= '' and (redis.call('GET', KEYS[5]) or ARGV[4]) == ARGV[4] then
              redis.call('SET', KEYS[5], ARGV[4], 'PX', \(ScaleOutScripts.databaseMilliseconds))
            end
            redis.call('HINCRBY', base .. 'beats', ARGV[2], 1)
            redis.call('ZADD', base .. 'last-beats', now(), ARGV[2])
            local waiting = 0
            for _, name in ipairs({'leaving', 'vacating', 'counting', 'early'}) do waiting = waiting + redis.call('ZCARD', base .. name) end
            if ARGV[5] ~= '' then redis.call('HSET', base .. 'facts', ARGV[2], ARGV[5]) end
            if ARGV[6] ~= '' then redis.call('HSET', base .. 'probes', ARGV[2], string.format('%.0f', now() - tonumber(ARGV[6]))) end
            local probes, seen = redis.call('HGETALL', base .. 'probes'), 0
            for place = 1, #probes, 2 do
              if probes[place] ~= ARGV[2] and now() - tonumber(probes[place + 1]) < tonumber(ARGV[7]) then seen = seen + 1 end
            end
            local board = redis.call('EXISTS', \(NodeBoard.names.map { "base .. '\($0)'" }.joined(separator: ", ")))
            local beats, sweeping = redis.call('HGETALL', base .. 'beats'), redis.call('SMEMBERS', base .. 'sweeping')
            return {beats, waiting, sweeping, seen, common, others, board}
            """)

    /// Declares a node dead: from here on its scripts are refused. ARGV: …, the dead one, its beat as it was seen; empty: it has none here.
    /// A node that stops declares itself dead, whatever its beat.
    package static let declareDead = RedisScript(
        ScaleOutScripts.fence + functions + """
            if ARGV[4] ~= ARGV[2] and (redis.call('HGET', base .. 'beats', ARGV[4]) or '') ~= ARGV[5] then return 0 end
            redis.call('HDEL', KEYS[2], ARGV[4])
            redis.call('HDEL', base .. 'beats', ARGV[4])
            redis.call('HDEL', base .. 'facts', ARGV[4])
            redis.call('HDEL', base .. 'probes', ARGV[4])
            redis.call('HDEL', base .. 'versions', ARGV[4])
            redis.call('ZADD', base .. 'dead', now(), ARGV[4])
            redis.call('ZREMRANGEBYSCORE', base .. 'dead', '-inf', now() - 86400000)
            redis.call('SADD', base .. 'sweeping', ARGV[4])
            tell('node', ARGV[4])
            return 1
            """)

    /// Removes a piece of what a dead node left: its members first, and its subscribers once these were told removed. ARGV: …, the dead
    /// one, at most, milliseconds until its members are removed, further ones in large channels. Answers whether more can be done now.
    package static let sweep = RedisScript(
        ScaleOutScripts.fence + functions + """
            local node, most = ARGV[4], tonumber(ARGV[5])
            if redis.call('SISMEMBER', base .. 'sweeping', node) == 0 then return 0 end
            local due = tonumber(redis.call('ZSCORE', base .. 'last-beats', node) or now()) + tonumber(ARGV[6])
            local dueLarge = due + tonumber(ARGV[7])
            for _, app in ipairs(redis.call('SMEMBERS', base .. 'apps-of:' .. node)) do
              redis.call('HDEL', base .. 'connections:' .. app, node)
            end
            redis.call('DEL', base .. 'apps-of:' .. node)
            local members = redis.call('SRANDMEMBER', base .. 'members-of:' .. node, most)
            for _, key in ipairs(members) do
              local place, user = string.match(key, '^(.-)%z(.*)$')
              local isLarge = redis.call('HLEN', base .. 'list:' .. place) > \(SharedMembers.promptMembersMax)
              remove(place, user, node, isLarge and dueLarge or due)
            end
            if #members > 0 then return 1 end
            local time = now()
            if time < due then return 0 end
            if settle(most) == most then return 1 end
            local channels, large = redis.call('SRANDMEMBER', base .. 'channels-of:' .. node, most), 0
            for _, place in ipairs(channels) do
              if time < dueLarge and redis.call('HLEN', base .. 'list:' .. place) > \(SharedMembers.promptMembersMax) then
                large = large + 1
              else
                local app, channel = string.match(place, '^(.-) (.*)$')
                count(place, app, channel, node, 0, true, true)
              end
            end
            if #channels > large then return 1 end
            if large > 0 then return 0 end
            redis.call('SREM', base .. 'sweeping', node)
            redis.call('ZREM', base .. 'last-beats', node)
            redis.call('HDEL', base .. 'numbers', node)
            redis.call('DEL', base .. 'to:' .. node)
            return 0
            """)

    static let all = [join, lost, known, list, online, quota, leave, subscribers, settle, beat, declareDead, sweep]
}
