#pragma once

// Named by its place, because the package asks pkg-config for nothing that the hub does without.
#include "/usr/include/lua5.1/lauxlib.h"
#include "/usr/include/lua5.1/lua.h"

/// Carries out a call of `redis.call`: its arguments are on the stack, and what it leaves on top is the result.
/// Returns nonzero when the result is an error to raise.
typedef int (*tandem_lua_taker)(void *context, lua_State *state);

/// A Lua with the libraries that scripts of Redis have and use, and with `redis.call`; NULL: there is no memory.
lua_State *tandem_lua_open(tandem_lua_taker taker, void *context);
