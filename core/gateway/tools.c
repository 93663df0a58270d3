/* Our tools in a request: which are offered to it, and running the calls of the model. */
#include "gateway/request.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "gateway/collected.h"
#include "gateway/metrics.h"

#include <stdio.h>
#include <string.h>

static const char limit_text[] = "[limit reached: answer with what you have]";

enum {
    MODEL_TEXT_BYTES_MAX = 1024 * 1024,
    EMITTED_BYTES_MAX = 2 * LIMIT_TOOL_OUTPUT_BYTES /* what a run may give, and more about it */
};

static bool interceptor_in_scope(const struct interceptor *interceptor, const struct request *r)
{
    return interceptor->upstreams[0] == NULL ||
           list_has(interceptor->upstreams, str_of(r->upstream->name));
}

static bool offered_always(const struct interceptor *interceptor, struct str model)
{
    if (interceptor->offer == OFFER_MODELS) {
        for (const char *const *pattern = interceptor->offer_models; *pattern != NULL; pattern++) {
            if (model_matches(*pattern, model)) {
                return true;
            }
        }
    }
    return interceptor->offer == OFFER_ALWAYS;
}

/* `tool_name` is for the tool by which people know the interceptor: the first that answers a hosted kind, or the first of
 * all where none does. */
static const char *tool_name_of(const struct interceptor *interceptor, const struct sg_tool *tool)
{
    const struct sg_tool *tools = interceptor->instance->plugin->interceptor->tools, *first = tools;
    while (first->name != NULL && first->hosted == NULL) {
        first++;
    }
    first = first->name != NULL ? first : tools;
    return interceptor->tool_name != NULL && tool == first ? interceptor->tool_name : tool->name;
}

static void offer_tool(struct request *r, const struct interceptor *interceptor,
                       const struct sg_tool *tool)
{
    const char *name = tool_name_of(interceptor, tool);
    r->tools[r->offers_count] = (struct offered_tool){interceptor, tool};
    r->offers[r->offers_count++] =
        (struct surface_offer){.hosted = str_of(tool->hosted),
                               .name = str_of(name),
                               .description = str_of(tool->description),
                               .parameters = str_of(tool->parameters_json),
                               .always = offered_always(interceptor, r->model),
                               .show_runs = interceptor->show_runs};
}

/* The chain in YAML order; of two interceptors for one hosted kind the first answers. */
void tools_offer(struct request *r)
{
    const struct config *config = r->gateway->config;
    size_t count = 0;
    for (size_t i = 0; i < config->interceptors_count; i++) {
        const struct sg_tool *tool = config->interceptors[i].instance->plugin->interceptor->tools;
        for (; tool != NULL && tool->name != NULL; tool++) {
            count++;
        }
    }
    r->offers = arena_get(r->arena, (count + 1) * sizeof *r->offers);
    r->tools = arena_get(r->arena, (count + 1) * sizeof *r->tools);
    for (size_t i = 0; i < config->interceptors_count; i++) {
        const struct interceptor *interceptor = &config->interceptors[i];
        const struct sg_tool *tool = interceptor->instance->plugin->interceptor->tools;
        for (; tool != NULL && tool->name != NULL; tool++) {
            bool taken = false;
            for (size_t k = 0; k < r->offers_count; k++) {
                taken =
                    taken || (tool->hosted != NULL && str_is(r->offers[k].hosted, tool->hosted));
            }
            bool allowed =
                key_allows_kind(r->key, str_of(tool->hosted != NULL ? tool->hosted : tool->name));
            if (!taken && allowed && interceptor_in_scope(interceptor, r)) {
                offer_tool(r, interceptor, tool);
            }
        }
    }
}

struct tool_call { /* one that was begun; in the request's arena */
    struct request *request;
    const struct surface_call *wanted;
    const struct offered_tool *tool;
    struct sg_call *call;
    bool has_started; /* else its arguments are too long */
    int64_t began_ms;
    struct collected collected;
};

