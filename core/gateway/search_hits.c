/* Hits of a search: their form, the client's domains, duplicates. */
#include "gateway/search_hits.h"

#include "base/domain.h"
#include "base/json.h"
#include "base/utf8.h"

enum {
    HIT_BYTES_MAX = 256 * 1024,
    TITLE_BYTES_MAX = 512,
    SNIPPET_BYTES_MAX = 16 * 1024,
    DATE_BYTES_MAX = 40,
    TAKEN_MAX = 1000 /* hits of one search that are looked at */
};

/* ---- domains ---- */

struct domains {
    struct place *allowed, *blocked;
    size_t allowed_count, blocked_count;
    bool is_restricted; /* some are listed as allowed, readable or not */
};

static struct place *read_list(const char *const *entries, struct arena *arena, size_t *ret_count)
{
    size_t length = 0;
    while (entries != NULL && entries[length] != NULL) {
        length++;
    }
    struct place *places = arena_get(arena, (length + 1) * sizeof *places);
    for (size_t i = 0; i < length; i++) {
        *ret_count += domain_read(str_of(entries[i]), arena, &places[*ret_count]);
    }
    return places;
}

static const struct domains *domains_of(struct hits *hits)
{
    const struct sg_query *query = hits->query;
    if (hits->domains == NULL) {
        struct domains *domains = arena_get(hits->arena, sizeof *domains);
        domains->allowed = read_list(query->allowed, hits->arena, &domains->allowed_count);
        domains->blocked = read_list(query->blocked, hits->arena, &domains->blocked_count);
        domains->is_restricted = query->allowed != NULL && query->allowed[0] != NULL;
        hits->domains = domains;
    }
    return hits->domains;
}

static bool is_among(const struct place *list, size_t count, const struct place *place)
{
    for (size_t i = 0; i < count; i++) {
        if (domain_holds(&list[i], place)) {
            return true;
        }
    }
    return false;
}

static bool is_wanted(struct hits *hits, const struct place *place)
{
    const struct domains *domains = domains_of(hits);
    return !is_among(domains->blocked, domains->blocked_count, place) &&
           (!domains->is_restricted || is_among(domains->allowed, domains->allowed_count, place));
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
    struct place place;
    if (hits->counts[HIT_PASSED] == wanted_count(hits->query) || taken(hits) >= TAKEN_MAX) {
        return HIT_SURPLUS;
    }
    if (text.len > HIT_BYTES_MAX || json_scan(text, scratch, &json, &ignored) != 0) {
        return HIT_MALFORMED;
    }
    struct str url = json_find_text(json.members, json.count, "url", scratch);
    if (!url_place(url, scratch, &place)) {
        return HIT_MALFORMED;
    }
    if (!is_wanted(hits, &place)) {
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

static struct str behind(struct str text, size_t len)
{
    return (struct str){text.data + len, text.len - len};
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
