/* Our tools in a request: which are offered to it, and running one call of the model. */
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
            if (!taken && interceptor_in_scope(interceptor, r)) {
                offer_tool(r, interceptor, tool);
            }
        }
    }
}

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

static void tool_log(const struct request *r, const struct surface_call *call,
                     const struct collected *c, int64_t began_ms)
{
    struct log_line line;
    log_begin(&line, SG_INFO, "tool");
    log_text(&line, "request", r->id);
    log_text(&line, "interceptor", r->active_tool->interceptor->name);
    log_str(&line, "tool", call->name);
    log_text(&line, "status", c->failed ? "failed" : "completed");
    log_int(&line, "ms", clock_ms() - began_ms);
    log_end(&line);
}

/* True where it counts as over a limit. */
static bool tool_end(struct request *r, const struct surface_call *call, size_t index,
                     struct collected *c, struct buf *out)
{
    bool is_over = repeat_is_over(r, call, buf_str(&c->model));
    struct str said = {arena_copy(r->arena, buf_str(&c->model)), c->model.len};
    struct surface_result result = {
        .model_text = is_over ? str_of(limit_text) : said,
        .container_id = r->lease != NULL
                            ? str_of(arena_printf(r->arena, "%s", lease_container_id(r->lease)))
                            : (struct str){0}};
    collected_result(c, &result);
    r->route.surface->call_end(r->talk, index, &result, out);
    metrics_tool_call(r->gateway->metrics, r->active_tool->interceptor,
                      c->failed ? METRIC_CALL_FAILED : METRIC_CALL_COMPLETED);
    return is_over;
}

int tool_run(struct request *r, const struct surface_call *wanted, size_t index, struct buf *out,
             bool *ret_over, struct sg_error *err)
{
    int64_t began_ms = clock_ms();
    CHECK(wanted->offer < r->offers_count);
    const struct offered_tool *tool = &r->tools[wanted->offer];
    struct collected c = {
        .arena = r->arena, .account = &r->account, .model = {.max = MODEL_TEXT_BYTES_MAX}};
    struct sg_call *call = call_new(tool->interceptor->instance, "call", r, r->id, r->deadline);
    call_set_identity(call, r->identity);
    call_set_tool_options(call, wanted->options);
    struct call_arguments *arguments = arena_alloc(call_arena(call), sizeof *arguments);
    char *json = arena_copy(call_arena(call), wanted->arguments);
    r->active_tool = tool;
    r->route.surface->call_begin(r->talk, index, (struct str){0}, out);
    int rc = 0;
    if (arguments == NULL || json == NULL) {
        (void)buf_puts(&c.model, "[invalid call] The arguments are too long.");
        collected_fail(&c, SURFACE_REASON_INVALID);
    } else {
        *arguments = (struct call_arguments){tool->tool, json, wanted->arguments.len};
        if (tool->interceptor->sandbox == NULL && tool->interceptor->search == NULL) {
            r->runs++; /* what it does is its own affair; the others say when they begin */
        }
        call_start(call, invoke_tool, arguments);
        rc = tool_follow(r, call, &c, err);
        if (rc == 0) {
            struct sg_error failure = {0};
            if (tool_result(call, &c, &failure) != 0) {
                tool_failed(r, tool, &c, &failure);
            }
        }
        call_cancel(call);
        call_wait_end(call); /* it may still look at this request */
    }
    if (rc == 0) {
        tool_log(r, wanted, &c, began_ms);
        *ret_over = tool_end(r, wanted, index, &c, out);
    }
    call_unref(call);
    buf_clear(&c.model);
    r->active_tool = NULL;
    return rc;
}

void tool_refuse(struct request *r, size_t index, struct buf *out)
{
    struct surface_result result = {.status = SURFACE_CALL_NOT_RUN,
                                    .model_text = str_of(limit_text)};
    r->route.surface->call_end(r->talk, index, &result, out);
}
