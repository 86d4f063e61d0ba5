#ifndef TANDEM_SQLITE_SETTINGS_H
#define TANDEM_SQLITE_SETTINGS_H

/* Has SQLite keep no account of the memory it uses: every allocation of every connection would take a lock of the process for it.
 * Only before the first connection; later it changes nothing. */
void tandem_sqlite_without_memory_account(void);

#endif
