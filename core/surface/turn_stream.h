/* An upstream's stream, event by event, within its limits. */
#ifndef SANDGATE_SURFACE_TURN_STREAM_H
#define SANDGATE_SURFACE_TURN_STREAM_H

#include "http/sse.h"
#include "surface/surface.h"

struct turn_stream {
    struct sse_reader reader;
    size_t bytes; /* all that came */
};
void turn_stream_init(struct turn_stream *);
void turn_stream_clear(struct turn_stream *);
size_t turn_stream_held(const struct turn_stream *); /* bytes of an event that is not whole */

/* Gives each event that is whole to `take`, until one fails. UNAVAILABLE beyond LIMIT_TURN_BYTES in all and
 * LIMIT_SSE_EVENT_BYTES of an event. */
int turn_stream_feed(struct turn_stream *, struct str bytes,
                     int (*take)(void *context, struct sse_event, struct sg_error *), void *context,
                     struct sg_error *err);

#endif
