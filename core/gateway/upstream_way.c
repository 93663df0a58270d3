/* How upstreams are reached and what is said to them beyond the API: files of certificates, a proxy, headers of the operator's.
 * Files are read when the configuration is, so that a request uses what was checked. */
#include "gateway/setup_options.h"
#include "gateway/upstream.h"

#include "base/check.h"
#include "base/limits.h"
#include "http/pem.h"

#include <string.h>

enum { SECRET_BYTES_MIN = 8 }; /* of a header's value: shorter ones are in many texts */

struct reading {
    const struct upstream *upstream;
    const struct conf_node *entry;
    const char *file; /* of the configuration */
    struct arena *arena;
    struct conf_problems *problems;
};

static void problem_at(const struct reading *reading, const char *option, const char *words)
{
    conf_problem(reading->problems, conf_at(reading->entry, option), "upstream '%s': '%s' %s",
                 reading->upstream->name, option, words);
}

/* ---- headers ---- */

/* What the gateway says itself, and what would be another request's. */
static const char *header_problem(const struct upstream *upstream, struct str name)
{
    static const char *const ours[] = {"host",   "content-length",  "content-type",
                                       "expect", "accept-encoding", NULL};
    bool is_credential =
        str_eq_nocase(name, STR("authorization")) || str_eq_nocase(name, STR("x-api-key"));
    if (!http_token_valid(name)) {
        return "is not the name of a header";
    }
    for (const char *const *one = ours; *one != NULL; one++) {
        if (str_eq_nocase(name, str_of(*one))) {
            return "is the gateway's to set";
        }
    }
    if (http_is_hop_by_hop(name, (struct str){0})) {
        return "belongs to one connection, and is the gateway's to set";
    }
    if (str_eq_nocase(name, STR("idempotency-key"))) {
        return "would make all requests the same one";
    }
    if (is_credential && upstream->api_key != NULL) {
        return "says who you are, as 'api_key' does: leave one out";
    }
    if (is_credential && upstream->passthrough) {
        return "says who you are, and with 'passthrough' the client does";
    }
    return NULL;
}

static void headers_read(const struct reading *reading, const struct sg_map *map,
                         struct upstream *upstream)
{
    struct fetch_field *fields = arena_get(reading->arena, (map->count + 1) * sizeof *fields);
    for (size_t i = 0; i < map->count; i++) {
        struct str name = str_of(map->keys[i]), value = str_of(map->values[i]);
        const char *problem = header_problem(upstream, name);
        if (problem == NULL && (!http_value_valid(value) || !str_eq(str_trim(value), value))) {
            problem = "has white space around its value or control characters in it";
        }
        for (size_t k = 0; problem == NULL && k < i; k++) {
            problem = str_eq_nocase(name, fields[k].name) ? "is there twice" : NULL;
        }
        if (problem != NULL) {
            problem_at(reading, "headers",
                       arena_printf(reading->arena, "holds '%.80s', which %s", name.data, problem));
        }
        fields[i] = (struct fetch_field){name, value};
    }
    upstream->headers = fields;
    upstream->headers_count = map->count;
}

bool upstream_sets_field(const struct upstream *upstream, struct str name)
{
    for (size_t i = 0; i < upstream->headers_count; i++) {
        if (str_eq_nocase(upstream->headers[i].name, name)) {
            return true;
        }
    }
    return false;
}

static bool holds(struct str text, struct str secret)
{
    return text.len > 0 && memmem(text.data, text.len, secret.data, secret.len) != NULL;
}

/* Which values are secrets only the operator knows: all are taken for one. "Bearer KEY" is shown by its KEY. */
bool upstream_secret_in(const struct upstream *upstream, struct str text)
{
    if (upstream->api_key != NULL && holds(text, str_of(upstream->api_key))) {
        return true;
    }
    for (size_t i = 0; i < upstream->headers_count; i++) {
        struct str value = upstream->headers[i].value;
        const char *space = value.len > 0 ? memrchr(value.data, ' ', value.len) : NULL;
        struct str last = space == NULL ? value : str_of(space + 1);
        if (last.len >= SECRET_BYTES_MIN && holds(text, last)) {
            return true;
        }
    }
    return false;
}

