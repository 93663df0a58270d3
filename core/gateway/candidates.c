/* Where a request may go: one upstream, or for a named model (named_model.h) its entries in the order of their turn. One is
 * chosen; where it fails before anything was said or run, the request begins anew with another: hooks, tools and translation are
 * the new upstream's. */
#include "gateway/upstream.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/log.h"
#include "gateway/metrics.h"
#include "gateway/named_model.h"
#include "gateway/upstream_state.h"

#include <string.h>

/* ---- which there are ---- */

static void candidate_add(struct request *r, const struct upstream *upstream,
                          const struct surface *spoken, const char *model)
{
    r->candidates[r->candidates_count++] =
        (struct candidate){.upstream = upstream, .spoken = spoken, .model = model};
}

void candidates_one(struct request *r, const struct upstream *upstream,
                    const struct surface *spoken)
{
    r->candidates = arena_get(r->arena, sizeof *r->candidates);
    candidate_add(r, upstream, spoken, NULL);
}

/* What keeps requests together: the session, else what its client says of prompt caches. Prompts that were read before cost less
 * there, and reasoning that a server has encrypted is of use to it alone. */
static struct str thread_of(struct request *r)
{
    if (r->session_id.len > 0) {
        return r->session_id;
    }
    const struct json_member *key =
        r->is_json ? json_find_type(r->body.members, r->body.count, "prompt_cache_key", JSON_STRING)
                   : NULL;
    return key != NULL ? json_text_of(key->value, r->arena) : (struct str){0};
}

static unsigned ticket_of(struct request *r, const struct named_model *model)
{
    struct str thread = model->is_sticky ? thread_of(r) : (struct str){0};
    if (thread.len == 0) {
        /* The one thing in settings that changes: who draws when is nobody's promise. */
        return atomic_fetch_add_explicit(&((struct named_model *)model)->ticket, 1,
                                         memory_order_relaxed);
    }
    const struct str parts[] = {r->identity, str_of(model->name), thread};
    uint8_t hash[SHA256_BYTES];
    unsigned ticket;
    sha256_parts(parts, COUNT_OF(parts), hash);
    memcpy(&ticket, hash, sizeof ticket);
    return ticket;
}

/* An answer that an upstream keeps can be continued there alone. */
static struct str home_of(struct request *r, const struct named_model *model)
{
    const struct json_member *previous =
        r->is_json
            ? json_find_type(r->body.members, r->body.count, "previous_response_id", JSON_STRING)
            : NULL;
    struct str name = previous != NULL
                          ? relayed_id_origin(r, json_text_of(previous->value, r->arena))
                          : (struct str){0};
    for (size_t i = 0; i < model->count && name.len > 0; i++) {
        if (str_is(name, model->entries[i].upstream->name)) {
            return name;
        }
    }
    return (struct str){0};
}

void candidates_of_model(struct request *r, const struct named_model *model)
{
    uint8_t order[NAMED_MODEL_ENTRIES_MAX];
    struct str home = home_of(r, model);
    named_model_order(model, ticket_of(r, model), order);
    r->candidates = arena_get(r->arena, model->count * sizeof *r->candidates);
    for (size_t i = 0; i < model->count; i++) {
        const struct model_entry *entry = &model->entries[order[i]];
        const struct surface *spoken = NULL;
        bool is_served = entry->upstream->instance == NULL || r->route.surface_name != NULL;
        is_served = is_served && (home.len == 0 || str_is(home, entry->upstream->name));
        if (is_served && upstream_can_be_asked(r, entry->upstream, &spoken)) {
            candidate_add(r, entry->upstream, spoken, entry->model);
        }
    }
}

/* ---- which is next ---- */

static bool is_healthy(const struct upstream *upstream)
{
    return upstream->circuit.failures == 0 || /* also where it was open before it was read again */
           circuit_allows(&upstream->state->circuit, clock_ms());
}

/* The first that was not tried and whose circuit lets a request through; NULL: none. */
static struct candidate *candidate_healthy(struct request *r)
{
    for (size_t i = 0; i < r->candidates_count; i++) {
        struct candidate *one = &r->candidates[i];
        if (!one->is_tried && is_healthy(one->upstream)) {
            return one;
        }
    }
    return NULL;
}

static void candidate_take(struct request *r, struct candidate *one)
{
    one->is_tried = true;
    r->upstream = one->upstream;
    r->spoken = one->spoken;
    r->asked_model = one->model;
    client_is_at(r, one->upstream);
}

void candidate_first(struct request *r)
{
    CHECK(r->candidates_count > 0);
    /* A request that has no other place to go is not refused for what became of others. */
    struct candidate *one = r->candidates_count > 1 ? candidate_healthy(r) : NULL;
    candidate_take(r, one != NULL ? one : &r->candidates[0]);
    r->beginning = (struct request_beginning){r->body, r->model, r->session_id};
}

/* ---- when one has failed ---- */

static bool failure_is_the_upstreams(const struct upstream_call *call, const struct sg_error *err)
{
    const struct request *r = call->request;
    if (err->code == SG_E_CANCELLED || clock_ms() >= r->deadline) {
        return false;
    }
    return err->code == SG_E_UNAVAILABLE || err->code == SG_E_TIMEOUT ||
           status_is_the_upstreams(r, call->status) || failure_may_pass(call, err);
}

bool fallback_begin(const struct upstream_call *call, const struct sg_error *err)
{
    struct request *r = call->request;
    bool is_possible = r->candidates_count > 1 && r->turns <= 1 && !request_has_run(r) &&
                       !r->is_streaming && http_answer_status(r->exchange) == 0;
    if (is_possible && failure_is_the_upstreams(call, err)) {
        r->next_candidate = candidate_healthy(r);
    }
    return r->next_candidate != NULL;
}

static void fallback_log(const struct request *r, const struct sg_error *err)
{
    struct log_line line;
    log_begin(&line, SG_WARN, "upstream_fallback");
    log_text(&line, "request", r->id);
    log_str(&line, "model", r->model);
    log_text(&line, "upstream", r->upstream->name);
    log_text(&line, "to", r->next_candidate->upstream->name);
    log_text(&line, "to_model", r->next_candidate->model);
    log_text(&line, "error", error_code_name(err->code));
    log_text(&line, "message", err->message);
    log_text(&line, "cause", r->cause[0] != '\0' ? r->cause : NULL);
    log_end(&line);
}

/* As it was behind candidate_first(). What was taken for the try goes back; a container that waits can be taken again. */
static void begin_anew(struct request *r)
{
    const struct request_beginning *beginning = &r->beginning;
    hooks_done(r);
    if (r->route.surface != NULL) {
        r->route.surface->free(TAKE(r->talk));
    }
    lease_release(TAKE(r->lease));
    memory_end(r);
    r->model = beginning->model;
    r->session_id = beginning->session_id;
    body_restore(r, &beginning->body);
    r->offers_count = 0;
    r->names_tools = r->has_resumed = r->has_lost_container = r->container_is_new = false;
    r->container_id[0] = r->cause[0] = '\0';
    r->turns = 0;
    r->retry_after = (struct str){0};
    r->upstream_limits_count = 0;
}

bool candidate_next(struct request *r, struct sg_error *err)
{
    struct candidate *next = TAKE(r->next_candidate);
    if (next == NULL) {
        return false;
    }
    r->next_candidate = next;
    fallback_log(r, err);
    metrics_upstream_fallback(r->gateway->metrics, r->upstream);
    r->next_candidate = NULL;
    begin_anew(r);
    candidate_take(r, next);
    *err = (struct sg_error){0};
    return true;
}
