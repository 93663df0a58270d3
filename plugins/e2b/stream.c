/* The interpreter's answer: bytes to lines. No more than one line is held; one that came whole in a piece is read where it
 * stands. */
#include "event.h"

#include <stdlib.h>
#include <string.h>

#define LINE_BYTES_MAX ((size_t)11 << 20) /* OUTPUT_BYTES_MAX, and what stands around it */
#define LINE_BYTES_MIN ((size_t)4 << 10)
#define LINE_BYTES_KEPT ((size_t)64 << 10) /* of its memory, for the lines that follow */
#define YIELD_BYTES ((size_t)256 << 10)    /* of lines read before others have a turn */
#define CUT_BYTES 2                        /* for event_take_cut() */

static bool is_blank(const char *line, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r') {
            return false;
        }
    }
    return true;
}

/* The lines of one piece may keep the loop busy for long. */
static int let_others_in(struct stream *s, struct sg_error *err)
{
    if (s->unshared < YIELD_BYTES) {
        return 0;
    }
    s->unshared = 0;
    s->code = sg->sleep(s->call, 0, err);
    return s->code;
}

/* Behind end_of_execution nothing counts. A \r at the end is white space to the reader. */
static int take_line(struct stream *s, const char *line, size_t len, struct sg_error *err)
{
    if (s->has_ended || let_others_in(s, err) != 0) {
        return s->code;
    }
    s->unshared += len + 1;
    return is_blank(line, len) ? 0 : event_take(s, line, len, err);
}

static bool make_room(struct stream *s, size_t len)
{
    size_t need = s->line_len + len + CUT_BYTES;
    if (need <= s->line_size) {
        return true;
    }
    size_t size = s->line_size < LINE_BYTES_MIN ? LINE_BYTES_MIN : s->line_size * 2;
    while (size < need) {
        size *= 2;
    }
    size = size < LINE_BYTES_MAX + CUT_BYTES ? size : LINE_BYTES_MAX + CUT_BYTES;
    char *line = realloc(s->line, size);
    if (line != NULL) {
        s->line = line;
        s->line_size = size;
    }
    return line != NULL;
}

/* It was read. */
static void drop_line(struct stream *s)
{
    s->line_len = 0;
    if (s->line_size > LINE_BYTES_KEPT) {
        stream_clear(s);
    }
}

/* The line is longer than anything that is handed on: what it holds of printed text is, and the run ends. */
static int end_too_long(struct stream *s, struct sg_error *err)
{
    int result = s->has_ended ? 0 : event_take_cut(s, s->line, s->line_len, err);
    return result == 0 ? event_end_output(s, err) : result;
}

/* Keeps the start of a line until its end comes. */
static int hold(struct stream *s, const char *data, size_t len, struct sg_error *err)
{
    size_t room = LINE_BYTES_MAX - s->line_len;
    size_t part = len < room ? len : room;
    if (!make_room(s, part)) {
        s->code = sg->fail(err, SG_E_LIMIT, "no memory for a line of the interpreter's answer");
        return s->code;
    }
    memcpy(s->line + s->line_len, data, part);
    s->line_len += part;
    return part < len ? end_too_long(s, err) : 0;
}

int stream_take(struct stream *s, const char *data, size_t len, struct sg_error *err)
{
    while (len > 0 && s->code == 0) {
        const char *line_break = memchr(data, '\n', len);
        size_t part = line_break == NULL ? len : (size_t)(line_break - data);
        if (line_break != NULL && s->line_len == 0 && part <= LINE_BYTES_MAX) {
            (void)take_line(s, data, part, err); /* kept in s->code */
        } else if (hold(s, data, part, err) == 0 && line_break != NULL) {
            (void)take_line(s, s->line, s->line_len, err);
            drop_line(s);
        }
        part += line_break != NULL;
        data += part;
        len -= part;
    }
    return s->code;
}

int stream_end(struct stream *s, struct sg_error *err)
{
    size_t unreadable_before = s->unreadable_count;
    if (s->code == 0 && s->line_len > 0) {
        (void)take_line(s, s->line, s->line_len, err); /* kept in s->code */
        if (s->unreadable_count > unreadable_before) {
            (void)event_take_cut(s, s->line, s->line_len, err);
        }
    }
    s->line_len = 0;
    return s->code;
}

void stream_clear(struct stream *s)
{
    free(s->line);
    s->line = NULL;
    s->line_len = s->line_size = 0;
}
