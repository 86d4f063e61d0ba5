#include "sqlite_settings.h"

#include <sqlite3.h>

void tandem_sqlite_without_memory_account(void) {
  /* Refused once SQLite is at work, which is as good. */
  (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}
