// Preloaded into the hub under valgrind: version 3.19 edits the mask that sigsuspend() is given in place, and libdispatch
// keeps its mask in read-only memory, which ends valgrind with a fault. It gets a copy that may be written to.
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

int sigsuspend(const sigset_t *mask) {
    sigset_t copy = *mask;
    // The kernel's mask has 64 signals, the library's type has room for more.
    return (int)syscall(SYS_rt_sigsuspend, &copy, 8);
}
