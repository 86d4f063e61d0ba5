#define _GNU_SOURCE
#include "CLoadSockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { events_max = 1024 };

static int result(int value) { return value < 0 ? -errno : value; }

int tandem_load_poll_create(void) { return result(epoll_create1(EPOLL_CLOEXEC)); }

static int control(int poll, int operation, int descriptor, uint64_t tag, int wants_writing) {
    struct epoll_event event = {.events = EPOLLIN | (wants_writing ? EPOLLOUT : 0), .data.u64 = tag};
    return result(epoll_ctl(poll, operation, descriptor, &event));
}

int tandem_load_poll_add(int poll, int descriptor, uint64_t tag, int wants_writing) {
    return control(poll, EPOLL_CTL_ADD, descriptor, tag, wants_writing);
}

int tandem_load_poll_change(int poll, int descriptor, uint64_t tag, int wants_writing) {
    return control(poll, EPOLL_CTL_MOD, descriptor, tag, wants_writing);
}

int tandem_load_poll_wait(int poll, tandem_load_ready *ready, int capacity, int milliseconds) {
    struct epoll_event events[events_max];
    int count = epoll_wait(poll, events, capacity < events_max ? capacity : events_max, milliseconds);
    for (int i = 0; i < count; i++) {
        ready[i].tag = events[i].data.u64;
        ready[i].is_readable = (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0;
        ready[i].is_writable = (events[i].events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0;
    }
    return count < 0 ? (errno == EINTR ? 0 : -errno) : count;
}

int tandem_load_timer_create(void) { return result(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)); }

void tandem_load_timer_set(int timer, uint64_t nanoseconds) {
    struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)(nanoseconds / 1000000000u), .tv_nsec = (long)(nanoseconds % 1000000000u)}};
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
}

int tandem_load_bell_create(void) { return result(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }

void tandem_load_bell_ring(int bell) {
    uint64_t one = 1;
    /* A full counter means that the bell rings already. */
    ssize_t written = write(bell, &one, sizeof one);
    (void)written;
}

void tandem_load_silence(int descriptor) {
    uint64_t count;
    ssize_t taken = read(descriptor, &count, sizeof count);
    (void)taken;
}

static uint64_t clock_value(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

uint64_t tandem_load_now(void) { return clock_value(CLOCK_MONOTONIC); }

uint64_t tandem_load_thread_cpu(void) { return clock_value(CLOCK_THREAD_CPUTIME_ID); }

uint32_t tandem_load_resolve(const char *host) {
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found = NULL;
    if (getaddrinfo(host, NULL, &hints, &found) != 0) return 0;
    uint32_t address = ((struct sockaddr_in *)found->ai_addr)->sin_addr.s_addr;
    freeaddrinfo(found);
    return address;
}

int tandem_load_connect(uint32_t source, uint32_t address, uint16_t port) {
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return -errno;
    int on = 1;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    int error = 0;
    if (source != 0) {
        /* The port is chosen at connect, when the other end is known: one source address can then use each port for every target. */
        setsockopt(descriptor, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
        struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = source};
        if (bind(descriptor, (struct sockaddr *)&own, sizeof own) != 0) error = errno;
    }
    struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = address};
    if (error == 0 && connect(descriptor, (struct sockaddr *)&peer, sizeof peer) != 0 && errno != EINPROGRESS) error = errno;
    if (error == 0) return descriptor;
    close(descriptor);
    return -error;
}

int tandem_load_socket_error(int descriptor) {
    int error = 0;
    socklen_t size = sizeof error;
    return getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size) != 0 ? errno : error;
}

uint64_t tandem_load_descriptors(uint64_t wanted) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
    if (limit.rlim_cur < wanted) {
        struct rlimit raised = {.rlim_cur = wanted, .rlim_max = limit.rlim_max > wanted ? limit.rlim_max : wanted};
        /* The hard limit is raised only where this process may. */
        if (setrlimit(RLIMIT_NOFILE, &raised) == 0) return wanted;
        raised.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
        raised.rlim_max = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &raised) == 0) return raised.rlim_cur;
    }
    return limit.rlim_cur;
}

long tandem_load_find(const void *bytes, size_t count, const char *needle, size_t length) {
    const char *place = memmem(bytes, count, needle, length);
    return place == NULL ? -1 : place - (const char *)bytes;
}
