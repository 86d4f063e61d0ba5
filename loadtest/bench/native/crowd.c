// A crowd of WebSocket clients in one thread, told on standard input what to do: to come all at once, to vanish all at once, to
// wait for being sent away. Each line it is given is answered by one line of JSON, so that who measures needs no clock of its own.
//
// `tandem-loadtest crowd` and `churn` cannot take its place, because they run a scenario to its end. Phases of callgrind need exact
// numbers of clients. Idle memory, repeated resets and the drain after SIGTERM are read between two commands.
//
//   crowd PORT KEY SECRET CHANNEL [tls] [bare] [user=PREFIX]
//
// CHANNEL is subscribed to by everybody; `private-` and `presence-` ones are signed here, as a backend would sign them. A `%` in
// it becomes the client's number modulo 16. `bare` ends at the upgrade: nothing is subscribed to. Members of presence channels are
// PREFIX (`u` unless given) and their number.
//
//   open N     N more clients, their connects all sent at once; answered when they are all subscribed
//   drop       everybody is gone without a word (RST), sockets first, memory later
//   drain      waits until the server has sent everybody away
//   say        what has been read since the last `say`
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24
#endif

enum { PREFIX_MAX = 480, CLIENTS_MAX = 1 << 20, PER_SOURCE = 20000, READ_BYTES = 1 << 16, EVENTS_MAX = 1024 };
enum phase { CONNECTING, HANDSHAKING, UPGRADING, GREETED, SUBSCRIBING, SUBSCRIBED, ENDED };

struct client {
    int descriptor;
    enum phase phase;
    SSL *tls;
    double began;
    // The frame being read: its head, how much of its payload is still to come, and the beginning of that payload. What a client
    // keeps of a message is bounded, because a big presence channel's first one is long.
    unsigned char head[10];
    unsigned head_count;
    unsigned long long left;
    unsigned prefix_count;
    char *prefix;
    unsigned short close_code;
};

