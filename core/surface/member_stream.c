/* The text of one member of a JSON object that comes in pieces. */
#include "surface/member_stream.h"

#include "base/limits.h"
#include "base/utf8.h"

enum member_state {
    MEMBER_BEFORE, /* the object: what stands in front of it (a fence) is passed over */
    MEMBER_NEXT,   /* between members */
    MEMBER_KEY,
    MEMBER_COLON,
    MEMBER_VALUE, /* about to begin */
    MEMBER_TEXT,  /* in the text that is wanted */
    MEMBER_OTHER, /* in another value */
    MEMBER_AFTER
};

void member_stream_init(struct member_stream *stream, const char *name)
{
    *stream = (struct member_stream){.name = name, .text = {.max = LIMIT_BODY_BYTES}};
}

void member_stream_clear(struct member_stream *stream)
{
    buf_clear(&stream->text);
}

/* ---- text ---- */

static void character_put(struct member_stream *stream, uint32_t c)
{
    char bytes[4];
    (void)buf_append(&stream->text, bytes, utf8_put(bytes, c)); /* no longer than what came */
}

static void half_end(struct member_stream *stream)
{
    if (stream->high != 0) {
        stream->high = 0;
        character_put(stream, 0xFFFD);
    }
}

static void unit_put(struct member_stream *stream, uint32_t unit)
{
    bool is_low = unit >= 0xDC00 && unit <= 0xDFFF;
    if (is_low && stream->high != 0) {
        uint32_t c = 0x10000 + ((stream->high - 0xD800) << 10) + (unit - 0xDC00);
        stream->high = 0;
        character_put(stream, c);
        return;
    }
    half_end(stream);
    if (unit >= 0xD800 && unit <= 0xDBFF) {
        stream->high = unit;
    } else {
        character_put(stream, is_low ? 0xFFFD : unit);
    }
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Behind a backslash. An escape that JSON does not know stays as the model wrote it. */
static void escape_take(struct member_stream *stream, char c)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *known = c == '\0' ? NULL : strchr(from, c);
    stream->is_escaped = false;
    if (c == 'u') {
        stream->hex_left = 4;
        stream->hex = 0;
        return;
    }
    half_end(stream);
    if (known != NULL) {
        (void)buf_putc(&stream->text, to[known - from]); /* no longer than what came */
    } else {
        (void)buf_putc(&stream->text, '\\');
        (void)buf_putc(&stream->text, c);
    }
}

/* True at the text's end. */
static bool text_take(struct member_stream *stream, char c)
{
    if (stream->is_escaped) {
        escape_take(stream, c);
        return false;
    }
    if (stream->hex_left > 0) {
        int digit = hex_digit(c);
        stream->hex = stream->hex << 4 | (digit < 0 ? 0 : (uint32_t)digit);
        stream->hex_left--;
        if (digit < 0) { /* no escape at all: what follows is text again */
            stream->hex_left = 0;
            half_end(stream);
            character_put(stream, 0xFFFD);
        } else if (stream->hex_left == 0) {
            unit_put(stream, stream->hex);
        }
        if (digit >= 0) {
            return false;
        }
    }
    if (c == '\\') {
        stream->is_escaped = true;
        return false;
    }
    half_end(stream);
    if (c == '"') {
        return true;
    }
    (void)buf_putc(&stream->text, c); /* no longer than what came */
    return false;
}

/* ---- the object around it ---- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void key_take(struct member_stream *stream, char c)
{
    if (stream->is_escaped) {
        stream->is_escaped = false;
        stream->key_len = MEMBER_NAME_BYTES; /* models do not escape these names: another one */
    } else if (c == '\\') {
        stream->is_escaped = true;
    } else if (c == '"') {
        struct str key = {stream->key, stream->key_len};
        stream->is_wanted =
            !stream->is_found && stream->key_len < MEMBER_NAME_BYTES && str_is(key, stream->name);
        stream->state = MEMBER_COLON;
    } else if (stream->key_len < MEMBER_NAME_BYTES) {
        stream->key[stream->key_len++] = c;
    }
}

/* Within a value of another member, to its end. */
static void other_take(struct member_stream *stream, char c)
{
    if (stream->in_string) {
        stream->in_string = stream->is_escaped || c != '"';
        stream->is_escaped = !stream->is_escaped && c == '\\';
        if (!stream->in_string && stream->depth == 0) {
            stream->state = MEMBER_NEXT;
        }
    } else if (c == '"') {
        stream->in_string = true;
    } else if (c == '{' || c == '[') {
        stream->depth++;
    } else if (stream->depth == 0 && (c == ',' || c == '}' || c == ']')) {
        stream->state = c == ',' ? MEMBER_NEXT : MEMBER_AFTER;
    } else if (c == '}' || c == ']') {
        stream->depth--;
    }
}

static void value_begin(struct member_stream *stream, char c)
{
    if (is_space(c)) {
        return;
    }
    if (c == '"' && stream->is_wanted) {
        stream->is_found = true;
        stream->state = MEMBER_TEXT;
        return;
    }
    stream->depth = 0;
    stream->in_string = false;
    stream->state = MEMBER_OTHER;
    other_take(stream, c);
}

static void byte_take(struct member_stream *stream, char c)
{
    switch (stream->state) {
    case MEMBER_BEFORE:
        stream->state = c == '{' ? MEMBER_NEXT : MEMBER_BEFORE;
        break;
    case MEMBER_NEXT:
        if (c == '"') {
            stream->key_len = 0;
            stream->state = MEMBER_KEY;
        } else if (c == '}') {
            stream->state = MEMBER_AFTER;
        }
        break;
    case MEMBER_KEY:
        key_take(stream, c);
        break;
    case MEMBER_COLON:
        stream->state = c == ':' ? MEMBER_VALUE : MEMBER_COLON;
        break;
    case MEMBER_VALUE:
        value_begin(stream, c);
        break;
    case MEMBER_TEXT:
        stream->state = text_take(stream, c) ? MEMBER_NEXT : MEMBER_TEXT;
        break;
    case MEMBER_OTHER:
        other_take(stream, c);
        break;
    default:
        break;
    }
}

void member_stream_feed(struct member_stream *stream, struct str bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        byte_take(stream, bytes.data[i]);
    }
}

void member_stream_end(struct member_stream *stream)
{
    half_end(stream);
}
