#include "CLua.h"

#include "/usr/include/lua5.1/lualib.h"

struct border {
    tandem_lua_taker taker;
    void *context;
};

// An error leaves by a long jump, which must not pass over a frame of Swift.
static int call(lua_State *state) {
    const struct border *border = lua_touserdata(state, lua_upvalueindex(1));
    return border->taker(border->context, state) ? lua_error(state) : 1;
}

lua_State *tandem_lua_open(tandem_lua_taker taker, void *context) {
    static const luaL_Reg libraries[] = {
        {"", luaopen_base}, {LUA_TABLIBNAME, luaopen_table}, {LUA_STRLIBNAME, luaopen_string}, {LUA_MATHLIBNAME, luaopen_math}};
    lua_State *state = luaL_newstate();
    if (!state) return NULL;
    for (size_t place = 0; place < sizeof libraries / sizeof *libraries; place++) {
        lua_pushcfunction(state, libraries[place].func);
        lua_pushstring(state, libraries[place].name);
        lua_call(state, 1, 0);
    }
    lua_newtable(state);
    struct border *border = lua_newuserdata(state, sizeof *border);
    *border = (struct border){taker, context};
    lua_pushcclosure(state, call, 1);
    lua_setfield(state, -2, "call");
    lua_setglobal(state, "redis");
    return state;
}