struct call_arguments {
    const struct sg_tool *tool;
    const char *json;
    size_t len;
};

static int invoke_tool(const struct instance *instance, struct sg_call *call, void *arguments,
                       struct sg_error *err)
{
    const struct call_arguments *a = arguments;
    return a->tool->call(instance->self, call, a->json, a->len, err);
}

struct follow { /* the next output of a call */
    struct sg_call *call;
    struct call_output output;
    bool is_over;
};

static int output_wait(void *context, struct sg_error *err)
{
    struct follow *follow = context;
    int rc = call_next(follow->call, &follow->output);
    follow->is_over = rc == 0;
    return rc >= 0 ? 0
                   : error_set(err, -rc,
                               rc == -SG_E_TIMEOUT ? "The request took too long."
                                                   : "The client has gone.");
}

/* Takes the call's output until its end, or until it is too much. */
static int tool_follow(struct request *r, struct sg_call *call, struct collected *c,
                       struct sg_error *err)
{
    struct follow follow = {.call = call};
    for (;;) {
        int rc = alive_wait(r, output_wait, &follow, err);
        if (rc != 0 || follow.is_over) {
            return rc;
        }
        collected_take(c, &follow.output);
        if (c->emitted > EMITTED_BYTES_MAX) { /* it would go on for as long as it may */
            return 0;
        }
    }
}

/* How the tool itself ended. */
static int tool_result(struct sg_call *call, const struct collected *c, struct sg_error *err)
{
    return c->emitted <= EMITTED_BYTES_MAX
               ? call_result(call, err)
               : error_set(err, SG_E_LIMIT, "%s: 'call' emitted more than %d bytes",
                           call_instance(call)->name, EMITTED_BYTES_MAX);
}

/* A failure of the tool itself is a result for the model; its cause is for the operator. */
static void tool_failed(struct request *r, const struct offered_tool *tool, struct collected *c,
                        const struct sg_error *failure)
{
    struct log_line line;
    log_begin(&line, SG_WARN, "tool_failed");
    log_text(&line, "request", r->id);
    log_text(&line, "interceptor", tool->interceptor->name);
    log_text(&line, "error", error_code_name(failure->code));
    log_text(&line, "message", failure->message);
    log_end(&line);
    collected_fail(c, SURFACE_REASON_UNAVAILABLE);
    (void)buf_printf(&c->model, "%s[tool unavailable] The tool failed.",
                     c->model.len > 0 ? "\n" : "");
}

static void tool_log(const struct tool_call *c)
{
    struct log_line line;
    log_begin(&line, SG_INFO, "tool");
    log_text(&line, "request", c->request->id);
    log_text(&line, "interceptor", c->tool->interceptor->name);
    log_str(&line, "tool", c->wanted->name);
    log_text(&line, "status", c->collected.failed ? "failed" : "completed");
    log_int(&line, "ms", clock_ms() - c->began_ms);
    log_end(&line);
}

/* True where it counts as over a limit. */
static bool tool_end(struct tool_call *c, size_t index, struct buf *out)
{
    struct request *r = c->request;
    bool is_over = repeat_is_over(r, c->wanted, buf_str(&c->collected.model));
    struct str said = {arena_copy(r->arena, buf_str(&c->collected.model)), c->collected.model.len};
    struct surface_result result = {
        .model_text = is_over ? str_of(limit_text) : said,
        .container_id = r->lease != NULL
                            ? str_of(arena_printf(r->arena, "%s", lease_container_id(r->lease)))
                            : (struct str){0}};
    collected_result(&c->collected, &result);
    if (result.reason == SURFACE_REASON_LIMIT && call_uses_are_spent(c->call)) {
        result.reason = SURFACE_REASON_USES;
    }
    r->route.surface->call_end(r->talk, index, &result, out);
    accounting_audit(r, AUDIT_RESULT, c->wanted->name, result.model_text);
    metrics_tool_call(r->gateway->metrics, c->tool->interceptor,
                      c->collected.failed ? METRIC_CALL_FAILED : METRIC_CALL_COMPLETED);
    return is_over;
}

