#include "sqlite_settings.h"

#include <sqlite3.h>

void tandem_sqlite_without_memory_account(void) {
  /* SQLite refuses this after its start, which does no harm. */
  (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}
