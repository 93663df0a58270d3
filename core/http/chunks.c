/* Chunked bodies of requests, read strictly from any pieces: sizes of 1 to 15 hexadecimal digits, CRLF and nothing else
 * at the ends of lines, extensions and trailers checked, counted and dropped. */
#include "http/head.h"

#include "base/check.h"

enum chunk_state {
    SIZE,      /* its digits */
    EXTENSION, /* from ';' to CR */
    QUOTED,    /* between quotes in there: a line that ends here would end elsewhere for others */
    ESCAPED,   /* behind a backslash in quotes */
    SIZE_LF,
    DATA,
    DATA_CR,
    DATA_LF,
    TRAILER, /* at the start of a line after the last chunk */
    TRAILER_NAME,
    TRAILER_VALUE,
    TRAILER_LF,
    LAST_LF,
    ENDED,
    BROKEN
};

static int digit_value(unsigned char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    unsigned char low = c | 0x20;
    return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

static int take_size(struct http_chunks *chunks, unsigned char c)
{
    int digit = digit_value(c);
    if (digit >= 0) {
        chunks->left = chunks->left * 16 + (uint64_t)digit;
        return ++chunks->digits <= 15 ? SIZE : BROKEN; /* so that nothing overflows */
    }
    if (chunks->digits == 0) {
        return BROKEN;
    }
    if (c == ';') {
        return EXTENSION;
    }
    return c == '\r' ? SIZE_LF : BROKEN;
}

/* Extensions and trailers cost their sender something: their sum is bounded. */
static bool extra_fits(struct http_chunks *chunks)
{
    return ++chunks->extra <= HTTP_CHUNKS_EXTRA_BYTES;
}

static int take_value(struct http_chunks *chunks, unsigned char c, int same, int after_cr)
{
    if (c == '\r') {
        return after_cr;
    }
    bool valid = http_value_valid((struct str){(const char *)&c, 1});
    return valid && extra_fits(chunks) ? same : BROKEN;
}

static int take_extension(struct http_chunks *chunks, unsigned char c)
{
    return take_value(chunks, c, c == '"' ? QUOTED : EXTENSION, SIZE_LF);
}

static int take_quoted(struct http_chunks *chunks, unsigned char c)
{
    int next = c == '"' ? EXTENSION : c == '\\' ? ESCAPED : QUOTED;
    return take_value(chunks, c, next, BROKEN);
}

static int take_trailer_name(struct http_chunks *chunks, unsigned char c, bool first)
{
    if (c == '\r' && first) {
        return LAST_LF;
    }
    if (c == ':' && !first) {
        return TRAILER_VALUE;
    }
    bool valid = http_token_valid((struct str){(const char *)&c, 1});
    return valid && extra_fits(chunks) ? TRAILER_NAME : BROKEN;
}

static int end_size_line(struct http_chunks *chunks)
{
    chunks->digits = 0;
    return chunks->left == 0 ? TRAILER : DATA;
}

/* The state after one byte of framing. */
static int next_state(struct http_chunks *chunks, unsigned char c)
{
    switch (chunks->state) {
    case SIZE:
        return take_size(chunks, c);
    case EXTENSION:
        return take_extension(chunks, c);
    case QUOTED:
        return take_quoted(chunks, c);
    case ESCAPED:
        return take_value(chunks, c, QUOTED, BROKEN);
    case SIZE_LF:
        return c == '\n' ? end_size_line(chunks) : BROKEN;
    case DATA_CR:
        return c == '\r' ? DATA_LF : BROKEN;
    case DATA_LF:
        return c == '\n' ? SIZE : BROKEN;
    case TRAILER:
        return take_trailer_name(chunks, c, true);
    case TRAILER_NAME:
        return take_trailer_name(chunks, c, false);
    case TRAILER_VALUE:
        return take_value(chunks, c, TRAILER_VALUE, TRAILER_LF);
    case TRAILER_LF:
        return c == '\n' ? TRAILER : BROKEN;
    case LAST_LF:
        return c == '\n' ? ENDED : BROKEN;
    default:
        return BROKEN;
    }
}

static struct str take_data(struct http_chunks *chunks, struct str data)
{
    size_t len = data.len < chunks->left ? data.len : (size_t)chunks->left;
    chunks->left -= len;
    if (chunks->left == 0) {
        chunks->state = DATA_CR;
    }
    return (struct str){data.data, len};
}

int http_chunks_feed(struct http_chunks *chunks, struct str data, size_t *ret_used,
                     struct str *ret_span)
{
    size_t used = 0;
    *ret_span = (struct str){NULL, 0};
    while (used < data.len && chunks->state != ENDED && chunks->state != BROKEN) {
        if (chunks->state == DATA) {
            *ret_span = take_data(chunks, (struct str){data.data + used, data.len - used});
            used += ret_span->len;
            break;
        }
        chunks->state = next_state(chunks, (unsigned char)data.data[used++]);
    }
    CHECK(used <= data.len);
    *ret_used = used;
    if (chunks->state == BROKEN) {
        return -1;
    }
    return chunks->state == ENDED;
}