/* ---- certificates and proxy ---- */

static void pem_option(const struct reading *reading, const char *option, const char *path,
                       enum pem_kind kind, struct str *ret)
{
    struct sg_error err = {0};
    if (path != NULL && pem_read(config_path(reading->file, path, reading->arena), kind,
                                 reading->arena, ret, &err) != 0) {
        problem_at(reading, option, err.message);
    }
}

/* NULL where the option can have an effect. */
static const char *useless(const struct upstream *upstream, const struct upstream_text *text,
                           bool is_tls)
{
    bool is_plain =
        upstream->base_url != NULL && str_starts(str_of(upstream->base_url), STR("http://"));
    if (text->plugin != NULL) {
        return "is of no use with 'plugin', which makes no connection here: leave it out";
    }
    return is_tls && is_plain ? "is of no use where 'base_url' is plain http: leave it out, or "
                                "write https"
                              : NULL;
}

static void check_uses(const struct reading *reading, const struct upstream_text *text)
{
    bool by_tls = text->proxy != NULL && str_starts(str_of(text->proxy), STR("https://"));
    const struct {
        const char *option;
        bool is_given, is_tls;
    } uses[] = {{"ca_file", text->ca_file != NULL, !by_tls}, /* a proxy is trusted by it too */
                {"client_certificate", text->client_certificate != NULL, true},
                {"client_key", text->client_key != NULL, true},
                {"proxy", text->proxy != NULL, false},
                {"headers", text->headers.count > 0, false}};
    for (size_t i = 0; i < COUNT_OF(uses); i++) {
        const char *problem =
            uses[i].is_given ? useless(reading->upstream, text, uses[i].is_tls) : NULL;
        if (problem != NULL) {
            problem_at(reading, uses[i].option, problem);
        }
    }
}

static void pair_read(const struct reading *reading, const struct upstream_text *text,
                      struct fetch_way_options *way)
{
    struct sg_error err = {0};
    if (text->client_certificate != NULL && text->client_key == NULL) {
        problem_at(reading, "client_certificate", "needs its 'client_key'");
    } else if (text->client_certificate == NULL && text->client_key != NULL) {
        problem_at(reading, "client_key", "needs its 'client_certificate'");
    }
    pem_option(reading, "client_certificate", text->client_certificate, PEM_CERTIFICATES,
               &way->certificate);
    pem_option(reading, "client_key", text->client_key, PEM_KEY, &way->key);
    if (way->certificate.len > 0 && way->key.len > 0 &&
        pem_check_pair(way->certificate, way->key, &err) != 0) {
        problem_at(reading, "client_key", err.message);
    }
}

static void way_read(const struct reading *reading, const struct upstream_text *text,
                     struct upstream *upstream)
{
    struct fetch_way_options way = {.proxy = text->proxy};
    size_t before = reading->problems->count;
    struct sg_error err = {0};
    check_uses(reading, text);
    pem_option(reading, "ca_file", text->ca_file, PEM_CERTIFICATES, &way.ca);
    pair_read(reading, text, &way);
    bool is_needed = way.ca.len > 0 || way.certificate.len > 0 || way.proxy != NULL;
    if (is_needed && reading->problems->count == before &&
        fetch_way_new(&way, reading->arena, &upstream->way, &err) != 0) {
        problem_at(reading, "proxy",
                   arena_printf(reading->arena, "cannot be used: %s", err.message));
    }
}

void upstream_read_way(const struct upstream_text *text, const struct conf_node *entry,
                       const char *file, struct upstream *upstream, struct arena *arena,
                       struct conf_problems *problems)
{
    struct reading reading = {upstream, entry, file, arena, problems};
    upstream->tries_max = (unsigned)text->retries + 1;
    headers_read(&reading, &text->headers, upstream);
    way_read(&reading, text, upstream);
}
