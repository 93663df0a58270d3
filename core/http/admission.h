/* Admission by descriptors: the process never meets EMFILE. Counts are estimates by kind against RLIMIT_NOFILE (raised
 * to its hard limit at start); near it the server answers 503 with Retry-After instead of opening more. Any thread. */
#ifndef SANDGATE_HTTP_ADMISSION_H
#define SANDGATE_HTTP_ADMISSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Raises the soft limit to the hard one. `fixed`: descriptors that are always open. Returns the limit. */
size_t admission_init(size_t fixed);

/* Takes `count` descriptors' worth of room; false if there is none. */
bool admission_take(size_t count);
void admission_give(size_t count);
size_t admission_used(void);
size_t admission_limit(void);           /* what may be taken in all */
size_t admission_connections_max(void); /* (limit − fixed) / 2 */
bool admission_is_near(void);           /* seven eighths are taken: time to close what is idle */

#endif
