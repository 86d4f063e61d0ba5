#pragma once

/// Returns free memory to the system. Takes some milliseconds; from any thread.
void tandem_memory_trim(void);