static struct client *clients;
static int client_count, open_count, subscribed_count, wanted_count, failed_count;
static int epoll, port;
static const char *key, *secret, *channel, *prefix = "u";
static bool is_tls, is_bare;
static SSL_CTX *tls_context;
static double *latencies;
static int latency_count;
static unsigned long long bytes_read, messages, members_added, members_removed, pings;
static double command_began, first_end, last_end;
static int ended_in_order;
static enum { IDLE, OPENING, DRAINING } command;
static unsigned char chunk[READ_BYTES];

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void die(const char *what) {
    fprintf(stderr, "crowd: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int write_all(struct client *client, const void *bytes, int count) {
    // Nothing a client says is longer than a socket's buffer has room for.
    int written = client->tls ? SSL_write(client->tls, bytes, count) : (int)send(client->descriptor, bytes, count, MSG_NOSIGNAL);
    return written == count ? 0 : -1;
}

static void watch(struct client *client, unsigned events) {
    struct epoll_event event = {.events = events, .data.u32 = (unsigned)(client - clients)};
    if (epoll_ctl(epoll, EPOLL_CTL_MOD, client->descriptor, &event) < 0) die("epoll_ctl");
}

// The socket is gone at once; `reset` without a close handshake of TCP, as a network that went away looks in the end.
static void end(struct client *client, bool reset) {
    if (client->phase == ENDED) return;
    if (client->phase == SUBSCRIBED) subscribed_count--;
    client->phase = ENDED;
    open_count--;
    if (reset) {
        struct linger linger = {.l_onoff = 1, .l_linger = 0};
        setsockopt(client->descriptor, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    }
    close(client->descriptor);
}

static void forget(struct client *client) {
    if (client->tls) SSL_free(client->tls);
    client->tls = NULL;
    free(client->prefix);
    client->prefix = NULL;
}

static void fail(struct client *client) {
    double time = now();
    if (client->phase == ENDED) return;
    if (client->phase == SUBSCRIBED) {
        if (!first_end) first_end = time;
        last_end = time;
        if (client->close_code == 4200) ended_in_order++;
    } else {
        failed_count++;
    }
    end(client, false);
    forget(client);
}

static int say(struct client *client, int opcode, const char *payload, int count) {
    unsigned char frame[PREFIX_MAX + 8];
    int head = 2;
    frame[0] = 0x80 | opcode;
    if (count < 126) {
        frame[1] = 0x80 | count;
    } else {
        frame[1] = 0x80 | 126;
        frame[2] = count >> 8;
        frame[3] = count & 0xFF;
        head = 4;
    }
    // A mask of zeros is legal (RFC 6455, 5.3).
    memset(frame + head, 0, 4);
    memcpy(frame + head + 4, payload, count);
    return write_all(client, frame, head + 4 + count);
}

static void sign(const char *text, char *hex) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned count = 0;
    HMAC(EVP_sha256(), secret, (int)strlen(secret), (const unsigned char *)text, strlen(text), digest, &count);
    for (unsigned index = 0; index < count; index++) sprintf(hex + 2 * index, "%02x", digest[index]);
}

static int subscribe(struct client *client, const char *socket_id) {
    int number = (int)(client - clients);
    char name[256], text[PREFIX_MAX], hex[2 * EVP_MAX_MD_SIZE + 1], user[64] = "", quoted[80] = "";
    const char *mark = strchr(channel, '%');
    if (mark) snprintf(name, sizeof name, "%.*s%d%s", (int)(mark - channel), channel, number % 16, mark + 1);
    else snprintf(name, sizeof name, "%s", channel);
    bool is_presence = strncmp(name, "presence-", 9) == 0;
    if (is_presence) {
        snprintf(user, sizeof user, "{\"user_id\":\"%s%d\"}", prefix, number);
        snprintf(quoted, sizeof quoted, "{\\\"user_id\\\":\\\"%s%d\\\"}", prefix, number);
    }
    if (is_presence || strncmp(name, "private-", 8) == 0) {
        snprintf(text, sizeof text, is_presence ? "%s:%s:%s" : "%s:%s", socket_id, name, user);
        sign(text, hex);
    } else {
        hex[0] = 0;
    }
    int count = snprintf(
        text, sizeof text, "{\"event\":\"pusher:subscribe\",\"data\":{\"channel\":\"%s\",\"auth\":\"%s:%s\"%s%s%s}}", name, key, hex,
        is_presence ? ",\"channel_data\":\"" : "", quoted, is_presence ? "\"" : "");
    return say(client, 1, text, count);
}

static void done(struct client *client) {
    client->phase = SUBSCRIBED;
    subscribed_count++;
    latencies[latency_count++] = now() - client->began;
}

static int message(struct client *client, int opcode) {
    char *text = client->prefix;
    text[client->prefix_count] = 0;
    if (opcode == 9) {
        pings++;
        return say(client, 10, text, client->prefix_count);
    }
    if (opcode == 8) {
        if (client->prefix_count >= 2) client->close_code = (unsigned char)text[0] << 8 | (unsigned char)text[1];
        say(client, 8, text, client->prefix_count >= 2 ? 2 : 0);
        return 0;
    }
    if (opcode != 1) return 0;
    messages++;
    if (client->phase == GREETED) {
        char *id = strstr(text, "socket_id\\\":\\\"");
        if (!strstr(text, "pusher:connection_established") || !id) return -1;
        id += strlen("socket_id\\\":\\\"");
        char *id_end = strchr(id, '\\');
        if (!id_end) return -1;
        *id_end = 0;
        client->phase = SUBSCRIBING;
        return subscribe(client, id);
    }
    if (client->phase == SUBSCRIBING) {
        if (!strstr(text, "pusher_internal:subscription_succeeded")) {
            fprintf(stderr, "crowd: not subscribed: %s\n", text);
            return -1;
        }
        done(client);
        return 0;
    }
    if (strstr(text, "pusher_internal:member_added")) members_added++;
    if (strstr(text, "pusher_internal:member_removed")) members_removed++;
    return 0;
}

static int read_frames(struct client *client, const unsigned char *bytes, int count) {
    while (count > 0) {
        unsigned head_size = 2;
        if (client->head_count >= 2) head_size = client->head[1] == 126 ? 4 : client->head[1] == 127 ? 10 : 2;
        if (client->head_count < head_size) {
            client->head[client->head_count++] = *bytes++;
            count--;
            if (client->head_count < 2) continue;
            head_size = client->head[1] == 126 ? 4 : client->head[1] == 127 ? 10 : 2;
            if (client->head_count < head_size) continue;
            client->prefix_count = 0;
            client->left = 0;
            if (head_size == 2) client->left = client->head[1];
            for (unsigned index = 2; index < head_size; index++) client->left = client->left << 8 | client->head[index];
        } else {
            int taken = client->left < (unsigned)count ? (int)client->left : count;
            int kept = (int)(PREFIX_MAX - 1 - client->prefix_count);
            if (kept > taken) kept = taken;
            memcpy(client->prefix + client->prefix_count, bytes, kept);
            client->prefix_count += kept;
            client->left -= taken;
            bytes += taken;
            count -= taken;
        }
        if (client->left == 0) {
            client->head_count = 0;
            if (message(client, client->head[0] & 0x0F) < 0) return -1;
        }
    }
    return 0;
}

static int received(struct client *client, unsigned char *bytes, int count) {
    bytes_read += count;
    if (client->phase != UPGRADING) return read_frames(client, bytes, count);
    // The answer's head comes in one piece, perhaps with the first frame behind it.
    bytes[count] = 0;
    unsigned char *head_end = (unsigned char *)strstr((char *)bytes, "\r\n\r\n");
    if (!head_end || memcmp(bytes, "HTTP/1.1 101", 12) != 0) return -1;
    client->phase = GREETED;
    if (is_bare) {
        done(client);
        return 0;
    }
    head_end += 4;
    return read_frames(client, head_end, (int)(bytes + count - head_end));
}

static int upgrade(struct client *client) {
    char head[512];
    int count = snprintf(
        head, sizeof head,
        "GET /app/%s?protocol=7&client=js&version=8.4.0&flash=false HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n", key, port);
    client->phase = UPGRADING;
    watch(client, EPOLLIN);
    return write_all(client, head, count);
}

static int handshake(struct client *client) {
    ERR_clear_error();
    int code = SSL_connect(client->tls);
    if (code == 1) return upgrade(client);
    switch (SSL_get_error(client->tls, code)) {
    case SSL_ERROR_WANT_READ: watch(client, EPOLLIN); return 0;
    case SSL_ERROR_WANT_WRITE: watch(client, EPOLLIN | EPOLLOUT); return 0;
    default: return -1;
    }
}

static int ready(struct client *client, unsigned events) {
    if (client->phase == CONNECTING) {
        int error = 0;
        socklen_t size = sizeof error;
        getsockopt(client->descriptor, SOL_SOCKET, SO_ERROR, &error, &size);
        if (error) return -1;
        if (!(events & EPOLLOUT)) return 0;
        if (!is_tls) return upgrade(client);
        client->tls = SSL_new(tls_context);
        SSL_set_fd(client->tls, client->descriptor);
        client->phase = HANDSHAKING;
    }
    if (client->phase == HANDSHAKING) return handshake(client);
    for (;;) {
        // What another connection ended with would be taken for this one's end.
        ERR_clear_error();
        int count = client->tls ? SSL_read(client->tls, chunk, READ_BYTES - 1)
                                : (int)recv(client->descriptor, chunk, READ_BYTES - 1, 0);
        if (count > 0) {
            if (received(client, chunk, count) < 0) return -1;
            if (!client->tls && count < READ_BYTES - 1) return 0;
            continue;
        }
        if (client->tls) return SSL_get_error(client->tls, count) == SSL_ERROR_WANT_READ ? 0 : -1;
        return count < 0 && errno == EAGAIN ? 0 : -1;
    }
}

static void come(int number) {
    struct client *client = &clients[number];
    memset(client, 0, sizeof *client);
    client->prefix = malloc(PREFIX_MAX);
    client->began = now();
    client->descriptor = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (client->descriptor < 0) die("socket");
    int on = 1;
    setsockopt(client->descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    // The system has some 28,000 ports for each source address.
    setsockopt(client->descriptor, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + number / PER_SOURCE)};
    if (bind(client->descriptor, (struct sockaddr *)&here, sizeof here) < 0) die("bind");
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    open_count++;
    struct epoll_event event = {.events = EPOLLOUT, .data.u32 = (unsigned)number};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, client->descriptor, &event) < 0) die("epoll_ctl");
    if (connect(client->descriptor, (struct sockaddr *)&there, sizeof there) < 0 && errno != EINPROGRESS) fail(client);
}

