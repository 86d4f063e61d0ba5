// The yardstick for connecting: the least that a server does which accepts WebSockets. One thread, one epoll: accepts, reads the
// request's head in one piece, computes Sec-WebSocket-Accept (RFC 6455, 4.2.2), answers 101, and keeps the socket.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static void answer(int descriptor) {
    char head[4096], accept_text[64];
    unsigned char digest[EVP_MAX_MD_SIZE];
    ssize_t count = recv(descriptor, head, sizeof head - 1, 0);
    if (count <= 0) {
        close(descriptor);
        return;
    }
    head[count] = 0;
    char *key = strcasestr(head, "Sec-WebSocket-Key: ");
    if (!key) return;
    key += strlen("Sec-WebSocket-Key: ");
    char text[128];
    snprintf(text, sizeof text, "%.24s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key);
    EVP_Digest(text, strlen(text), digest, NULL, EVP_sha1(), NULL);
    EVP_EncodeBlock((unsigned char *)accept_text, digest, 20);
    char reply[256];
    int size = snprintf(
        reply, sizeof reply, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n", accept_text);
    send(descriptor, reply, size, MSG_NOSIGNAL);
}

static void end(int signal_number) {
    (void)signal_number;
    _exit(0);
}

int main(void) {
    signal(SIGTERM, end);
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), epoll = epoll_create1(0);
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof here;
    if (bind(listener, (struct sockaddr *)&here, size) < 0 || listen(listener, 65535) < 0) return 1;
    getsockname(listener, (struct sockaddr *)&here, &size);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[1024];
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    printf("ready at http://127.0.0.1:%d\n", ntohs(here.sin_port));
    fflush(stdout);
    for (;;) {
        int found = epoll_wait(epoll, events, 1024, -1);
        for (int index = 0; index < found; index++) {
            if (events[index].data.fd != listener) {
                answer(events[index].data.fd);
                continue;
            }
            int descriptor;
            while ((descriptor = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
                int on = 1;
                setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
                struct epoll_event newcomer = {.events = EPOLLIN, .data.fd = descriptor};
                epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &newcomer);
            }
        }
    }
}
