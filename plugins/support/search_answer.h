/* Reading the answers of search services: pure functions over bytes that are not trusted. */
#ifndef PLUGINS_SUPPORT_SEARCH_ANSWER_H
#define PLUGINS_SUPPORT_SEARCH_ANSWER_H

#include "json_text.h"
#include "text.h"

#include <sandgate/plugin.h>

#define SEARCH_TITLE_MAX 300
#define SEARCH_URL_MAX 2048
#define SEARCH_SNIPPET_MAX 2048
#define SEARCH_NAMES_MAX 3

/* How a service is asked, and how its answers look. A constant of each provider. */
struct search_form {
    const char *service;                 /* in messages: "Brave" */
    const char *path;                    /* behind base_url: "/search" */
    const char *key_header, *key_prefix; /* "Authorization", "Bearer " */
    const char *hits;                    /* the member with the array; two levels: "web.results" */
    const char *
        marker; /* a member of every answer: without hits it may lack `hits`. NULL: it never does */
    const char *failures;    /* a member that lists what failed behind the service; NULL: none */
    const char *title, *url; /* members of a hit */
    const char
        *snippet[SEARCH_NAMES_MAX]; /* the first that is there; an array of strings is joined */
    const char *date[SEARCH_NAMES_MAX];
    bool is_html;            /* titles and snippets have tags and entities in them */
    const char *denied_hint; /* what to do after 401 and 403; NULL: check 'api_key' */
};

struct search_result {
    const char *problem; /* why it is no answer, NULL if it is one; nothing was emitted then */
    bool is_cut;         /* with a problem: it is JSON that ends too early */
    size_t elements;     /* of the array */
    size_t unusable;     /* of them, without an address that can be used */
    size_t hits;         /* emitted */
    struct json_value failures; /* of form.failures, an array that is not empty; else {NULL, 0} */
};

/* Emits at most `count` hits as SG_OUT_HIT, those on domains that the query wants; now_s is the time of the day, for dates
 * such as "2 hours ago". Returns what the sink did. */
int search_read(const struct search_form *, const char *json, size_t len, const struct sg_query *,
                int64_t count, int64_t now_s, const struct sg_sink *, struct search_result *ret,
                struct sg_error *);

/* ---- search_clean.c ---- */

/* Appends a JSON string's text: valid UTF-8 without control characters and the like, white space as single spaces, at most
 * `max` bytes of whole characters ("…" at the end where it was cut). */
void search_clean(struct text *out, struct json_value string, bool is_html, size_t max);

/* ---- search_date.c ---- */

/* "2024-03-05" and 0 from a date as services write it; SEARCH_DATE_SIZE bytes. False if it is none that is known to the day. */
#define SEARCH_DATE_SIZE 11
bool search_date(const char *text, int64_t now_s, char ret[SEARCH_DATE_SIZE]);
/* The day so many days before. */
void search_date_before(int64_t now_s, int days, char ret[SEARCH_DATE_SIZE]);

/* ---- search_domain.c ---- */

struct search_host {
    const char *data;
    size_t len;
};

/* The host of "example.com", "example.com/path" or "https://example.com"; false if it holds what no host does. */
bool search_domain_host(const char *domain, struct search_host *ret);
/* True if there was a path behind the host that it was taken from. */
bool search_has_path(struct search_host of_domain);
/* The host of an http(s) URL; false if it is none that may be shown. */
bool search_url_host(const char *url, size_t len, struct search_host *ret);
/* By hosts alone: paths are the core's to look at. */
bool search_is_wanted(const struct sg_query *, struct search_host);

#endif
