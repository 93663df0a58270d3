/* What all search providers that are asked by HTTP have in common. A provider is one file: the options that only
 * it has, a constant `struct search_form` that says how its service is asked and how its answers look, and one function that
 * writes a query in the service's own words and hands it to search_ask(). docs/writing-plugins.md shows a whole one.
 *
 * Answers are not trusted: they are bounded, cleaned and checked, and what is no answer to the query is an error that says
 * so, never "no hits". The key goes to `base_url` only; no redirect is followed. */
#ifndef PLUGINS_SUPPORT_SEARCH_HTTP_H
#define PLUGINS_SUPPORT_SEARCH_HTTP_H

#include "search_answer.h"
#include "text.h"

/* ---- options ---- */

/* The options of every provider; the first member of its own struct. */
struct search_options {
    const char *api_key;  /* NULL or "": none */
    const char *base_url; /* with or without form.path behind it */
    const char *ca_file;
    int64_t timeout; /* ms, of one exchange */
    int64_t count;   /* hits where the query says nothing */
};

/* What every table of options begins with; what the provider's own struct adds stands behind. `key_flags`: SG_REQUIRED, or
 * 0 for a service that may go without. `url`: where the service is; NULL: the operator says. */
#define SEARCH_OPTIONS(key_flags, url)                                                          \
    {.name = "api_key",                                                                         \
     .type = SG_STRING,                                                                         \
     .flags = SG_SECRET | (key_flags),                                                          \
     SG_FIELD(struct search_options, api_key),                                                  \
     .help = "The service's key; it is sent to 'base_url' only."},                              \
        {.name = "base_url",                                                                    \
         .type = SG_STRING,                                                                     \
         .flags = (url) == NULL ? SG_REQUIRED : 0,                                              \
         SG_FIELD(struct search_options, base_url),                                             \
         .def = (url),                                                                          \
         .help =                                                                                \
             "Where the service is, http:// or https://; http:// sends key and queries in the " \
             "open."},                                                                          \
        {.name = "ca_file",                                                                     \
         .type = SG_STRING,                                                                     \
         SG_FIELD(struct search_options, ca_file),                                              \
         .help = "Certificates (PEM) to trust instead of the system's: an absolute path."},     \
        {.name = "timeout",                                                                     \
         .type = SG_DURATION,                                                                   \
         SG_FIELD(struct search_options, timeout),                                              \
         .def = "10s",                                                                          \
         .min = "100ms",                                                                        \
         .max = "2m",                                                                           \
         .help = "The longest that one exchange with the service may take."},                   \
    {                                                                                           \
        .name = "count", .type = SG_INT, SG_FIELD(struct search_options, count), .def = "10",   \
        .min = "1", .max = "20",                                                                \
        .help = "Hits that are asked for where the query does not say how many."                \
    }

/* Every provider's open(): an instance is its options. SG_E_CONFIG where base_url or api_key cannot be used. */
int search_open(const void *config, struct sg_call *, void **ret_self, struct sg_error *);

/* The plugin itself. `own_config` begins with struct search_options; `own_search` is the search() of struct sg_search_ops. */
#define SEARCH_PLUGIN(version, own_name, own_help, own_options, own_config, own_search) \
    static const struct sg_search_ops search_operations = {.search = (own_search)};     \
    static const struct sg_plugin search_plugin = {.name = (own_name),                  \
                                                   .help = (own_help),                  \
                                                   .options = (own_options),            \
                                                   .config_size = sizeof(own_config),   \
                                                   .open = search_open,                 \
                                                   .search = &search_operations,        \
                                                   .flags = SG_ON_LOOP};                \
    SG_PLUGIN_SET(version, &search_plugin)

/* Hits to ask for, 1 to 20. */
int64_t search_count(const struct search_options *, const struct sg_query *);

/* ---- writing a query ---- */

/* Appends name=value behind a '?' or '&', percent-encoded; nothing if value is NULL or "". */
void search_parameter(struct text *parameters, const char *name, const char *value);
void search_parameter_int(struct text *parameters, const char *name, int64_t value);

/* Appends a member to an object that search_object_end() completes; nothing if value is NULL or "". */
void search_member(struct text *object, const char *name, const char *value);
void search_member_int(struct text *object, const char *name, int64_t value);
/* A value that is JSON already. */
void search_member_json(struct text *object, const char *name, const char *json);
/* The hosts of the query's domains as an array of strings, those that are blocked with `prefix` in front. Nothing at all if
 * there are none, more than `max`, or one that search_domain_host() refuses: the core's filter must do then. */
void search_member_allowed(struct text *object, const char *name, const struct sg_query *,
                           size_t max);
void search_member_blocked(struct text *object, const char *name, const struct sg_query *,
                           const char *prefix, size_t max);
void search_object_end(struct text *object);

/* The query's text with its domains as a search engine's operators: "(text)", `and`, "(site:a OR site:b)", then `not` and
 * "site:c" for each blocked one. The text alone where the whole were longer than len_max, for the same reason. */
void search_operators(struct text *out, const struct sg_query *, const char *and, const char * not,
                      size_t len_max);

/* For the freshness of a query, what the service calls it: of day, week, month, year, which `names` NULL stands for. NULL:
 * any. */
const char *search_freshness(const struct sg_query *, const char *const names[4]);

/* ---- asking ---- */

struct search_request {
    const struct text *parameters; /* behind the path; NULL: none */
    const struct text *body;       /* JSON, by POST; NULL: GET */
};

/* Asks, reads the answer, emits the hits. After 429 or 5xx once more, if the service wants to be left alone for at most 2 s.
 * Waits. */
int search_ask(const struct search_form *, const struct search_options *, struct sg_call *,
               const struct sg_query *, const struct search_request *, struct sg_error *);
/* By POST, with an object that is not ended yet. */
int search_post(const struct search_form *, const struct search_options *, struct sg_call *,
                const struct sg_query *, struct text *object, struct sg_error *);

/* ---- search_fault.c ---- */

/* What an answer means that holds no hits: the plugin's code, and a message that says what happened and what to do. */
int search_fault(const struct search_form *, const struct search_options *, const struct sg_query *,
                 const struct sg_http_reply *, struct sg_error *);
/* Of an exchange that failed, `code` and err as sg->http() left them. */
int search_fault_exchange(const struct search_form *, int code, uint32_t failed_at,
                          struct sg_error *);
/* Of one with status 2xx that search_read() could not use. */
int search_fault_answer(const struct search_form *, const struct search_options *,
                        const struct sg_query *, const struct sg_http_reply *,
                        const struct search_result *, struct sg_error *);
/* Seconds of the header Retry-After: 0 if there is none, -1 if it is none that we read (a date). */
int64_t search_retry_after(const struct sg_http_reply *);

#endif
