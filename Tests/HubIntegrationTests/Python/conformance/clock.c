/* Preloaded into a hub by the tests: shifts or stops the clocks that it reads, so that hours pass in no time and requests
   that were signed years ago are on time. Waits for a moment on these clocks by a timer descriptor, which is how Dispatch and with
   it `Task.sleep` wait, are put back onto the real ones; relative waits need nothing. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/* The file named by TEST_CLOCK, written by the test while the hub runs; all in nanoseconds. */
struct control {
    volatile int64_t wall_stopped_at; /* 0: it runs */
    volatile int64_t wall_shift;
    volatile int64_t monotonic_shift;
};

static const struct control *control;

enum { descriptors_max = 1024 };
/* The clock of each timer descriptor. */
static clockid_t timer_clocks[descriptors_max];

__attribute__((constructor)) static void map_control(void) {
    const char *path = getenv("TEST_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *memory = mmap(NULL, sizeof(struct control), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (memory != MAP_FAILED) control = memory;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    long result = syscall(SYS_clock_gettime, clock, now);
    if (result != 0 || !control) return (int)result;
    int64_t time = (int64_t)now->tv_sec * 1000000000 + now->tv_nsec;
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
        time = control->wall_stopped_at ? control->wall_stopped_at : time + control->wall_shift;
        break;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_BOOTTIME:
        time += control->monotonic_shift;
        break;
    default: return 0;
    }
    now->tv_sec = time / 1000000000;
    now->tv_nsec = time % 1000000000;
    return 0;
}

int timerfd_create(clockid_t clock, int flags) {
    int descriptor = (int)syscall(SYS_timerfd_create, clock, flags);
    if (descriptor >= 0 && descriptor < descriptors_max) timer_clocks[descriptor] = clock;
    return descriptor;
}

int timerfd_settime(int descriptor, int flags, const struct itimerspec *wanted, struct itimerspec *former) {
    struct itimerspec timer = *wanted;
    int is_armed = timer.it_value.tv_sec != 0 || timer.it_value.tv_nsec != 0;
    if (control && is_armed && (flags & TFD_TIMER_ABSTIME) && descriptor < descriptors_max) {
        int64_t shift = timer_clocks[descriptor] == CLOCK_REALTIME ? control->wall_shift : control->monotonic_shift;
        int64_t time = (int64_t)timer.it_value.tv_sec * 1000000000 + timer.it_value.tv_nsec - shift;
        /* Zero would disarm it. */
        if (time < 1) time = 1;
        timer.it_value.tv_sec = time / 1000000000;
        timer.it_value.tv_nsec = time % 1000000000;
    }
    return (int)syscall(SYS_timerfd_settime, descriptor, flags, &timer, former);
}