static int by_size(const void *left, const void *right) {
    double difference = *(const double *)left - *(const double *)right;
    return difference < 0 ? -1 : difference > 0;
}

static double share(double part) {
    return latency_count ? latencies[(int)(part * (latency_count - 1))] * 1e3 : 0;
}

static void answer_open(void) {
    qsort(latencies, latency_count, sizeof *latencies, by_size);
    printf(
        "{\"subscribed\": %d, \"failed\": %d, \"seconds\": %.6f, \"ms_p50\": %.3f, \"ms_p99\": %.3f, \"ms_max\": %.3f}\n", subscribed_count,
        failed_count, now() - command_began, share(0.5), share(0.99), share(1));
    fflush(stdout);
    command = IDLE;
}

static void answer_drain(void) {
    printf(
        "{\"ended\": %d, \"with_4200\": %d, \"first_seconds\": %.6f, \"last_seconds\": %.6f}\n", wanted_count, ended_in_order,
        first_end - command_began, last_end - command_began);
    fflush(stdout);
    command = IDLE;
}

static void obey(const char *line) {
    command_began = now();
    if (strncmp(line, "open ", 5) == 0) {
        int more = atoi(line + 5);
        if (client_count + more > CLIENTS_MAX) die("too many clients");
        latency_count = failed_count = 0;
        wanted_count = open_count + more;
        int first = client_count;
        client_count += more;
        command = OPENING;
        for (int number = first; number < client_count; number++) come(number);
    } else if (strcmp(line, "drop\n") == 0) {
        int count = open_count;
        for (int number = 0; number < client_count; number++) end(&clients[number], true);
        printf("{\"dropped\": %d, \"seconds\": %.6f}\n", count, now() - command_began);
        fflush(stdout);
        for (int number = 0; number < client_count; number++) forget(&clients[number]);
        client_count = 0;
    } else if (strcmp(line, "drain\n") == 0) {
        wanted_count = open_count;
        first_end = last_end = 0;
        ended_in_order = 0;
        command = DRAINING;
    } else if (strcmp(line, "say\n") == 0) {
        printf(
            "{\"open\": %d, \"bytes\": %llu, \"messages\": %llu, \"members_added\": %llu, \"members_removed\": %llu, \"pings\": %llu}\n",
            open_count, bytes_read, messages, members_added, members_removed, pings);
        fflush(stdout);
        bytes_read = messages = members_added = members_removed = pings = 0;
    } else {
        fprintf(stderr, "crowd: what is %s", line);
        exit(1);
    }
}