/* What needs the request's container is kept in order: there is one of it. */
bool tool_may_be_beside(const struct request *r, const struct surface_call *wanted)
{
    const struct offered_tool *tool = &r->tools[wanted->offer];
    return (tool->tool->flags & SG_TOOL_PARALLEL) != 0 && tool->interceptor->sandbox == NULL;
}

struct tool_call *tool_start(struct request *r, const struct surface_call *wanted)
{
    CHECK(wanted->offer < r->offers_count);
    const struct offered_tool *tool = &r->tools[wanted->offer];
    struct tool_call *c = arena_get(r->arena, sizeof *c);
    *c = (struct tool_call){.request = r,
                            .wanted = wanted,
                            .tool = tool,
                            .began_ms = clock_ms(),
                            .collected = {.arena = r->arena,
                                          .account = &r->account,
                                          .model = {.max = MODEL_TEXT_BYTES_MAX}}};
    c->call = call_new(tool->interceptor->instance, "call", r, r->id, r->deadline);
    call_set_identity(c->call, r->identity);
    call_set_tool_options(c->call, wanted->options);
    CHECK(r->active_tool == NULL || r->active_tool == tool);
    r->active_tool = tool;
    r->active_calls++;
    struct call_arguments *arguments = arena_alloc(call_arena(c->call), sizeof *arguments);
    char *json = arena_copy(call_arena(c->call), wanted->arguments);
    if (arguments == NULL || json == NULL) {
        return c;
    }
    *arguments = (struct call_arguments){tool->tool, json, wanted->arguments.len};
    accounting_audit(r, AUDIT_CALL, wanted->name, wanted->arguments);
    if (tool->interceptor->sandbox == NULL && tool->interceptor->search == NULL) {
        r->runs++; /* what it does is its own affair; the others say when they begin */
    }
    c->has_started = true;
    call_start(c->call, invoke_tool, arguments);
    return c;
}

/* To its end. */
static int tool_await(struct tool_call *c, struct sg_error *err)
{
    if (!c->has_started) {
        (void)buf_puts(&c->collected.model, "[invalid call] The arguments are too long.");
        collected_fail(&c->collected, SURFACE_REASON_INVALID);
        return 0;
    }
    int rc = tool_follow(c->request, c->call, &c->collected, err);
    struct sg_error failure = {0};
    if (rc == 0 && tool_result(c->call, &c->collected, &failure) != 0) {
        tool_failed(c->request, c->tool, &c->collected, &failure);
    }
    call_cancel(c->call);
    call_wait_end(c->call); /* it may still look at this request */
    return rc;
}

void tool_cancel(struct tool_call *c)
{
    if (c->has_started) {
        call_cancel(c->call);
    }
}

void tool_drop(struct tool_call *c)
{
    struct request *r = c->request;
    tool_cancel(c);
    if (c->has_started) {
        call_wait_end(c->call);
    }
    call_unref(c->call);
    buf_clear(&c->collected.model);
    CHECK(r->active_calls > 0);
    r->active_calls--;
    r->active_tool = r->active_calls > 0 ? r->active_tool : NULL;
}

int tool_finish(struct tool_call *c, size_t index, struct buf *out, bool *ret_over,
                struct sg_error *err)
{
    int rc = tool_await(c, err);
    if (rc == 0) {
        tool_log(c);
        *ret_over = tool_end(c, index, out);
    }
    tool_drop(c);
    return rc;
}

void tool_refuse(struct request *r, size_t index, struct buf *out)
{
    struct surface_result result = {.status = SURFACE_CALL_NOT_RUN,
                                    .model_text = str_of(limit_text)};
    r->route.surface->call_end(r->talk, index, &result, out);
}
