internal import CLua
internal import HubScaleOut

/// Scripts in a Lua as Redis has it. Each is compiled once.
final class ScriptEngine {
    private var state: OpaquePointer!
    /// References of the compiled scripts, by digest.
    private var scripts: [[UInt8]: CInt] = [:]
    private let perform: ([[UInt8]]) -> RedisReply

    /// Redis answers with an error where a script uses a global variable that is none of Redis'.
    private static let prelude = """
        function redis.error_reply(text) return {err = text} end
        setmetatable(_G, {
          __index = function(_, name) error('Script attempted to access nonexistent global variable \\'' .. tostring(name) .. '\\'', 2) end,
          __newindex = function() error('Attempt to modify a readonly table', 2) end,
        })
        """

    /// - Parameter perform: carries out a command of a script.
    init(_ perform: @escaping ([[UInt8]]) -> RedisReply) {
        self.perform = perform
        state = tandem_lua_open(
            { context, _ in Unmanaged<ScriptEngine>.fromOpaque(context!).takeUnretainedValue().called() },
            Unmanaged.passUnretained(self).toOpaque())
        precondition(luaL_loadstring(state, Self.prelude) == 0 && lua_pcall(state, 0, 0, 0) == 0, "Lua refuses the prelude")
    }

    deinit { lua_close(state) }

    /// Compiles a script.
    /// - Returns: why that is impossible.
    func load(_ body: [UInt8], _ digest: [UInt8]) -> RedisFailure? {
        if scripts[digest] != nil { return nil }
        let code = body.withUnsafeBytes { luaL_loadbuffer(state, $0.bindMemory(to: CChar.self).baseAddress, $0.count, "@user_script") }
        guard code == 0 else {
            defer { lua_settop(state, 0) }
            return .refused(code: "ERR", message: "Error compiling script: " + String(decoding: text(at: -1) ?? [], as: UTF8.self))
        }
        scripts[digest] = luaL_ref(state, LUA_REGISTRYINDEX)
        return nil
    }

    /// Runs a script that was loaded.
    func run(_ digest: [UInt8], keys: ArraySlice<[UInt8]>, arguments: ArraySlice<[UInt8]>) -> RedisReply {
        setGlobal("KEYS", keys)
        setGlobal("ARGV", arguments)
        lua_rawgeti(state, LUA_REGISTRYINDEX, scripts[digest]!)
        let code = lua_pcall(state, 0, 1, 0)
        defer { lua_settop(state, 0) }
        if code == 0 || isError() { return reply() }
        return .error(.refused(code: "ERR", message: String(decoding: text(at: -1) ?? [], as: UTF8.self)))
    }

    private func setGlobal(_ name: StaticString, _ words: ArraySlice<[UInt8]>) {
        push(Array("\(name)".utf8))
        lua_createtable(state, CInt(words.count), 0)
        for (place, word) in words.enumerated() {
            push(word)
            lua_rawseti(state, -2, CInt(place + 1))
        }
        lua_rawset(state, LUA_GLOBALSINDEX)
    }

    // MARK: redis.call

    /// Carries out `redis.call` with the arguments on the stack, and leaves the result there.
    /// - Returns: 1: the result is an error to raise.
    private func called() -> CInt {
        var words: [[UInt8]] = []
        let count = lua_gettop(state)
        words.reserveCapacity(Int(count))
        for place in 0..<count {
            guard let word = argument(at: place + 1) else {
                return raise("ERR", "Lua redis lib command arguments must be strings or integers")
            }
            words.append(word)
        }
        if words.isEmpty { return raise("ERR", "Please specify at least one argument for this redis.call() call") }
        let reply = perform(words)
        switch reply {
        case .error(.refused(let code, let message)): return raise(code, message)
        // Lua tells a status from a string.
        case .bytes(let bytes) where words[0] == Self.set: pushField("ok", bytes)
        default: push(reply)
        }
        return 0
    }

    /// The one command of scripts that answers with a status.
    private static let set = Array("SET".utf8)

    private func argument(at place: CInt) -> [UInt8]? {
        guard lua_type(state, place) == LUA_TNUMBER else { return text(at: place) }
        return Array(describe(lua_tonumber(state, place)).utf8)
    }

    private func raise(_ code: String, _ message: String) -> CInt {
        pushField("err", Array("\(code) \(message)".utf8))
        return 1
    }

    // MARK: Conversions

    /// The string at a place of the stack; nil: it is none.
    private func text(at place: CInt) -> [UInt8]? {
        guard lua_type(state, place) == LUA_TSTRING else { return nil }
        var count = 0
        let start = lua_tolstring(state, place, &count)
        return Array(UnsafeRawBufferPointer(start: start, count: count))
    }

    private func push(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { lua_pushlstring(state, $0.bindMemory(to: CChar.self).baseAddress ?? Self.nothing, $0.count) }
    }

    /// An empty array may have no address, and Lua wants one.
    private static nonisolated(unsafe) let nothing = UnsafePointer(UnsafeMutablePointer<CChar>.allocate(capacity: 1))

    /// Pushes a table with one field.
    private func pushField(_ name: String, _ value: [UInt8]) {
        lua_createtable(state, 0, 1)
        push(value)
        lua_setfield(state, -2, name)
    }

    private func push(_ reply: RedisReply) {
        switch reply {
        case .bytes(let bytes): push(bytes)
        case .integer(let number): lua_pushnumber(state, Double(number))
        case .null: lua_pushboolean(state, 0)
        case .array(let items):
            precondition(lua_checkstack(state, 4) != 0, "Lua has no room")
            lua_createtable(state, CInt(items.count), 0)
            for (place, item) in items.enumerated() {
                push(item)
                lua_rawseti(state, -2, CInt(place + 1))
            }
        case .error(let failure): pushField("err", Array("\(failure)".utf8))
        }
    }

    private func isError() -> Bool {
        guard lua_type(state, -1) == LUA_TTABLE else { return false }
        defer { lua_settop(state, -2) }
        lua_getfield(state, -1, "err")
        return lua_type(state, -1) == LUA_TSTRING
    }

    /// The value on top of the stack as Redis answers it.
    private func reply() -> RedisReply {
        switch lua_type(state, -1) {
        case LUA_TSTRING: .bytes(text(at: -1)!)
        case LUA_TNUMBER: .integer(Int64(lua_tonumber(state, -1)))
        case LUA_TBOOLEAN: lua_toboolean(state, -1) != 0 ? .integer(1) : .null
        case LUA_TTABLE: table()
        default: .null
        }
    }

    /// The table on top of the stack: an error, a status, or its items up to the first nil.
    private func table() -> RedisReply {
        func field(_ name: String) -> [UInt8]? {
            defer { lua_settop(state, -2) }
            lua_getfield(state, -1, name)
            return text(at: -1)
        }
        if let error = field("err") {
            let parts = String(decoding: error, as: UTF8.self).split(separator: " ", maxSplits: 1)
            return .error(.refused(code: parts.first.map(String.init) ?? "", message: parts.count > 1 ? String(parts[1]) : ""))
        }
        if let status = field("ok") { return .bytes(status) }
        precondition(lua_checkstack(state, 4) != 0, "Lua has no room")
        var items: [RedisReply] = []
        while true {
            defer { lua_settop(state, -2) }
            lua_rawgeti(state, -1, CInt(items.count + 1))
            if lua_type(state, -1) == LUA_TNIL { return .array(items) }
            items.append(reply())
        }
    }
}

/// A number as Redis writes it.
func describe(_ number: Double) -> String {
    if let whole = Int64(exactly: number) { return String(whole) }
    return "\(number)"
}
