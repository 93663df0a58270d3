/* From a service's answer to hits. The whole text is checked before the first hit is emitted, so half an answer gives none. */
#include "search_answer.h"

#include <string.h>

#define NAME_MAX_BYTES 64
#define DATE_TEXT_MAX 64

struct reading {
    const struct search_form *form;
    const struct sg_query *query;
    int64_t count, now_s;
    const struct sg_sink *sink;
    struct search_result *result;
    struct sg_error *err;
};

/* ---- members ---- */

static struct json_value member(struct json_value object, const char *name)
{
    struct json_value value;
    const char *const names[] = {name};
    bool is_there = name != NULL && json_is_object(object) &&
                    json_find(object.data, object.len, names, &value, 1);
    return is_there ? value : (struct json_value){NULL, 0};
}

/* "web.results": one level or two. */
static struct json_value member_at(struct json_value object, const char *path)
{
    char first[NAME_MAX_BYTES];
    const char *dot = strchr(path, '.');
    if (dot == NULL) {
        return member(object, path);
    }
    size_t len = (size_t)(dot - path);
    if (len >= sizeof first) {
        return (struct json_value){NULL, 0};
    }
    memcpy(first, path, len);
    first[len] = '\0';
    return member(member(object, first), dot + 1);
}

static bool has_content(struct json_value value)
{
    return (json_is_string(value) && value.len > 2) || (json_is_array(value) && value.len > 2);
}

/* The first of these that says something. */
static struct json_value first_of(struct json_value hit, const char *const names[SEARCH_NAMES_MAX])
{
    for (size_t i = 0; i < SEARCH_NAMES_MAX && names[i] != NULL; i++) {
        struct json_value value = member(hit, names[i]);
        if (has_content(value)) {
            return value;
        }
    }
    return (struct json_value){NULL, 0};
}

/* ---- one hit ---- */

static void put_text(const struct search_form *form, struct json_value value, size_t max,
                     struct text *out)
{
    if (json_is_string(value)) {
        search_clean(out, value, form->is_html, max);
    }
}

/* Several excerpts of one page become one text. */
static void put_snippet(const struct search_form *form, struct json_value value, struct text *out)
{
    if (!json_is_array(value)) {
        put_text(form, value, SEARCH_SNIPPET_MAX, out);
        return;
    }
    struct json_value part;
    struct json_reader reader = json_reader_of(value.data, value.len);
    while (json_next_element(&reader, &part) && out->len + 8 < SEARCH_SNIPPET_MAX) {
        if (json_is_string(part) && part.len > 2) {
            text_puts(out, out->len > 0 ? " / " : "");
            search_clean(out, part, form->is_html, SEARCH_SNIPPET_MAX - out->len);
        }
    }
}

/* The first that is a date. */
static void put_date(const struct reading *r, struct json_value hit, struct text *json)
{
    char date[SEARCH_DATE_SIZE];
    for (size_t i = 0; i < SEARCH_NAMES_MAX && r->form->date[i] != NULL; i++) {
        TEXT_CLEANUP struct text written = {0};
        put_text(r->form, member(hit, r->form->date[i]), DATE_TEXT_MAX, &written);
        if (written.data != NULL && search_date(written.data, r->now_s, date)) {
            text_json(json, date, strlen(date));
            return;
        }
    }
    text_puts(json, "null");
}

static int emit(const struct reading *r, struct json_value hit, const struct text *url)
{
    TEXT_CLEANUP struct text json = {0}, title = {0}, snippet = {0};
    put_text(r->form, member(hit, r->form->title), SEARCH_TITLE_MAX, &title);
    put_snippet(r->form, first_of(hit, r->form->snippet), &snippet);
    const struct text *shown = title.len > 0 ? &title : url;
    text_puts(&json, "{\"title\": ");
    text_json(&json, shown->data, text_cut(shown->data, shown->len, SEARCH_TITLE_MAX));
    text_puts(&json, ", \"url\": ");
    text_json(&json, url->data, url->len);
    text_puts(&json, ", \"snippet\": ");
    text_json(&json, snippet.data, snippet.len);
    text_puts(&json, ", \"date\": ");
    put_date(r, hit, &json);
    text_puts(&json, "}");
    if (json.overflow) {
        return sg->fail(r->err, SG_E_INTERNAL, "no memory for a hit");
    }
    r->result->hits++;
    return r->sink->event(r->sink->ctx, SG_OUT_HIT, json.data, json.len, r->err);
}

static int read_hit(const struct reading *r, struct json_value hit)
{
    TEXT_CLEANUP struct text url = {0};
    struct search_host host;
    struct json_value written = member(hit, r->form->url);
    if (json_is_string(written)) {
        search_clean(&url, written, false, SEARCH_URL_MAX + 16);
    }
    if (url.data == NULL || !search_url_host(url.data, url.len, &host)) {
        r->result->unusable++;
        return 0;
    }
    return search_is_wanted(r->query, host) ? emit(r, hit, &url) : 0;
}

static int read_hits(const struct reading *r, struct json_value array)
{
    int code = 0;
    struct json_value hit;
    struct json_reader reader = json_reader_of(array.data, array.len);
    while (code == 0 && json_next_element(&reader, &hit)) {
        r->result->elements++;
        if ((int64_t)r->result->hits < r->count) {
            code = read_hit(r, hit);
        }
    }
    return code;
}

/* ---- the answer ---- */

/* The top level's members; false, with the problem, where the text is not one JSON object. */
static bool check_text(const char *json, size_t len, struct search_result *result)
{
    struct json_value key, value;
    struct json_reader reader = json_reader_of(json, len);
    while (json_next(&reader, &key, &value)) {
    }
    result->problem = reader.problem;
    result->is_cut = reader.problem != NULL && reader.begun && reader.at == reader.end;
    return reader.problem == NULL;
}

int search_read(const struct search_form *form, const char *json, size_t len,
                const struct sg_query *query, int64_t count, int64_t now_s,
                const struct sg_sink *sink, struct search_result *ret, struct sg_error *err)
{
    *ret = (struct search_result){0};
    if (!check_text(json, len, ret)) {
        return 0;
    }
    size_t space = strspn(json, " \t\r\n");
    struct json_value root = {json + space, len - space};
    struct json_value array = member_at(root, form->hits);
    bool is_answer = form->marker != NULL && member(root, form->marker).data != NULL;
    if (!json_is_array(array) && (array.data != NULL || !is_answer)) {
        ret->problem = array.data == NULL ? "it holds no hits, not even an empty list of them"
                                          : "its hits are no list";
        return 0;
    }
    struct json_value failures = member(root, form->failures);
    ret->failures =
        json_is_array(failures) && failures.len > 2 ? failures : (struct json_value){NULL, 0};
    const struct reading reading = {form, query, count, now_s, sink, ret, err};
    return json_is_array(array) ? read_hits(&reading, array) : 0;
}
