/* Domains and places of URLs in one spelling. */
#include "base/domain.h"

#include "base/buf.h"
#include "base/utf8.h"

#include <arpa/inet.h>
#include <idn2.h>

enum { HOST_BYTES_MAX = 253, SEGMENTS_MAX = 1024 };

static struct str behind(struct str text, size_t len)
{
    return (struct str){text.data + len, text.len - len};
}

/* ---- hosts ---- */

static bool is_host_char(char c)
{
    bool is_word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return is_word || c == '.' || c == '-' || c == '_' || (unsigned char)c >= 0x80;
}

static size_t host_length(struct str text)
{
    size_t len = 0;
    while (len < text.len && is_host_char(text.data[len])) {
        len++;
    }
    return len;
}

static bool is_ascii(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.data[i] >= 0x80) {
            return false;
        }
    }
    return true;
}

static struct str small_letters(struct str host, struct arena *arena)
{
    char *copy = arena_copy(arena, host);
    for (size_t i = 0; copy != NULL && i < host.len; i++) {
        copy[i] = (char)(copy[i] >= 'A' && copy[i] <= 'Z' ? copy[i] + ('a' - 'A') : copy[i]);
    }
    return (struct str){copy, copy == NULL ? 0 : host.len};
}

static struct str ascii_of(struct str host, struct arena *arena)
{
    char *ascii = NULL;
    const char *text = arena_copy(arena, host);
    if (text == NULL ||
        idn2_to_ascii_8z(text, &ascii, IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL) != IDN2_OK) {
        return (struct str){0};
    }
    struct str ret = small_letters(str_of(ascii), arena);
    idn2_free(ascii);
    return ret;
}

/* Whoever ends in a number is an address, and that has one spelling. */
static bool is_address_or_name(struct str host, struct arena *arena)
{
    size_t dot = host.len;
    while (dot > 0 && host.data[dot - 1] != '.') {
        dot--;
    }
    struct str last = behind(host, dot);
    bool is_number = last.len > 0 && last.data[0] >= '0' && last.data[0] <= '9';
    struct in_addr ignored;
    const char *text = is_number ? arena_copy(arena, host) : "";
    return !is_number || (text != NULL && inet_pton(AF_INET, text, &ignored) == 1);
}

/* Empty where it is none. A name may end in a dot, and is the same one then. */
static struct str host_read(struct str text, struct arena *arena)
{
    static const struct str none = {0};
    bool has_dot = text.len > 0 && text.data[text.len - 1] == '.';
    struct str host = {text.data, text.len - has_dot};
    if (host.len == 0 || host.len > DOMAIN_BYTES_MAX || !utf8_valid(host)) {
        return none;
    }
    host = is_ascii(host) ? small_letters(host, arena) : ascii_of(host, arena);
    bool is_good = host.len > 0 && host.len <= HOST_BYTES_MAX && host.data[0] != '.' &&
                   host.data[host.len - 1] != '.' && memmem(host.data, host.len, "..", 2) == NULL &&
                   host_length(host) == host.len;
    return is_good && is_address_or_name(host, arena) ? host : none;
}

/* ---- paths ---- */

static int digit_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static struct str decoded(struct str path, struct arena *arena)
{
    char *copy = arena_get(arena, path.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < path.len; i++) {
        bool is_coded = path.data[i] == '%' && path.len - i > 2 &&
                        digit_of(path.data[i + 1]) >= 0 && digit_of(path.data[i + 2]) >= 0;
        copy[len++] = is_coded
                          ? (char)(digit_of(path.data[i + 1]) << 4 | digit_of(path.data[i + 2]))
                          : path.data[i];
        i += is_coded ? 2 : 0;
    }
    return (struct str){copy, len};
}

/* Segments without empty ones and dots. */
static struct str path_read(struct str raw, struct arena *arena)
{
    struct str path = decoded(raw, arena);
    char *out = arena_get(arena, path.len + 1);
    size_t starts[SEGMENTS_MAX], count = 0, len = 0;
    for (size_t at = 0; at < path.len;) {
        const char *slash = memchr(path.data + at, '/', path.len - at);
        size_t end = slash == NULL ? path.len : (size_t)(slash - path.data);
        struct str segment = {path.data + at, end - at};
        at = end + 1;
        if (str_is(segment, "..")) {
            len = count > 0 ? starts[--count] : len;
        } else if (segment.len > 0 && !str_is(segment, ".") && count < SEGMENTS_MAX) {
            starts[count++] = len;
            out[len++] = '/';
            memcpy(out + len, segment.data, segment.len);
            len += segment.len;
        }
    }
    return (struct str){out, len};
}

