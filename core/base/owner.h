/* May a file's owner and mode be trusted? What others may write, others decide. */
#ifndef SANDGATE_BASE_OWNER_H
#define SANDGATE_BASE_OWNER_H

#include "base/error.h"

#include <sys/stat.h>

/* SG_E_CONFIG unless the file or folder belongs to root or to the running user, and nobody else may write it. `what` is
 * what they could change otherwise: "what the gateway runs". */
int owner_check(const char *path, const struct stat *, const char *what, struct sg_error *err);

#endif
