/* Inner text: what stands between the quotes of JSON strings, joined without decoding as it comes in pieces. Here is where
 * it is decoded, whole or as it grows, and where a whole that comes behind the pieces adds what is new in it. */
#include "surface/responses.h"

#include "base/check.h"

enum {
    ESCAPE_BYTES_MAX = 6, /* of inner text for one byte of what it means */
    PAIR_HALF_BYTES = 6   /* as \\uD83D is written */
};

struct str responses_inner_text(struct str inner, struct arena *arena)
{
    BUF_CLEANUP struct buf quoted = {0};
    responses_quote(inner, &quoted); /* as large as what is kept */
    CHECK(!quoted.overflow);
    struct str text = json_text_of((struct json_value){JSON_STRING, buf_str(&quoted)}, arena);
    return (struct str){check_alloc(arena_copy(arena, text)), text.len};
}

/* The first half of a pair at the end waits for the second. */
static size_t half_pair(struct str inner)
{
    if (inner.len < PAIR_HALF_BYTES) {
        return 0;
    }
    const char *p = inner.data + inner.len - PAIR_HALF_BYTES;
    size_t slashes = 0; /* in front of it: two are one that was escaped */
    while (slashes < inner.len - PAIR_HALF_BYTES && p[-1 - (ptrdiff_t)slashes] == '\\') {
        slashes++;
    }
    bool is_high = slashes % 2 == 0 && p[0] == '\\' && p[1] == 'u' &&
                   (p[2] == 'd' || p[2] == 'D') && p[3] != '\0' && strchr("89abAB", p[3]) != NULL;
    return is_high ? PAIR_HALF_BYTES : 0;
}

struct str responses_inner_next(const struct buf *inner, size_t *read, bool ended,
                                struct arena *arena)
{
    if (*read == inner->len) {
        return STR("");
    }
    struct str piece = {inner->data + *read, inner->len - *read};
    piece.len -= ended ? 0 : half_pair(piece);
    *read += piece.len;
    bool is_plain = piece.len == 0 || memchr(piece.data, '\\', piece.len) == NULL;
    return is_plain ? piece : responses_inner_text(piece, arena);
}

static struct str inside_of(struct json_value string)
{
    return (struct str){string.raw.data + 1, string.raw.len - 2};
}

/* Whatever the whole says, what the client may have of it stays as it is. */
int responses_text_complete(struct responses *r, struct buf *text, struct json_value whole,
                            struct arena *arena, struct sg_error *err)
{
    if (whole.type != JSON_STRING || str_eq(inside_of(whole), buf_str(text))) {
        return SG_OK;
    }
    if (whole.raw.len < text->len / ESCAPE_BYTES_MAX) {
        return SG_OK; /* it cannot say more, and to look would cost more than it did to send */
    }
    if (text->len == 0) {
        return responses_keep(r->turn, text, inside_of(whole), err);
    }
    struct str had = responses_inner_text(buf_str(text), arena), all = json_text_of(whole, arena);
    if (!str_starts(all, had) || all.len == had.len) {
        return SG_OK;
    }
    BUF_CLEANUP struct buf more = {0};
    (void)buf_put_json_inner(&more, (struct str){all.data + had.len, all.len - had.len});
    return responses_keep(r->turn, text, buf_str(&more), err); /* `more`: bounded by its event */
}
