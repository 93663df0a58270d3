/* HTTP/1.1 heads, read strictly (RFC 9112). Pure.
 *
 * Refused (SG_E_INVALID; the connection closes after 400): both Content-Length and Transfer-Encoding, two Content-Length,
 * codings other than exactly "chunked" (501), an expectation other than 100-continue (417), a space before the colon, folded
 * lines, bare CR or LF, NUL and other control characters, a missing Host in 1.1, a second or empty one, one that is no host
 * and port, bad methods, targets that are not origin-form (absolute form is accepted when its authority equals Host; "*" only
 * for OPTIONS). Too long or too many: status 431. */
#ifndef SANDGATE_HTTP_HEAD_H
#define SANDGATE_HTTP_HEAD_H

#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"

#include <stdint.h>

struct http_field {
    struct str name, value; /* name as sent; value trimmed */
};

struct http_head {
    struct str method;
    struct str
        target;      /* as sent: path and query; of an absolute form without scheme and authority */
    struct str path; /* of the target, still encoded */
    struct str query; /* after '?', or empty */
    int minor;        /* HTTP/1.minor */
    struct http_field fields[LIMIT_HEADER_COUNT];
    size_t count;
    int64_t content_length; /* -1: none */
    bool chunked, keep_alive, expect_continue;
    struct str host;
};

/* Bytes of a whole head (up to and with its empty line) at the start of `data`, or 0 while more is needed. One CRLF
 * before it is tolerated and counts to it (RFC 9112 2.2). Lines may end in a bare LF here, so that such a head is
 * refused at once instead of being waited for. */
size_t http_head_length(struct str data);

/* Parses exactly one head; borrows `data`. On failure err->status is 400, 417, 431, 501 (unknown coding) or 505. */
int http_head_parse(struct str data, struct http_head *ret, struct sg_error *err);

/* First field of that name, case-insensitively; a NULL data if absent. */
struct str http_head_get(const struct http_head *, const char *name);

/* How many fields of that name there are. */
size_t http_head_count(const struct http_head *, const char *name);

/* Decodes a path once: refuses dot segments, "//", encoded '/', '\\' and NUL, broken escapes (SG_E_INVALID). `out` has room for
 * path.len + 1; ended by NUL. */
int http_path_decode(struct str path, char *out, size_t *ret_len, struct sg_error *err);

/* Is this usable as a field value (no CR, LF, NUL, control characters) or name (token)? */
bool http_value_valid(struct str);
bool http_token_valid(struct str);
/* Is this "host", "host:80" or "[::1]:80", in plain characters? Narrower than a URL may be: no escapes, no lists. */
bool http_host_valid(struct str);

/* Is `name` hop-by-hop (RFC 9110 7.6.1) or named in this head's Connection? */
bool http_is_hop_by_hop(struct str name, struct str connection);

const char *http_reason(int status); /* "Not Found" */

/* Extensions and trailers of one body, all together; more makes it a broken one. */
#define HTTP_CHUNKS_EXTRA_BYTES (16 * KIB)

/* An incremental reader of chunked bodies, for requests. Feed bytes; it hands back decoded spans in place. All zero is
 * its start. */
struct http_chunks {
    int state;
    unsigned digits; /* of the current size */
    uint64_t left;   /* of the current chunk */
    size_t extra;    /* bytes of extensions and trailers so far */
};
/* Consumes from `data`: *ret_used bytes, of which *ret_span is body (may be empty). Stops behind a span: call again
 * while bytes are left. Returns 1 when the body has ended (the bytes behind are not used), 0 for more, -1 for a broken
 * one. */
int http_chunks_feed(struct http_chunks *, struct str data, size_t *ret_used, struct str *ret_span);

#endif
