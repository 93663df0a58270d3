/* The mock search: hits by rules, and one hit for any other query, always the same for the same query. */
#include "faults.h"
#include "journal.h"
#include "mock.h"
#include "pattern.h"
#include "text.h"

#include <stdlib.h>
#include <strings.h>

struct search_rule {
    const char *when; /* first: see patterns_new() */
    const char *const *hits;
    int64_t delay;
    const char *fault;
};

struct search_config {
    struct sg_list rules;
    int64_t delay;
    bool ignores_domains;
    const char *fault, *journal;
};

struct search {
    const struct search_config *config;
    struct pattern *patterns;
    struct journal journal;
};

#define FAULTS "none|refuse|limit|hang|garbage"

static const struct sg_option rule_options[] = {
    {.name = "when",
     .type = SG_STRING,
     SG_FIELD(struct search_rule, when),
     .help = "The query contains this text, or matches this /regular expression/; absent: any."},
    {.name = "hits",
     .type = SG_STRINGS,
     SG_FIELD(struct search_rule, hits),
     .help = "Hits, each 'title | url | snippet | date'; snippet and date may be left out."},
    {.name = "delay",
     .type = SG_DURATION,
     SG_FIELD(struct search_rule, delay),
     .help = "Time that the search takes."},
    {.name = "fault",
     .type = SG_CHOICE,
     SG_FIELD(struct search_rule, fault),
     .def = "none",
     .choices = FAULTS,
     .help = "What goes wrong."},
    {0},
};

static const struct sg_option options[] = {
    {.name = "rules",
     .type = SG_LIST,
     SG_FIELD(struct search_config, rules),
     .fields = rule_options,
     .fields_size = sizeof(struct search_rule),
     .help = "What queries find, first match; a query without a rule finds one page."},
    {.name = "delay",
     .type = SG_DURATION,
     SG_FIELD(struct search_config, delay),
     .help = "Time that every search takes."},
    {.name = "fault",
     .type = SG_CHOICE,
     SG_FIELD(struct search_config, fault),
     .def = "none",
     .choices = FAULTS,
     .help = "What goes wrong in every search without a rule."},
    {.name = "ignores_domains",
     .type = SG_BOOL,
     SG_FIELD(struct search_config, ignores_domains),
     .def = "false",
     .help = "Finds pages of any domain, as a service does that cannot be asked for some."},
    {.name = "journal",
     .type = SG_STRING,
     SG_FIELD(struct search_config, journal),
     .help = "A file to which every search appends a line with its query."},
    {0},
};

static void search_free(struct search *s)
{
    patterns_free(s->patterns, s->config->rules.count);
    journal_close(&s->journal);
    free(s);
}

static int open_instance(const void *config, struct sg_call *call, void **ret_self,
                         struct sg_error *err)
{
    (void)call;
    struct search *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return sg->fail(err, SG_E_INTERNAL, "no memory");
    }
    s->config = config;
    int code = journal_open(&s->journal, s->config->journal, err);
    if (code == 0) {
        code = patterns_new(&s->config->rules, sizeof(struct search_rule), &s->patterns, err);
    }
    if (code != 0) {
        search_free(s);
        return code;
    }
    *ret_self = s;
    return 0;
}

static void close_instance(void *self, struct sg_call *call)
{
    (void)call;
    search_free(self);
}

/* ---- domains ---- */

struct piece {
    const char *data;
    size_t len;
};

static struct piece host_of(struct piece url)
{
    const char *slashes = memmem(url.data, url.len, "://", 3);
    const char *from = slashes == NULL ? url.data : slashes + 3;
    size_t len = (size_t)(url.data + url.len - from), end = 0;
    while (end < len && strchr("/:?#", from[end]) == NULL) {
        end++;
    }
    return (struct piece){from, end};
}

/* example.com holds www.example.com, but not notexample.com. */
static bool domain_holds(const char *domain, struct piece host)
{
    size_t len = strlen(domain);
    if (len == 0 || host.len < len || strncasecmp(host.data + host.len - len, domain, len) != 0) {
        return false;
    }
    return host.len == len || host.data[host.len - len - 1] == '.';
}

static bool is_among(const char *const *domains, struct piece host)
{
    for (size_t i = 0; domains != NULL && domains[i] != NULL; i++) {
        if (domain_holds(domains[i], host)) {
            return true;
        }
    }
    return false;
}

static bool is_wanted(const struct sg_query *query, struct piece url)
{
    struct piece host = host_of(url);
    return !is_among(query->blocked, host) &&
           (query->allowed == NULL || query->allowed[0] == NULL || is_among(query->allowed, host));
}

/* ---- hits ---- */

static struct piece trimmed(struct piece p)
{
    while (p.len > 0 && p.data[0] == ' ') {
        p.data++;
        p.len--;
    }
    while (p.len > 0 && p.data[p.len - 1] == ' ') {
        p.len--;
    }
    return p;
}

/* The next part up to " | " or the end; *rest moves behind it. */
static struct piece next_part(const char **rest)
{
    const char *bar = strstr(*rest, " | ");
    size_t len = bar == NULL ? strlen(*rest) : (size_t)(bar - *rest);
    struct piece part = {*rest, len};
    *rest += bar == NULL ? len : len + 3;
    return trimmed(part);
}

