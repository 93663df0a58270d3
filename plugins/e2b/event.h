/* What stream.c asks of event.c: one line of the interpreter's answer. */
#ifndef E2B_EVENT_H
#define E2B_EVENT_H

#include "e2b.h"
#include "text.h"

#define OUTPUT_BYTES_MAX ((uint64_t)10 << 20) /* emitted of one run */
#define TRACEBACK_BYTES_MAX 4096              /* of an exception */

/* Emits what the line says; a line that is no JSON object is counted and left out. */
int event_take(struct stream *, const char *line, size_t len, struct sg_error *);
/* The start of a line whose rest will not come: of printed text, what there is of it is emitted. Two more bytes behind
 * `len` must be there to be written. */
int event_take_cut(struct stream *, char *line, size_t len, struct sg_error *);
/* Ends the run for its output: says so in a status and sets stream->code. */
int event_end_output(struct stream *, struct sg_error *);

/* traceback.c. A traceback of IPython or of another kernel as short as it helps, appended to `out`: where it went
 * through and why it ended, without the lines of code around, without colours; at most TRACEBACK_BYTES_MAX of its end.
 * `is_cut`: what is given is an end already, which may begin within a line. */
void traceback_put(struct text *out, const char *traceback, size_t len, bool is_cut);

#endif
