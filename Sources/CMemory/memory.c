#include "CMemory.h"

#include <stdlib.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

void tandem_memory_trim(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}
