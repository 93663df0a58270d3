/* Server-sent events, read incrementally from any chunking. Pure. Accepts LF, CRLF and CR line ends, comments, a BOM. */
#ifndef SANDGATE_HTTP_SSE_H
#define SANDGATE_HTTP_SSE_H

#include "base/buf.h"

struct sse_event {
    struct str name; /* of `event:`; empty if none */
    struct str data; /* lines of `data:` joined by LF */
};

struct sse_reader {
    struct buf line, data, name; /* data.max bounds an event */
    bool has_data, after_cr, started, ended, broken;
};

void sse_reader_init(struct sse_reader *, size_t event_bytes_max);
void sse_reader_clear(struct sse_reader *);

/* Takes bytes up to the end of the next event: 1 with *ret_event (valid until the next call) and *ret_used, 0 when all
 * bytes are used up, -1 when an event is over its bound, from then on. Events without data are skipped. */
int sse_reader_feed(struct sse_reader *, struct str bytes, size_t *ret_used,
                    struct sse_event *ret_event);

#endif
