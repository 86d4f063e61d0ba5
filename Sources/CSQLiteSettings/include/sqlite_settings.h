#ifndef TANDEM_SQLITE_SETTINGS_H
#define TANDEM_SQLITE_SETTINGS_H

/* Turns off SQLite's memory statistics, which would take a process-wide lock for every allocation of every connection.
 * Call before the first connection; later calls have no effect. */
void tandem_sqlite_without_memory_account(void);

/* The version of the library in use, such as 3.40.1. */
const char *tandem_sqlite_version(void);

#endif
