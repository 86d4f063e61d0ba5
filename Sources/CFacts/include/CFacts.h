#pragma once

#include <stdbool.h>

/// The commit that the program was built from, 40 hexadecimal digits; empty where only the sources were at hand.
const char *tandem_build_commit(void);

/// Whether a time service keeps the machine's clock, as the kernel knows it.
bool tandem_clock_is_kept(void);
