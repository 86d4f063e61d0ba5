#ifndef TANDEM_CNGHTTP2_SHIM_H
#define TANDEM_CNGHTTP2_SHIM_H

// nghttp2 has no variadic function and no function-like macro among what we use, so Swift imports it as it is.
#include <nghttp2/nghttp2.h>

#endif
