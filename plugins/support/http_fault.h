/* What is said of an exchange that failed. */
#ifndef PLUGINS_SUPPORT_HTTP_FAULT_H
#define PLUGINS_SUPPORT_HTTP_FAULT_H

#include <sandgate/plugin.h>

/* "cannot be reached": in words that go behind the service's name. `failed_at` and `code` are those of the exchange;
 * `options`, of less than 80 bytes, names what the operator may have set wrong ("'base_url'"); `words` is where they are
 * written, where they must be. */
enum { HTTP_FAULT_BYTES = 128 };
const char *http_fault_words(uint32_t failed_at, int code, const char *options,
                             char words[HTTP_FAULT_BYTES]);

#endif
