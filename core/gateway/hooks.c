/* Hook interceptors: the chain, in YAML order, of those that look at a request before anything is sent. Each may put
 * another text in its place or refuse it. */
#include "gateway/request.h"

#include "base/check.h"
#include "base/limits.h"

#include <stdio.h>
#include <string.h>

struct hook_state {
    struct hook_state *next;
    const struct interceptor *interceptor;
    void *state;
};

struct hook_arguments {
    const char *json;
    size_t len;
    void *state; /* what request() left */
};

static int invoke_request(const struct instance *instance, struct sg_call *call, void *arguments,
                          struct sg_error *err)
{
    struct hook_arguments *a = arguments;
    return instance->plugin->interceptor->request(instance->self, call, a->json, a->len, &a->state,
                                                  err);
}

/* The request has gone on without it, and so nobody else will say that it is over. */
static void request_late(const struct instance *instance, void *arguments, int code)
{
    const struct hook_arguments *a = arguments;
    if (code == 0 && instance->plugin->interceptor->done != NULL) {
        instance->plugin->interceptor->done(instance->self, a->state);
    }
}

static bool wants_request(const struct interceptor *interceptor, const struct request *r)
{
    return interceptor->instance->plugin->interceptor->request != NULL &&
           (interceptor->upstreams[0] == NULL ||
            list_has(interceptor->upstreams, str_of(r->upstream->name)));
}

/* Takes the call's output: the new text, where there is one. */
static int follow(struct sg_call *call, struct buf *text, struct sg_error *err)
{
    struct call_output output;
    int rc = 0;
    while (!text->overflow && (rc = call_next(call, &output)) == 1) {
        if (output.kind == SG_OUT_DATA) {
            (void)buf_append_str(text, output.data); /* asked for above */
        }
    }
    if (rc != 0) {
        call_cancel(call);
    }
    call_wait_end(call); /* whether done() is due is known only then */
    if (rc < 0) {
        return error_set(err, -rc, "The request was given up.");
    }
    return text->overflow
               ? error_set(err, SG_E_LIMIT, "A plugin of this gateway made the request too large.")
               : 0;
}

static int hook_run(struct request *r, const struct interceptor *interceptor, struct sg_error *err)
{
    BUF_CLEANUP struct buf text = {.max = LIMIT_BODY_BYTES};
    struct sg_call *call = call_new(interceptor->instance, "request", NULL, r->id, r->deadline);
    call_set_identity(call, r->identity);
    call_set_late(call, request_late);
    int rc = call_hold(call, r->body.raw.len, err);
    if (rc != 0) {
        call_unref(call);
        return rc;
    }
    struct hook_arguments *arguments = arena_alloc(call_arena(call), sizeof *arguments);
    char *json = arena_copy(call_arena(call), r->body.raw);
    if (arguments == NULL || json == NULL) {
        call_unref(call);
        return error_set(err, SG_E_LIMIT, "The request is too large for this gateway's plugins.");
    }
    *arguments = (struct hook_arguments){.json = json, .len = r->body.raw.len};
    call_start(call, invoke_request, arguments);
    rc = follow(call, &text, err);
    if (text.overflow) {
        (void)snprintf(r->cause, sizeof r->cause, "the hook '%s' emitted more than %d bytes",
                       interceptor->name, (int)LIMIT_BODY_BYTES);
    }
    struct sg_error failure = {0};
    if (call_result(call, &failure) == 0) {
        struct hook_state *hook = arena_get(r->arena, sizeof *hook);
        *hook = (struct hook_state){r->hooks, interceptor, arguments->state};
        r->hooks = hook;
    } else if (rc == 0) {
        *err = failure;
        rc = failure.code;
    }
    call_unref(call);
    return rc == 0 && text.len > 0 ? body_replace(r, &text, err) : rc;
}

int hooks_run(struct request *r, struct sg_error *err)
{
    const struct config *config = r->gateway->config;
    int rc = 0;
    for (size_t i = 0; r->is_json && i < config->interceptors_count && rc == 0; i++) {
        if (wants_request(&config->interceptors[i], r)) {
            rc = hook_run(r, &config->interceptors[i], err);
        }
    }
    return rc;
}

void hooks_done(struct request *r)
{
    for (struct hook_state *hook = r->hooks; hook != NULL; hook = hook->next) {
        const struct instance *instance = hook->interceptor->instance;
        if (instance->plugin->interceptor->done != NULL) {
            instance->plugin->interceptor->done(instance->self, hook->state);
        }
    }
    r->hooks = NULL;
}
