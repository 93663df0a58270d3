/* One spelling for all JSON texts that mean the same, so that they can be compared and hashed as bytes. */
#ifndef SANDGATE_BASE_CANONICAL_H
#define SANDGATE_BASE_CANONICAL_H

#include "base/buf.h"

/* Appends the text without white space, with members in the order of their decoded names, strings in one way of
 * escaping, and numbers by their exact decimal value (1.0 is 1, 12345678901234567890 stays what it is). Duplicate names
 * stay in their order. False where it is no JSON text; nothing is appended then. Pure. */
bool json_canonical(struct str text, struct buf *out);

#endif
