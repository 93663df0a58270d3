/* An upstream's stream, event by event, within its limits. */
#include "surface/turn_stream.h"

#include "base/limits.h"

void turn_stream_init(struct turn_stream *stream)
{
    *stream = (struct turn_stream){0};
    sse_reader_init(&stream->reader, LIMIT_SSE_EVENT_BYTES);
}

void turn_stream_clear(struct turn_stream *stream)
{
    sse_reader_clear(&stream->reader);
}

size_t turn_stream_held(const struct turn_stream *stream)
{
    return stream->reader.line.len + stream->reader.data.len;
}

int turn_stream_feed(struct turn_stream *stream, struct str bytes,
                     int (*take)(void *context, struct sse_event, struct sg_error *), void *context,
                     struct sg_error *err)
{
    int code = SG_OK;
    stream->bytes += bytes.len;
    if (stream->bytes > LIMIT_TURN_BYTES) {
        return error_set(err, SG_E_UNAVAILABLE, "The upstream's stream is larger than %zu MiB",
                         LIMIT_TURN_BYTES / MIB);
    }
    while (bytes.len > 0 && code == SG_OK) {
        size_t used = 0;
        struct sse_event event;
        int got = sse_reader_feed(&stream->reader, bytes, &used, &event);
        if (got < 0) {
            return error_set(err, SG_E_UNAVAILABLE,
                             "The upstream sent an event of more than %zu MiB",
                             LIMIT_SSE_EVENT_BYTES / MIB);
        }
        bytes = (struct str){bytes.data + used, bytes.len - used};
        if (got > 0) {
            code = take(context, event, err);
        }
    }
    return code;
}