/* ---- URLs and entries ---- */

static bool skip_nocase(struct str *text, struct str prefix)
{
    bool stands =
        text->len >= prefix.len && str_eq_nocase((struct str){text->data, prefix.len}, prefix);
    *text = stands ? behind(*text, prefix.len) : *text;
    return stands;
}

static bool skip_scheme(struct str *url)
{
    return skip_nocase(url, STR("https://")) || skip_nocase(url, STR("http://"));
}

static bool skip_port(struct str *text)
{
    size_t len = 1;
    if (text->len == 0 || text->data[0] != ':') {
        return true;
    }
    while (len < text->len && text->data[len] >= '0' && text->data[len] <= '9') {
        len++;
    }
    *text = behind(*text, len);
    return len > 1 && len <= 6;
}

static bool has_odd_char(struct str url)
{
    for (size_t i = 0; i < url.len; i++) {
        unsigned char c = (unsigned char)url.data[i];
        if (c <= 0x20 || c == 0x7F || strchr("\"<>\\", c) != NULL) {
            return true;
        }
    }
    return false;
}

static struct str path_part(struct str rest)
{
    size_t len = 0;
    while (len < rest.len && rest.data[len] != '?' && rest.data[len] != '#') {
        len++;
    }
    return (struct str){rest.data, len};
}

bool url_place(struct str url, struct arena *arena, struct place *ret)
{
    struct str rest = url;
    if (url.len > URL_BYTES_MAX || !skip_scheme(&rest) || has_odd_char(url) || !utf8_valid(url)) {
        return false;
    }
    struct str host = {rest.data, host_length(rest)};
    rest = behind(rest, host.len);
    if (!skip_port(&rest) || (rest.len > 0 && strchr("/?#", rest.data[0]) == NULL)) {
        return false;
    }
    *ret = (struct place){host_read(host, arena), path_read(path_part(rest), arena)};
    return ret->host.len > 0;
}

bool domain_read(struct str entry, struct arena *arena, struct place *ret)
{
    struct str rest = str_trim(entry);
    *ret = (struct place){0};
    (void)skip_scheme(&rest);
    struct str host = {rest.data, host_length(rest)};
    rest = behind(rest, host.len);
    if (entry.len > DOMAIN_BYTES_MAX || has_odd_char(rest) || !skip_port(&rest) ||
        (rest.len > 0 && rest.data[0] != '/') || path_part(rest).len < rest.len) {
        return false;
    }
    *ret = (struct place){host_read(host, arena), path_read(rest, arena)};
    return ret->host.len > 0;
}

/* ---- does one hold the other? ---- */

/* example.com holds www.example.com, but not notexample.com. */
static bool host_is_within(struct str host, struct str domain)
{
    if (domain.len == 0 || host.len < domain.len ||
        !str_eq(behind(host, host.len - domain.len), domain)) {
        return false;
    }
    return host.len == domain.len || host.data[host.len - domain.len - 1] == '.';
}

/* The last piece of a pattern: where a segment ends behind it. */
static bool ends_a_segment(struct str path, struct str piece, bool is_anchored)
{
    for (size_t end = piece.len; end <= path.len; end++) {
        bool is_end = end == path.len || path.data[end] == '/';
        if (is_end && memcmp(path.data + end - piece.len, piece.data, piece.len) == 0) {
            return true;
        }
        if (is_anchored) {
            return false;
        }
    }
    return false;
}

/* Piece by piece between the stars, each at the first place where it stands: no later one could help those behind it. */
static bool path_is_under(struct str path, struct str pattern)
{
    bool is_anchored = true;
    const char *star;
    if (pattern.len == 0) {
        return true;
    }
    while ((star = memchr(pattern.data, '*', pattern.len)) != NULL) {
        struct str piece = {pattern.data, (size_t)(star - pattern.data)};
        const char *found = piece.len == 0  ? path.data
                            : path.len == 0 ? NULL
                                            : memmem(path.data, path.len, piece.data, piece.len);
        if (found == NULL || (is_anchored && found != path.data)) {
            return false;
        }
        path = behind(path, (size_t)(found - path.data) + piece.len);
        pattern = behind(pattern, piece.len + 1);
        is_anchored = false;
        if (pattern.len == 0) {
            return true;
        }
    }
    return ends_a_segment(path, pattern, is_anchored);
}

bool domain_holds(const struct place *domain, const struct place *place)
{
    return host_is_within(place->host, domain->host) && path_is_under(place->path, domain->path);
}
