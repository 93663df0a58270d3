/* Hits of a search: their form, the client's domains, duplicates. */
#include "gateway/search_hits.h"

#include "base/json.h"
#include "base/utf8.h"

enum {
    HIT_BYTES_MAX = 256 * 1024,
    URL_BYTES_MAX = 2048,
    TITLE_BYTES_MAX = 512,
    SNIPPET_BYTES_MAX = 16 * 1024,
    DATE_BYTES_MAX = 40,
    TAKEN_MAX = 1000 /* hits of one search that are looked at */
};

/* ---- URLs ---- */

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

static struct str behind(struct str text, size_t len)
{
    return (struct str){text.data + len, text.len - len};
}

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

static struct str path_of(struct str rest)
{
    size_t len = 0;
    while (len < rest.len && rest.data[len] != '?' && rest.data[len] != '#') {
        len++;
    }
    return (struct str){rest.data, len};
}

/* A name may end in a dot, and is the same one then. */
static struct str without_dot(struct str host)
{
    return host.len > 0 && host.data[host.len - 1] == '.' ? (struct str){host.data, host.len - 1}
                                                          : host;
}

bool url_split(struct str url, struct str *ret_host, struct str *ret_path)
{
    struct str rest = url;
    if (url.len > URL_BYTES_MAX || !skip_scheme(&rest) || has_odd_char(url) || !utf8_valid(url)) {
        return false;
    }
    size_t len = host_length(rest);
    struct str host = {rest.data, len};
    rest = behind(rest, len);
    if (without_dot(host).len == 0 || !skip_port(&rest) ||
        (rest.len > 0 && strchr("/?#", rest.data[0]) == NULL)) {
        return false;
    }
    *ret_host = without_dot(host);
    *ret_path = path_of(rest);
    return true;
}

/* ---- domains ---- */

struct domain domain_read(const char *entry)
{
    static const struct domain none = {0};
    struct str rest = str_trim(str_of(entry));
    (void)skip_scheme(&rest);
    struct str host = {rest.data, host_length(rest)};
    rest = behind(rest, host.len);
    if (!skip_port(&rest) || (rest.len > 0 && rest.data[0] != '/')) {
        return none;
    }
    while (rest.len > 0 && rest.data[rest.len - 1] == '/') {
        rest.len--;
    }
    return (struct domain){without_dot(host), rest};
}

/* example.com holds www.example.com, but not notexample.com. */
static bool host_is_within(struct str host, struct str domain)
{
    if (domain.len == 0 || host.len < domain.len ||
        !str_eq_nocase(behind(host, host.len - domain.len), domain)) {
        return false;
    }
    return host.len == domain.len || host.data[host.len - domain.len - 1] == '.';
}

/* The usual matching with one place to come back to, but that whole segments may follow. */
static bool path_is_under(struct str path, struct str pattern)
{
    size_t p = 0, t = 0, star = SIZE_MAX, mark = 0;
    while (t < path.len) {
        if (p < pattern.len && pattern.data[p] == '*') {
            star = p++;
            mark = t;
        } else if (p < pattern.len && pattern.data[p] == path.data[t]) {
            p++;
            t++;
        } else if (p == pattern.len && path.data[t] == '/') {
            return true;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            t = ++mark;
        } else {
            return false;
        }
    }
    while (p < pattern.len && pattern.data[p] == '*') {
        p++;
    }
    return p == pattern.len;
}

bool domain_holds(const struct domain *domain, struct str url)
{
    struct str host, path;
    return url_split(url, &host, &path) && host_is_within(host, domain->host) &&
           path_is_under(path, domain->path);
}

static bool is_among(const char *const *entries, struct str url)
{
    for (size_t i = 0; entries != NULL && entries[i] != NULL; i++) {
        struct domain domain = domain_read(entries[i]);
        if (domain_holds(&domain, url)) {
            return true;
        }
    }
    return false;
}

static bool is_wanted(const struct sg_query *query, struct str url)
{
    bool has_allowed = query->allowed != NULL && query->allowed[0] != NULL;
    return !is_among(query->blocked, url) && (!has_allowed || is_among(query->allowed, url));
}

/* ---- text ---- */

