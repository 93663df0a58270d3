/* sg->search(): limits, the cache, the provider's call, and what becomes of its hits. They are gathered first and handed
 * over once the search was good: half an answer is none. */
#include "gateway/search_hits.h"
#include "gateway/search_state.h"
#include "gateway/service.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/identity.h"
#include "base/domain.h"
#include "base/limits.h"
#include "base/log.h"
#include "gateway/metrics.h"

#include <stdio.h>

static const struct failure_texts search_texts = {
    .limit = "The search is used too often at the moment.",
    .timeout = "The search took too long.",
    .other = "The search failed.",
};

struct job { /* one search, in the frame of the call that asked */
    struct request *request;
    const struct search *search;
    const struct sg_query *query; /* as it was asked */
    struct arena *arena;          /* until the search has ended */
    struct hits hits;
    char key[2 * SHA256_BYTES + 1]; /* of the cache */
    int64_t began_us;
};

/* ---- limits ---- */

static int refuse(const struct job *job, struct sg_error *err)
{
    struct log_line line;
    metrics_search(job->request->gateway->metrics, job->search, METRIC_CALL_REFUSED, 0);
    log_begin(&line, SG_INFO, "search_refused");
    log_text(&line, "request", job->request->id);
    log_text(&line, "search", job->search->name);
    log_text(&line, "message", err->message);
    log_end(&line);
    return err->code;
}

/* Every search of a request counts, also one that is answered from the cache: the client counts uses. */
static int count_in_request(struct job *job, struct sg_call *call, struct sg_error *err)
{
    int64_t theirs = search_client_max(call_tool_options(call), job->arena);
    if (search_is_allowed(job->request->searches, theirs, job->search->max_per_request, err) != 0) {
        if (strcmp(err->reason, "max_uses") == 0) {
            call_note_uses_spent(call); /* API forms have a word of their own for it */
        }
        return refuse(job, err);
    }
    job->request->searches++;
    return 0;
}

static int count_in_minute(const struct job *job, struct sg_error *err)
{
    const struct gateway *gateway = job->request->gateway;
    if (job->search->per_minute == 0) {
        return 0;
    }
    int64_t wait_ms = search_rate_take(
        gateway->searches, (size_t)(job->search - gateway->config->searches),
        identity_key(job->request->identity), (size_t)job->search->per_minute, clock_ms());
    if (wait_ms == 0) {
        return 0;
    }
    (void)error_set(
        err, SG_E_LIMIT,
        "%lld searches a minute are allowed; the next is in %lld s: answer with what you "
        "have.",
        (long long)job->search->per_minute, (long long)(wait_ms + 999) / 1000);
    return refuse(job, err);
}

/* ---- the cache ---- */

static size_t list_length(const char *const *list)
{
    size_t count = 0;
    while (list != NULL && list[count] != NULL) {
        count++;
    }
    return count;
}

static size_t put_list(struct str *parts, const char *const *list, struct arena *arena)
{
    size_t count = list_length(list);
    parts[0] = str_of(arena_printf(arena, "%zu", count)); /* where one list ends */
    for (size_t i = 0; i < count; i++) {
        parts[1 + i] = str_of(list[i]);
    }
    return 1 + count;
}

/* All that makes a search another one. Absent is not the same as empty. */
static void find_key(struct job *job)
{
    const struct sg_query *q = job->query;
    const char *const optional[] = {q->country, q->language, q->freshness};
    size_t room = 16 + list_length(q->allowed) + list_length(q->blocked), count = 0;
    struct str *parts = arena_get(job->arena, room * sizeof *parts);
    parts[count++] = str_of(job->search->name);
    parts[count++] = str_of(q->text);
    parts[count++] = str_of(arena_printf(job->arena, "%lld", (long long)q->count_max));
    for (size_t i = 0; i < sizeof optional / sizeof *optional; i++) {
        parts[count++] = optional[i] == NULL ? STR("") : STR("=");
        parts[count++] = str_of(optional[i]);
    }
    count += put_list(parts + count, q->allowed, job->arena);
    count += put_list(parts + count, q->blocked, job->arena);
    CHECK(count <= room);
    uint8_t hash[SHA256_BYTES];
    sha256_parts(parts, count, hash);
    hex_encode(hash, sizeof hash, job->key);
}

