#ifndef TANDEM_SQLITE_SETTINGS_H
#define TANDEM_SQLITE_SETTINGS_H

/* Switches off SQLite's accounting of memory, which takes a process-wide lock per allocation. Call before the first
 * connection; later calls have no effect. */
void tandem_sqlite_without_memory_account(void);

#endif
