/* Runs in words, the same on every surface: results that are too long, runs of tools that a request does not offer. */
#ifndef SANDGATE_SURFACE_RUN_TEXT_H
#define SANDGATE_SURFACE_RUN_TEXT_H

#include "surface/surface.h"

enum { RUN_CUT_MARK_BYTES = 80 }; /* of the line that says how much was cut, at most */

/* A longer result keeps its head and its tail, and says how much is gone between them, and why ("the context is full").
 * False: it was not longer. */
bool run_result_cut(struct buf *result, size_t bytes_max, const char *why);

/* A run as text of the assistant, behind a blank line if something stands before it. */
void run_text_put(struct str name, struct str arguments, struct str result, struct buf *out);

/* The text members of an object that a run emitted, in the order of the names, each on lines of its own. */
void run_members_put(struct str json, const char *const *names, struct buf *out);

#endif
