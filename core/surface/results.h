/* Results of calls as text: cut to a size, and told in words where they cannot be told as results. */
#ifndef SANDGATE_SURFACE_RESULTS_H
#define SANDGATE_SURFACE_RESULTS_H

#include "base/buf.h"

/* A result that is longer keeps its head and its tail, with a line between them that says how much is gone, and
 * why ("the context is full"). False: it is no longer. `bytes_max` leaves room for that line. */
bool result_cut(struct buf *result, size_t bytes_max, const char *why);

/* "[NAME was called with ARGUMENTS and returned:] RESULT", behind a blank line if there is text already: for an
 * assistant's message where the tool is not offered, since servers refuse calls of tools that they do not know. */
void result_text_put(struct str name, struct str arguments, struct str result, struct buf *out);

/* A member of an object that a run emitted (SG_OUT_RESULT, SG_OUT_HIT, SG_OUT_EXCEPTION), as text behind which a line
 * ends; nothing where it has none. `names` ends with NULL. True if there was one. */
bool result_members_put(struct str json, const char *const *names, struct buf *out);

#endif