static bool is_cached(struct job *job)
{
    const struct request *r = job->request;
    find_key(job);
    bool is_there = job->search->cache_ms > 0 &&
                    search_cache_find(r->gateway->searches, r->identity, str_of(job->key),
                                      job->search->cache_ms, clock_ms(), &job->hits.lines);
    if (is_there) {
        metrics_search_cached(r->gateway->metrics, job->search);
    }
    return is_there;
}

static void keep(const struct job *job)
{
    const struct request *r = job->request;
    if (job->search->cache_ms > 0) {
        search_cache_keep(r->gateway->searches, r->identity, str_of(job->key),
                          buf_str(&job->hits.lines), clock_ms());
    }
}

/* ---- the provider ---- */

/* Of the client's entries what a service can be asked for: hosts. The paths of allowed ones are looked at afterwards, and a
 * blocked one with a path is no reason to leave out the host. */
static const char *const *hosts_of(struct arena *arena, const char *const *entries, bool with_paths)
{
    size_t count = list_length(entries), used = 0;
    if (count == 0) {
        return NULL;
    }
    const char **hosts = arena_get(arena, (count + 1) * sizeof *hosts);
    for (size_t i = 0; i < count; i++) {
        struct place domain;
        if (domain_read(str_of(entries[i]), arena, &domain) &&
            (with_paths || domain.path.len == 0)) {
            hosts[used++] = check_alloc(arena_copy(arena, domain.host));
        }
    }
    return hosts;
}

static const char *copy_text(struct arena *arena, const char *text)
{
    return text == NULL ? NULL : check_alloc(arena_copy(arena, str_of(text)));
}

/* The provider's own copy: its call may outlive the one that asked. */
static struct sg_query *copy_query(struct arena *arena, const struct sg_query *wanted)
{
    struct sg_query *query = arena_get(arena, sizeof *query);
    *query = *wanted;
    query->text = copy_text(arena, wanted->text);
    query->allowed = hosts_of(arena, wanted->allowed, true);
    query->blocked = hosts_of(arena, wanted->blocked, false);
    query->country = copy_text(arena, wanted->country);
    query->language = copy_text(arena, wanted->language);
    query->freshness = copy_text(arena, wanted->freshness);
    return query;
}

static int invoke_search(const struct instance *instance, struct sg_call *call, void *arguments,
                         struct sg_error *err)
{
    return instance->plugin->search->search(instance->self, call, arguments, err);
}

static int take_hit(void *context, enum sg_out kind, const void *data, size_t len,
                    struct sg_error *err)
{
    struct job *job = context;
    (void)err;
    if (kind == SG_OUT_HIT) {
        (void)hits_take(&job->hits, (struct str){data, len}); /* counted by what became of it */
    }
    return 0;
}

/* Hits that are all nonsense are no answer. */
static int judge(const struct job *job, struct sg_error *err)
{
    const size_t *counts = job->hits.counts;
    if (job->hits.lines.overflow) {
        return error_set(err, SG_E_LIMIT, "no memory");
    }
    bool has_good = counts[HIT_PASSED] + counts[HIT_FILTERED] > 0;
    return has_good || counts[HIT_MALFORMED] == 0
               ? 0
               : error_set(err, SG_E_UNAVAILABLE,
                           "none of %zu hits is a JSON object with an http or https URL",
                           counts[HIT_MALFORMED]);
}

static int ask(struct job *job, struct sg_call *call, struct sg_error *err)
{
    struct request *r = job->request;
    int64_t deadline = deadline_min(call_deadline(call), deadline_in(job->search->timeout_ms));
    struct sg_call *inner = call_new(job->search->instance, "search", NULL, r->id, deadline);
    call_set_identity(inner, r->identity);
    struct sg_query *query = copy_query(call_arena(inner), job->query);
    struct sg_sink sink = {.event = take_hit, .ctx = job};
    job->began_us = clock_us();
    r->runs++; /* nothing is waited for any more */
    int rc = call_run(inner, invoke_search, query, &sink, err);
    return rc == 0 ? judge(job, err) : rc;
}

