#include "sqlite_settings.h"

#include <sqlite3.h>

void tandem_sqlite_without_memory_account(void) {
  /* SQLite refuses the call once it is initialized; the statistics then stay on, which is harmless. */
  (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

const char *tandem_sqlite_version(void) { return sqlite3_libversion(); }
