"""uWebSockets as a peer of loadtest/compare.sh, through the C interface that PyPI's socketify brings.

Python runs once per connection and once per publish; fan-out, framing and joining are uWebSockets' own. socketify's asyncio loop is
left out: it polls libuv without rest, which would be counted as the server's work. A client sends the channel's name and gets
`subscribed`; `POST /publish/NAME` publishes. Runs on any port of 127.0.0.1, told on standard output. Two arguments, a certificate and
its key, are for TLS.
"""

import gc
import resource
import sys

from socketify.native import ffi, lib
from socketify.uv import UVLoop

OUTBOX_BYTES_MAX = 1 << 26
IS_SECURE = int(len(sys.argv) == 3)
TEXT = lib.TEXT
PUBLISH = len("/publish/")
SUBSCRIBED = b"subscribed"
waiting = {}


@ffi.callback("void(uws_websocket_t*, const char*, size_t, uws_opcode_t, void*)")
def on_message(socket, message, length, opcode, _):
    lib.uws_ws_subscribe(IS_SECURE, socket, message, length)
    lib.uws_ws_send(IS_SECURE, socket, SUBSCRIBED, len(SUBSCRIBED), TEXT)


@ffi.callback("void(uws_websocket_t*, int, const char*, size_t, void*)")
def on_close(*_):
    pass


@ffi.callback("void(uws_res_t*, void*)")
def on_aborted(response, _):
    waiting.pop(response, None)


@ffi.callback("void(uws_res_t*, const char*, size_t, bool, void*)")
def on_data(response, chunk, length, is_last, _):
    entry = waiting[response]
    if not is_last or entry[1]:
        entry[1] += ffi.unpack(chunk, length)
        if not is_last:
            return
        chunk, length = bytes(entry[1]), len(entry[1])
    topic = waiting.pop(response)[0]
    lib.uws_publish(IS_SECURE, app, topic, len(topic), chunk, length, TEXT, False)
    lib.uws_res_end(IS_SECURE, response, b"{}", 2, False)


@ffi.callback("void(uws_res_t*, uws_req_t*, void*)")
def on_publish(response, request, _):
    path = ffi.new("char**")
    length = lib.uws_req_get_url(request, path)
    waiting[response] = [ffi.unpack(path[0], length)[PUBLISH:], bytearray()]
    lib.uws_res_on_aborted(IS_SECURE, response, on_aborted, ffi.NULL)
    lib.uws_res_on_data(IS_SECURE, response, on_data, ffi.NULL)


@ffi.callback("void(struct us_listen_socket_t*, uws_app_listen_config_t, void*)")
def on_listening(listener, _config, _):
    if listener == ffi.NULL:
        sys.exit("no port to listen on")
    print(f"ready at {'https' if IS_SECURE else 'http'}://127.0.0.1:{lib.us_socket_local_port(IS_SECURE, listener)}", flush=True)


most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
loop = UVLoop()
lib.uws_get_loop_with_native(loop.get_native_loop())
options = ffi.new("struct us_socket_context_options_t*")
paths = [ffi.new("char[]", path.encode()) for path in sys.argv[1:]]
if IS_SECURE:
    options.cert_file_name, options.key_file_name = paths
app = lib.uws_create_app(IS_SECURE, options[0])
behavior = ffi.new("uws_socket_behavior_t*")
behavior.maxPayloadLength = 1 << 16
behavior.idleTimeout = 0
behavior.maxBackpressure = OUTBOX_BYTES_MAX
behavior.message = on_message
behavior.close = on_close
lib.uws_ws(IS_SECURE, app, b"/", behavior[0], ffi.NULL)
lib.uws_app_post(IS_SECURE, app, b"/publish/*", on_publish, ffi.NULL)
config = ffi.new("uws_app_listen_config_t*")
host = ffi.new("char[]", b"127.0.0.1")
config.host, config.port = host, 0
lib.uws_app_listen_with_config(IS_SECURE, app, config[0], on_listening, ffi.NULL)
gc.freeze()
loop.run()
