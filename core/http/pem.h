/* Certificates and private keys in PEM files, as operators name them: read whole and checked, so that what is wrong with them is
 * said at the start and not by the first connection. Messages are said behind the name of the option: "cannot be opened: …".
 * Nothing of a key is ever part of one. */
#ifndef SANDGATE_HTTP_PEM_H
#define SANDGATE_HTTP_PEM_H

#include "base/arena.h"
#include "base/error.h"

#define PEM_BYTES_MAX ((size_t)1024 * 1024) /* a file */

enum pem_kind {
    PEM_CERTIFICATES, /* one or more; each must be one that can be read */
    PEM_KEY, /* a private key without a passphrase, in a file that others may not read or change */
};

/* All of a regular file, ended by a NUL that is not counted. SG_E_CONFIG. Blocks: for the start, or a worker thread. */
int pem_read(const char *path, enum pem_kind, struct arena *, struct str *ret,
             struct sg_error *err);

/* Is the key that of the first certificate? Both are texts of pem_read(). SG_E_CONFIG if not. */
int pem_check_pair(struct str certificates, struct str key, struct sg_error *err);

#endif
