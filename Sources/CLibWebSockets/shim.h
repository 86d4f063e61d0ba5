// The border to the kernel's sockets, and to libwebsockets and the libuv loop it runs on, which serve TLS. Only what Swift
// cannot import by itself stands here.
#ifndef TANDEM_CLIBWEBSOCKETS_SHIM_H
#define TANDEM_CLIBWEBSOCKETS_SHIM_H

#include <endian.h>
#include <errno.h>
#include <libwebsockets.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <uv.h>

// Hands bytes to the kernel, and never waits. Returns the number of bytes taken, or a negative
// errno. Calls the system directly: send() is a cancellation point, which takes 46 of its 59 instructions. A loop's
// thread is never cancelled.
static inline long tandem_send_by(int descriptor, const void *bytes, size_t count, int flags) {
    long sent = syscall(SYS_sendto, descriptor, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT | flags, NULL, 0);
    return sent < 0 ? -(long)errno : sent;
}

static inline long tandem_send(int descriptor, const void *bytes, size_t count) { return tandem_send_by(descriptor, bytes, count, 0); }

// Takes bytes from the kernel, and never waits. Returns their number, 0 at the end, or a negative errno. For the system call, see
// above.
static inline long tandem_receive(int descriptor, void *bytes, size_t count) {
    long received = syscall(SYS_recvfrom, descriptor, bytes, count, MSG_DONTWAIT, NULL, NULL);
    return received < 0 ? -(long)errno : received;
}

// For bytes that others follow at once: the kernel sends both together, or the first ones after 200 ms.
static inline long tandem_send_first(int descriptor, const void *bytes, size_t count) {
    return tandem_send_by(descriptor, bytes, count, MSG_MORE);
}

// Sends what waits for bytes to follow. Setting the option does so, also where it is set already.
static inline void tandem_send_now(int descriptor) {
    int on = 1;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// The address of a socket's peer as the two halves of an IPv6 address, IPv4 as an IPv4-mapped one; false when unknown.
static inline bool tandem_peer_address(int descriptor, uint64_t *high, uint64_t *low) {
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    if (getpeername(descriptor, (struct sockaddr *)&address, &length) < 0) return false;
    if (address.ss_family == AF_INET) {
        *high = 0;
        *low = 0xFFFFull << 32 | ntohl(((struct sockaddr_in *)&address)->sin_addr.s_addr);
        return true;
    }
    if (address.ss_family != AF_INET6) return false;
    const unsigned char *bytes = ((struct sockaddr_in6 *)&address)->sin6_addr.s6_addr;
    memcpy(high, bytes, 8);
    memcpy(low, bytes + 8, 8);
    *high = be64toh(*high);
    *low = be64toh(*low);
    return true;
}

// Milliseconds since the socket last received bytes of any kind; -1 when unknown.
static inline long tandem_quiet_milliseconds(int descriptor) {
    struct tcp_info facts;
    socklen_t size = sizeof facts;
    if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &facts, &size) != 0) return -1;
    return (long)facts.tcpi_last_data_recv;
}

// accept4() and thread names are GNU extensions, which Swift's Glibc module leaves out.
extern int accept4(int, struct sockaddr *, socklen_t *, int);

static inline int tandem_accept(int listener) {
    return accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

static inline void tandem_name_thread(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

// A macro with arithmetic in it: bytes that framed lws_write() calls may overwrite in front of the payload.
static const int tandem_lws_pre = LWS_PRE;

// Adopts a descriptor as a TLS connection of libwebsockets' raw role: bytes in, bytes out. Its callbacks find `owner`.
static inline struct lws *tandem_lws_adopt(struct lws_vhost *vhost, int descriptor, const char *protocol, void *owner) {
    lws_adopt_desc_t facts = {
        .vh = vhost,
        .type = LWS_ADOPT_SOCKET | LWS_ADOPT_ALLOW_SSL,
        .fd = {.sockfd = descriptor},
        .vh_prot_name = protocol,
        .opaque = owner,
    };
    return lws_adopt_descriptor_vhost_via_info(&facts);
}

// Writes to an established connection: no framing. The library keeps what the kernel does not take.
static inline int tandem_lws_write(struct lws *wsi, const void *bytes, size_t count) {
    return lws_write(wsi, (unsigned char *)bytes, count, LWS_WRITE_RAW);
}

// Sends the alert that ends the TLS stream. The peer's bytes can still be read.
static inline void tandem_lws_finish_sending(struct lws *wsi) {
    SSL *tls = lws_get_ssl(wsi);
    if (!tls || !SSL_is_init_finished(tls)) return;
    // An entry left by an earlier call on this thread would be taken for this connection's error.
    ERR_clear_error();
    SSL_shutdown(tls);
    ERR_clear_error();
}

// Resumes reading, or leaves incoming bytes in the kernel.
static inline void tandem_lws_read_on(struct lws *wsi, bool on) { lws_rx_flow_control(wsi, on ? 1 : 0); }

// LWS_TO_KILL_ASYNC is a macro of a negative number that the prototype wants as int.
static inline void tandem_lws_kill(struct lws *wsi) {
    lws_set_timeout(wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
}

static inline void tandem_lws_no_timeout(struct lws *wsi) { lws_set_timeout(wsi, NO_PENDING_TIMEOUT, 0); }

static inline void tandem_lws_note_poll(uv_handle_t *handle, void *found) {
    if (uv_handle_get_type(handle) == UV_POLL) *(struct lws **)found = (struct lws *)uv_handle_get_data(handle);
}

// The wake-up connection of a new context, which has no other connection yet; NULL without one.
static inline struct lws *tandem_lws_wake_up(uv_loop_t *loop) {
    struct lws *found = NULL;
    uv_walk(loop, tandem_lws_note_poll, &found);
    return found;
}

// Makes the library take a descriptor for closed; false: it still knows the descriptor. Called for the wake-up of a context that ends.
//
// libwebsockets 4.1.6 closes that descriptor twice: in lws_context_destroy() (lws_destroy_event_pipe), and in a closing callback of
// libuv (lws_libuv_closewsi), in a later turn. The number may belong to another thread's socket or another loop's epoll by then, and
// libuv aborts when a loop loses its epoll.
//
// The library has no setter, so the number is searched in the connection's memory; the library's getter proves the hit.
static inline bool tandem_lws_forget_descriptor(struct lws *wsi) {
    int descriptor = lws_get_socket_fd(wsi);
    int *words = (int *)wsi;
    for (size_t index = 0; index < malloc_usable_size(wsi) / sizeof *words; index++) {
        if (words[index] != descriptor) continue;
        words[index] = -1;
        if (lws_get_socket_fd(wsi) == -1) return true;
        words[index] = descriptor;
    }
    return false;
}

#endif
