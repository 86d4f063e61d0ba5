// The yardstick for a publish: the least that an HTTP endpoint on libwebsockets does. It runs on the library's libuv event
// loop as the hub does, reads a whole request body, looks at nothing, and answers as the hub answers a publish, in one write.
//
// It answers within the callback that tells the body's end. Asking for a writable callback first, as the library's own
// examples do, would cost it more and flatter the hub.
#include <libwebsockets.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// As much as the hub takes (`LoopOptions.bodyBytesMax`).
#define BODY_BYTES_MAX (1 << 20)

struct session {
    size_t body_bytes;
};

static unsigned char body[BODY_BYTES_MAX];
static char answer[] = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";

static int callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t count) {
    struct session *session = user;
    switch (reason) {
    case LWS_CALLBACK_HTTP:
        session->body_bytes = 0;
        return 0;
    case LWS_CALLBACK_HTTP_BODY:
        if (session->body_bytes + count > BODY_BYTES_MAX) return -1;
        // The loop has one thread and a body arrives in one piece here, so that one buffer does for all connections.
        memcpy(body + session->body_bytes, in, count);
        session->body_bytes += count;
        return 0;
    case LWS_CALLBACK_HTTP_BODY_COMPLETION:
        if (lws_write(wsi, (unsigned char *)answer, sizeof answer - 1, LWS_WRITE_HTTP) < (int)sizeof answer - 1) return -1;
        return lws_http_transaction_completed(wsi) ? -1 : 0;
    default:
        return 0;
    }
}

static void end(int signal_number) {
    (void)signal_number;
    _exit(0);
}

int main(void) {
    lws_set_log_level(LLL_ERR | LLL_WARN, NULL);
    const struct lws_protocols protocols[] = {
        {.name = "bare", .callback = callback, .per_session_data_size = sizeof(struct session), .rx_buffer_size = 512},
        {.name = NULL},
    };
    struct lws_context_creation_info info = {0};
    info.options = LWS_SERVER_OPTION_LIBUV | LWS_SERVER_OPTION_DISABLE_IPV6 | LWS_SERVER_OPTION_EXPLICIT_VHOSTS;
    info.protocols = protocols;
    // As the hub: `LoopOptions.headBytesMax` and `keepAliveSeconds`.
    info.max_http_header_data = info.max_http_header_data2 = 16384;
    info.keepalive_timeout = 75;
    info.timeout_secs = info.timeout_secs_ah_idle = 300;
    info.iface = "127.0.0.1";
    struct lws_context *context = lws_create_context(&info);
    struct lws_vhost *vhost = context ? lws_create_vhost(context, &info) : NULL;
    if (!vhost) return 1;
    // The library has caught this signal for itself, and would go on.
    signal(SIGTERM, end);
    printf("ready at http://127.0.0.1:%d\n", lws_get_vhost_listen_port(vhost));
    fflush(stdout);
    while (lws_service(context, 0) >= 0) {
    }
    lws_context_destroy(context);
    return 1;
}
