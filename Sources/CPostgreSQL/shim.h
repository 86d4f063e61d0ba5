#ifndef TANDEM_CPOSTGRESQL_SHIM_H
#define TANDEM_CPOSTGRESQL_SHIM_H

#include <libpq-fe.h>

#endif