static void say(const struct job *job, bool is_cached)
{
    const size_t *counts = job->hits.counts;
    struct log_line line;
    log_begin(&line, SG_INFO, "search");
    log_text(&line, "request", job->request->id);
    log_text(&line, "search", job->search->name);
    log_text(&line, "cached", is_cached ? "yes" : "no");
    if (!is_cached) {
        log_int(&line, "hits", (int64_t)counts[HIT_PASSED]);
        log_int(&line, "malformed", (int64_t)counts[HIT_MALFORMED]);
        log_int(&line, "filtered", (int64_t)counts[HIT_FILTERED]);
        log_int(&line, "duplicate", (int64_t)counts[HIT_DUPLICATE]);
        log_int(&line, "ms", (clock_us() - job->began_us) / 1000);
    }
    log_end(&line);
}

static int ask_and_keep(struct job *job, struct sg_call *call, struct sg_error *err)
{
    struct request *r = job->request;
    int rc = count_in_minute(job, err);
    if (rc != 0) {
        return rc;
    }
    rc = ask(job, call, err);
    if (rc != SG_E_CANCELLED) {
        metrics_search(r->gateway->metrics, job->search,
                       rc == 0 ? METRIC_CALL_COMPLETED : METRIC_CALL_FAILED,
                       clock_us() - job->began_us);
        metrics_search_hits(r->gateway->metrics, job->search, job->hits.counts);
    }
    if (rc == 0) {
        keep(job);
    }
    return rc == 0 ? 0 : service_report(r, job->search->instance, "search", &search_texts, err);
}

static int hand_over(const struct job *job, const struct sg_sink *sink, struct sg_error *err)
{
    struct str rest = buf_str(&job->hits.lines), hit;
    int rc = 0;
    while (rc == 0 && hits_next(&rest, &hit)) {
        rc = sink->event(sink->ctx, SG_OUT_HIT, hit.data, hit.len, err);
    }
    return rc;
}

static int carry_out(struct job *job, struct sg_call *call, const struct sg_sink *sink,
                     struct sg_error *err)
{
    int rc = count_in_request(job, call, err);
    if (rc != 0) {
        return rc;
    }
    bool cached = is_cached(job);
    rc = cached ? 0 : ask_and_keep(job, call, err);
    if (rc != 0) {
        return rc;
    }
    say(job, cached);
    return hand_over(job, sink, err);
}

/* What nobody can read would block nothing. */
static int check_domains(const struct job *job, const char *const *entries, struct sg_error *err)
{
    struct place ignored;
    for (size_t i = 0; entries != NULL && entries[i] != NULL; i++) {
        if (!domain_read(str_of(entries[i]), job->arena, &ignored)) {
            return error_set(err, SG_E_INVALID, "search(): '%.80s' is no domain", entries[i]);
        }
    }
    return 0;
}

int service_search(struct sg_call *call, const struct sg_query *query, const struct sg_sink *sink,
                   struct sg_error *err)
{
    struct job job = {.query = query};
    int rc = service_request(call, &job.request, err);
    if (rc != 0) {
        return rc;
    }
    job.search = job.request->active_tool->interceptor->search;
    if (job.search == NULL) {
        return error_set(err, SG_E_INTERNAL, "this interceptor has no search");
    }
    if (query->text == NULL) {
        return error_set(err, SG_E_INTERNAL, "search(): the query has no text");
    }
    job.arena = arena_new(0);
    rc = check_domains(&job, query->blocked, err);
    if (rc != 0) {
        arena_free(job.arena);
        return rc;
    }
    job.hits =
        (struct hits){.query = query, .arena = job.arena, .lines = {.max = LIMIT_SEARCH_BYTES}};
    rc = carry_out(&job, call, sink, err);
    buf_clear(&job.hits.lines);
    arena_free(job.arena);
    return rc;
}
