/* Server-sent events, read line by line as the HTML standard has it. A line that lies whole in what was fed is not
 * copied; only the rest of a piece waits in `line` for the next one. */
#include "http/sse.h"

#include "base/check.h"
#include "base/trace.h"

#define FIELD_ROOM 16       /* of a line beside its value: "data: " */
#define NAME_BYTES_MAX 4096 /* of an event's name */

void sse_reader_init(struct sse_reader *reader, size_t event_bytes_max)
{
    *reader = (struct sse_reader){.line.max = event_bytes_max + FIELD_ROOM,
                                  .data.max = event_bytes_max,
                                  .name.max = NAME_BYTES_MAX};
}

void sse_reader_clear(struct sse_reader *reader)
{
    buf_clear(&reader->line);
    buf_clear(&reader->data);
    buf_clear(&reader->name);
    reader->has_data = reader->after_cr = reader->started = reader->ended = reader->broken = false;
}

/* Where the line ends, or bytes.len. In windows, so that bytes without one of the two marks cost no second pass over
 * all of them for each line. */
static size_t line_length(struct str bytes)
{
    for (size_t at = 0; at < bytes.len; at += 256) {
        size_t len = bytes.len - at < 256 ? bytes.len - at : 256;
        const char *lf = memchr(bytes.data + at, '\n', len);
        len = lf == NULL ? len : (size_t)(lf - bytes.data) - at;
        const char *cr = memchr(bytes.data + at, '\r', len);
        if (cr != NULL || lf != NULL) {
            return (size_t)((cr != NULL ? cr : lf) - bytes.data);
        }
    }
    return bytes.len;
}

/* The first line of a stream may start with a byte order mark. */
static struct str without_bom(struct sse_reader *reader, struct str line)
{
    bool first = !reader->started;
    reader->started = true;
    if (first && str_starts(line, STR("\xEF\xBB\xBF"))) {
        return (struct str){line.data + 3, line.len - 3};
    }
    return line;
}

static bool take_data(struct sse_reader *reader, struct str value)
{
    if (reader->has_data && !buf_putc(&reader->data, '\n')) {
        return false;
    }
    reader->has_data = true;
    return buf_append_str(&reader->data, value);
}

static bool take_field(struct sse_reader *reader, struct str line)
{
    const char *colon = memchr(line.data, ':', line.len);
    struct str name = {line.data, colon == NULL ? line.len : (size_t)(colon - line.data)};
    struct str value = {NULL, 0};
    if (colon != NULL) {
        value = (struct str){colon + 1, line.len - name.len - 1};
        if (value.len > 0 && value.data[0] == ' ') {
            value = (struct str){value.data + 1, value.len - 1};
        }
    }
    if (str_is(name, "data")) {
        return take_data(reader, value);
    }
    if (str_is(name, "event")) {
        buf_reset(&reader->name);
        return buf_append_str(&reader->name, value);
    }
    return true; /* comments, id, retry and what may come */
}

/* 1 where the line ends an event, -1 where it does not fit. */
static int take_line(struct sse_reader *reader, struct str line)
{
    line = without_bom(reader, line);
    if (line.len > 0) {
        return take_field(reader, line) ? 0 : -1;
    }
    if (!reader->has_data) {
        buf_reset(&reader->name);
        return 0;
    }
    trace_say(TRACE_SSE, "event", reader, buf_str(&reader->data), (int64_t)reader->data.len);
    return 1;
}

/* The event that the last call gave is over. */
static void forget_event(struct sse_reader *reader)
{
    buf_reset(&reader->data);
    buf_reset(&reader->name);
    reader->has_data = false;
}

/* The first line end of `rest` ends a line that may have begun in an earlier piece. */
static int end_line(struct sse_reader *reader, struct str rest, size_t len)
{
    reader->after_cr = rest.data[len] == '\r';
    if (len > reader->line.max) {
        return -1;
    }
    if (reader->line.len == 0) {
        return take_line(reader, (struct str){rest.data, len});
    }
    if (!buf_append(&reader->line, rest.data, len)) {
        return -1;
    }
    int result = take_line(reader, buf_str(&reader->line));
    buf_reset(&reader->line);
    return result;
}

int sse_reader_feed(struct sse_reader *reader, struct str bytes, size_t *ret_used,
                    struct sse_event *ret_event)
{
    size_t used = 0;
    int result = 0;
    if (reader->broken) {
        *ret_used = 0;
        return -1;
    }
    if (reader->ended) {
        forget_event(reader);
        reader->ended = false;
    }
    while (used < bytes.len && result == 0) {
        struct str rest = {bytes.data + used, bytes.len - used};
        if (reader->after_cr && rest.data[0] == '\n') {
            reader->after_cr = false;
            used++;
            continue;
        }
        reader->after_cr = false;
        size_t len = line_length(rest);
        if (len == rest.len) {
            used = bytes.len;
            result = buf_append_str(&reader->line, rest) ? 0 : -1;
            break;
        }
        used += len + 1;
        result = end_line(reader, rest, len);
    }
    CHECK(used <= bytes.len);
    *ret_used = used;
    reader->broken = result < 0;
    if (result == 1) {
        reader->ended = true;
        *ret_event = (struct sse_event){buf_str(&reader->name), buf_str(&reader->data)};
    }
    return result;
}
