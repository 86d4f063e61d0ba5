#pragma once

/* Linux calls for the load tester that Swift's Glibc module does not import: epoll, timerfd, eventfd, memmem. Plain
 * integers in and out; a failure returns the negative errno. */

#include <stdint.h>
#include <stddef.h>

/* One ready descriptor: its tag, and the operations that will not block. */
typedef struct {
    uint64_t tag;
    /* Bytes, an end or an error can be read. */
    uint8_t is_readable;
    uint8_t is_writable;
} tandem_load_ready;

/* An epoll descriptor. */
int tandem_load_poll_create(void);
/* Watches a descriptor from now on; level-triggered. */
int tandem_load_poll_add(int poll, int descriptor, uint64_t tag, int wants_writing);
int tandem_load_poll_change(int poll, int descriptor, uint64_t tag, int wants_writing);
/* Waits until a descriptor is ready, or the milliseconds have passed (-1: no limit). Returns the number of entries in
 * `ready`. */
int tandem_load_poll_wait(int poll, tandem_load_ready *ready, int capacity, int milliseconds);

/* A descriptor that becomes readable at a time of the monotonic clock. */
int tandem_load_timer_create(void);
/* 0 nanoseconds: never. */
void tandem_load_timer_set(int timer, uint64_t nanoseconds);
/* A descriptor that another thread makes readable. */
int tandem_load_bell_create(void);
void tandem_load_bell_ring(int bell);
/* Resets a readable timer or bell. */
void tandem_load_silence(int descriptor);

/* The monotonic clock, in nanoseconds. */
uint64_t tandem_load_now(void);
/* CPU time of the calling thread, nanoseconds. */
uint64_t tandem_load_thread_cpu(void);

/* An IPv4 address in network order; 0 when there is none. */
uint32_t tandem_load_resolve(const char *host);
/* Begins a TCP connection without waiting for it. `source` in network order; 0: the system chooses. */
int tandem_load_connect(uint32_t source, uint32_t address, uint16_t port);
/* The errno of a finished connect; 0 when connected. */
int tandem_load_socket_error(int descriptor);
/* Raises the limit of open descriptors as far as the system lets it go up to `wanted`; returns the limit. */
uint64_t tandem_load_descriptors(uint64_t wanted);

/* The offset of the needle; -1 when absent. */
long tandem_load_find(const void *bytes, size_t count, const char *needle, size_t length);
