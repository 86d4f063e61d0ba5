// Linked into the thread sanitizer's build only, see `sanitizers.sh`: tells the sanitizer what Swift's Mutex does when two
// threads want it at once.
//
// On Linux `Synchronization.Mutex` is a futex with priority inheritance. Taking a free one is an atomic exchange that the
// compiler puts into our own, instrumented code. A contended one goes through the two functions below, in a library of the
// toolchain that is not instrumented, and the kernel hands the lock over; the sanitizer sees neither, and takes whatever the
// mutex guards for a race. A program of a Mutex<Int> and two threads that count it up does it. Suppressing reports by the
// mutex's name would hide real races inside of the closures, as their frames look the same; these two say only that who gets
// the lock comes after who gave it up, which is what the lock is for.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

#define LOCK_SLOW "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK_SLOW "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"
#define SWIFT_SELF __attribute__((swift_context)) void *self

typedef __attribute__((swiftcall)) void (*lock_function)(uint32_t thread, SWIFT_SELF);
typedef __attribute__((swiftcall)) void (*unlock_function)(SWIFT_SELF);

void __tsan_acquire(void *address);
void __tsan_release(void *address);

__attribute__((swiftcall)) void tandem_lock_slow(uint32_t thread, SWIFT_SELF) __asm__(LOCK_SLOW);
__attribute__((swiftcall)) void tandem_unlock_slow(SWIFT_SELF) __asm__(UNLOCK_SLOW);

static void *toolchain(const char *name) {
    void *function = dlsym(RTLD_NEXT, name);
    // Without the real function nothing can go on.
    if (!function) abort();
    return function;
}

__attribute__((swiftcall)) void tandem_lock_slow(uint32_t thread, SWIFT_SELF) {
    ((lock_function)toolchain(LOCK_SLOW))(thread, self);
    __tsan_acquire(self);
}

__attribute__((swiftcall)) void tandem_unlock_slow(SWIFT_SELF) {
    __tsan_release(self);
    ((unlock_function)toolchain(UNLOCK_SLOW))(self);
}
