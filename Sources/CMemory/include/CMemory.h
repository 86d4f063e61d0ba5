#pragma once

/// Gives memory that is free back to the system. Takes some milliseconds; from any thread.
void tandem_memory_trim(void);
