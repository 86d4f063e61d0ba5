// Preloaded into the hub: tells on standard error how long each malloc_trim took, and what it gave back.
//
//   trim WALL_MS CPU_MS KB_BEFORE KB_AFTER
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static double milliseconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static long resident_kilobytes(void) {
    long size = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file) return 0;
    if (fscanf(file, "%ld %ld", &size, &pages) != 2) pages = 0;
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

int malloc_trim(size_t pad) {
    int (*trim)(size_t) = (int (*)(size_t))dlsym(RTLD_NEXT, "malloc_trim");
    long before = resident_kilobytes();
    double wall = milliseconds(CLOCK_MONOTONIC), cpu = milliseconds(CLOCK_THREAD_CPUTIME_ID);
    int result = trim(pad);
    wall = milliseconds(CLOCK_MONOTONIC) - wall;
    cpu = milliseconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
    fprintf(stderr, "trim %.3f %.3f %ld %ld\n", wall, cpu, before, resident_kilobytes());
    return result;
}