static uint32_t code_point(const char *p, size_t len)
{
    static const unsigned char masks[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    uint32_t c = (unsigned char)p[0] & masks[len];
    for (size_t i = 1; i < len; i++) {
        c = c << 6 | ((unsigned char)p[i] & 0x3F);
    }
    return c;
}

/* Control characters, those that turn the direction of writing, and those by which text is hidden from people. */
static bool is_unseen(uint32_t c)
{
    return c < 0x20 || (c >= 0x7F && c <= 0x9F) || (c >= 0x200B && c <= 0x200F) ||
           (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF ||
           (c >= 0xE0000 && c <= 0xE007F);
}

/* As a JSON string, cut, with a space in the place of what nobody sees. */
static void put_text(struct buf *out, struct str text, size_t max)
{
    size_t len = utf8_cut(text, max), from = 0;
    (void)buf_putc(out, '"'); /* overflow shows in the buffer */
    for (size_t at = 0, step; at < len; at += step) {
        step = utf8_length(text.data + at, len - at);
        if (step == 0 || is_unseen(code_point(text.data + at, step))) {
            step = step == 0 ? 1 : step;
            (void)buf_put_json_inner(out, (struct str){text.data + from, at - from});
            (void)buf_putc(out, ' ');
            from = at + step;
        }
    }
    (void)buf_put_json_inner(out, (struct str){text.data + from, len - from});
    (void)buf_putc(out, '"');
}

/* ---- hits ---- */

static void put_hit(struct hits *hits, const struct json_text *json, struct str url,
                    struct arena *scratch)
{
    struct str title = json_find_text(json->members, json->count, "title", scratch);
    struct str snippet = json_find_text(json->members, json->count, "snippet", scratch);
    struct str date = json_find_text(json->members, json->count, "date", scratch);
    (void)buf_puts(&hits->lines, "{\"title\": "); /* overflow shows in the buffer */
    put_text(&hits->lines, title, TITLE_BYTES_MAX);
    (void)buf_puts(&hits->lines, ", \"url\": ");
    put_text(&hits->lines, url, URL_BYTES_MAX);
    (void)buf_puts(&hits->lines, ", \"snippet\": ");
    put_text(&hits->lines, snippet, SNIPPET_BYTES_MAX);
    (void)buf_puts(&hits->lines, ", \"date\": ");
    if (date.len == 0) {
        (void)buf_puts(&hits->lines, "null");
    } else {
        put_text(&hits->lines, date, DATE_BYTES_MAX);
    }
    (void)buf_puts(&hits->lines, "}\n");
}

static bool is_known(const struct hits *hits, struct str url)
{
    for (size_t i = 0; i < hits->counts[HIT_PASSED]; i++) {
        if (str_eq(hits->urls[i], url)) {
            return true;
        }
    }
    return false;
}

static size_t wanted_count(const struct sg_query *query)
{
    bool is_bounded = query->count_max > 0 && query->count_max < HITS_MAX;
    return is_bounded ? (size_t)query->count_max : HITS_MAX;
}

static size_t taken(const struct hits *hits)
{
    size_t sum = 0;
    for (size_t i = 0; i < HIT_FATES; i++) {
        sum += hits->counts[i];
    }
    return sum;
}

static enum hit_fate take(struct hits *hits, struct str text, struct arena *scratch)
{
    struct json_text json;
    struct sg_error ignored = {0};
    struct str host, path;
    if (hits->counts[HIT_PASSED] == wanted_count(hits->query) || taken(hits) >= TAKEN_MAX) {
        return HIT_SURPLUS;
    }
    if (text.len > HIT_BYTES_MAX || json_scan(text, scratch, &json, &ignored) != 0) {
        return HIT_MALFORMED;
    }
    struct str url = json_find_text(json.members, json.count, "url", scratch);
    if (!url_split(url, &host, &path)) {
        return HIT_MALFORMED;
    }
    if (!is_wanted(hits->query, url)) {
        return HIT_FILTERED;
    }
    if (is_known(hits, url)) {
        return HIT_DUPLICATE;
    }
    hits->urls[hits->counts[HIT_PASSED]] = (struct str){arena_copy(hits->arena, url), url.len};
    put_hit(hits, &json, url, scratch);
    return HIT_PASSED;
}

enum hit_fate hits_take(struct hits *hits, struct str json)
{
    struct arena *scratch = arena_new(0);
    enum hit_fate fate = take(hits, json, scratch);
    arena_free(scratch);
    hits->counts[fate]++;
    return fate;
}

bool hits_next(struct str *rest, struct str *ret)
{
    const char *end = rest->len == 0 ? NULL : memchr(rest->data, '\n', rest->len);
    if (end == NULL) {
        return false;
    }
    *ret = (struct str){rest->data, (size_t)(end - rest->data)};
    *rest = behind(*rest, ret->len + 1);
    return true;
}