static int emit_hit(struct sg_call *call, const struct piece parts[4], struct sg_error *err)
{
    static const char *const names[] = {
        "{\"title\": ", ", \"url\": ", ", \"snippet\": ", ", \"date\": "};
    TEXT_CLEANUP struct text json = {0};
    for (size_t i = 0; i < 4; i++) {
        text_puts(&json, names[i]);
        if (i == 3 && parts[i].len == 0) {
            text_puts(&json, "null");
        } else {
            text_json(&json, parts[i].data, parts[i].len);
        }
    }
    text_puts(&json, "}");
    return json.overflow ? sg->fail(err, SG_E_LIMIT, "a hit is too long")
                         : sg->emit(call, SG_OUT_HIT, json.data, json.len, err);
}

static int emit_hits(struct sg_call *call, const struct sg_query *query, const char *const *hits,
                     struct sg_error *err)
{
    int64_t left = query->count_max > 0 ? query->count_max : INT64_MAX;
    int code = 0;
    for (size_t i = 0; code == 0 && left > 0 && hits != NULL && hits[i] != NULL; i++) {
        const char *rest = hits[i];
        struct piece parts[4];
        for (size_t part = 0; part < 4; part++) {
            parts[part] = next_part(&rest);
        }
        if (is_wanted(query, parts[1])) {
            code = emit_hit(call, parts, err);
            left--;
        }
    }
    return code;
}

static void put_percent(struct text *out, const char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        bool plain = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
        text_printf(out, plain ? "%c" : "%%%02X", c);
    }
}

/* One page about the query, on the first domain that is allowed. */
static int emit_default_hit(struct sg_call *call, const struct sg_query *query,
                            struct sg_error *err)
{
    bool chosen = query->allowed != NULL && query->allowed[0] != NULL;
    TEXT_CLEANUP struct text title = {0}, url = {0}, snippet = {0};
    text_printf(&title, "About %s", query->text);
    text_printf(&url, "https://%s/search?q=", chosen ? query->allowed[0] : "example.com");
    put_percent(&url, query->text);
    text_printf(&snippet, "The mock search found this page about %s.", query->text);
    if (title.overflow || url.overflow || snippet.overflow) {
        return sg->fail(err, SG_E_LIMIT, "the query is too long");
    }
    struct piece parts[4] = {{title.data, title.len},
                             {url.data, url.len},
                             {snippet.data, snippet.len},
                             {"2025-01-01", 10}};
    return is_wanted(query, parts[1]) ? emit_hit(call, parts, err) : 0;
}

static int emit_garbage(struct sg_call *call, struct sg_error *err)
{
    static const char *const pieces[] = {"{\"title\": \"\xFF", "[]", "{\"url\": 1}", "",
                                         "{\"title\": null, \"url\": \"not a url\"}"};
    int code = 0;
    for (size_t i = 0; code == 0 && i < sizeof pieces / sizeof *pieces; i++) {
        code = sg->emit(call, SG_OUT_HIT, pieces[i], strlen(pieces[i]), err);
    }
    return code;
}

static int search(void *self, struct sg_call *call, const struct sg_query *wanted,
                  struct sg_error *err)
{
    struct search *s = self;
    struct sg_query unbound = *wanted;
    unbound.allowed = unbound.blocked = NULL;
    const struct sg_query *query = s->config->ignores_domains ? &unbound : wanted;
    const struct search_rule *rule = NULL, *rules = s->config->rules.items;
    for (size_t i = 0; rule == NULL && i < s->config->rules.count; i++) {
        rule =
            pattern_matches(&s->patterns[i], query->text, strlen(query->text)) ? &rules[i] : NULL;
    }
    journal_printf(&s->journal, call, "search %s", query->text);
    const char *fault = rule == NULL ? s->config->fault : rule->fault;
    int64_t delay = s->config->delay + (rule == NULL ? 0 : rule->delay);
    int code = delay > 0 ? sg->sleep(call, delay, err) : 0;
    while (code == 0 && fault_is(fault, "hang")) {
        code = sg->sleep(call, 3600000, err);
    }
    if (code != 0) {
        return code;
    }
    if (fault_is(fault, "refuse")) {
        return sg->fail(err, SG_E_UNAVAILABLE, "the search was refused");
    }
    if (fault_is(fault, "limit")) {
        return sg->fail(err, SG_E_LIMIT, "the quota of searches is used up");
    }
    if (fault_is(fault, "garbage")) {
        return emit_garbage(call, err);
    }
    return rule == NULL ? emit_default_hit(call, query, err)
                        : emit_hits(call, query, rule->hits, err);
}

static const struct sg_search_ops operations = {.search = search};

const struct sg_plugin mock_search = {
    .name = "mock",
    .help = "A search without a network: hits by rules, and every fault on demand.",
    .options = options,
    .config_size = sizeof(struct search_config),
    .open = open_instance,
    .close = close_instance,
    .search = &operations,
    .flags = SG_ON_LOOP,
};
