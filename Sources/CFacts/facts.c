#include "CFacts.h"

#ifdef __linux__
#include <sys/timex.h>
#endif

// A section of its own, which the package's build fills in afterwards. So a new commit compiles nothing anew.
// Volatile: the compiler must not take the text below for the one at run time.
__attribute__((section("tandem_commit"), used)) static const volatile char commit[41] = "";

const char *tandem_build_commit(void) { return (const char *)commit; }

bool tandem_clock_is_kept(void) {
#ifdef __linux__
    struct timex state = {0};
    int code = adjtimex(&state);
    return code >= 0 && code != TIME_ERROR;
#else
    return true;
#endif
}