int main(int count, char **arguments) {
    if (count < 5) {
        fprintf(stderr, "usage: crowd PORT KEY SECRET CHANNEL [tls] [bare] [user=PREFIX]\n");
        return 64;
    }
    port = atoi(arguments[1]);
    key = arguments[2];
    secret = arguments[3];
    channel = arguments[4];
    for (int index = 5; index < count; index++) {
        is_tls |= strcmp(arguments[index], "tls") == 0;
        is_bare |= strcmp(arguments[index], "bare") == 0;
        if (strncmp(arguments[index], "user=", 5) == 0) prefix = arguments[index] + 5;
    }
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    clients = calloc(CLIENTS_MAX, sizeof *clients);
    latencies = calloc(CLIENTS_MAX, sizeof *latencies);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!clients || !latencies || epoll < 0) die("start");
    if (is_tls) {
        // OpenSSL writes without MSG_NOSIGNAL.
        signal(SIGPIPE, SIG_IGN);
        tls_context = SSL_CTX_new(TLS_client_method());
        SSL_CTX_set_mode(tls_context, SSL_MODE_RELEASE_BUFFERS);
    }
    struct epoll_event input = {.events = EPOLLIN, .data.u32 = CLIENTS_MAX};
    epoll_ctl(epoll, EPOLL_CTL_ADD, STDIN_FILENO, &input);
    static struct epoll_event events[EVENTS_MAX];
    char line[64];
    for (;;) {
        int found = epoll_wait(epoll, events, EVENTS_MAX, -1);
        for (int index = 0; index < found; index++) {
            if (events[index].data.u32 == CLIENTS_MAX) {
                // One command at a time, each with its line break; the end of the input is the end.
                ssize_t size = read(STDIN_FILENO, line, sizeof line - 1);
                if (size <= 0) return 0;
                line[size] = 0;
                obey(line);
                continue;
            }
            struct client *client = &clients[events[index].data.u32];
            if (client->phase != ENDED && ready(client, events[index].events) < 0) fail(client);
        }
        if (command == OPENING && subscribed_count + failed_count >= wanted_count) answer_open();
        if (command == DRAINING && open_count == 0) answer_drain();
    }
}
