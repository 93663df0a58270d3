/* A plugin as it was written for minor 1.1 of the contract, and is built with the header of that minor, which stands beside
 * it and never changes: a sandbox that fetches what its code names, and a hook that asks who asks. It must go on working
 * (tests/e2e/test_compatibility.py). */
#include <sandgate/plugin.h>

#include <stdio.h>
#include <string.h>

struct config {
    const char *only;
};

static const struct sg_option options[] = {
    {.name = "only",
     .type = SG_STRING,
     SG_FIELD(struct config, only),
     .help = "The identity that may ask."},
    {0},
};

static int first_open(const void *config, struct sg_call *call, void **ret_self,
                      struct sg_error *err)
{
    (void)err;
    memcpy(ret_self, &config, sizeof config); /* read-only all the same */
    sg->log(call, SG_INFO, "opened");
    return 0;
}

static void first_close(void *self, struct sg_call *call)
{
    (void)self;
    sg->log(call, SG_INFO, "closed");
}

/* ---- the sandbox ---- */

static int first_create(void *self, struct sg_call *call, const struct sg_sandbox_spec *spec,
                        struct sg_error *err)
{
    (void)self;
    return sg->emit(call, SG_OUT_HANDLE, spec->label, strlen(spec->label), err);
}

struct seen { /* behind the reply that the core fills at this minor's size */
    struct sg_http_reply reply;
    unsigned guard;
};

/* The code is a URL; what stands there is printed, also how long it is. */
static int first_run(void *self, struct sg_call *call, const char *handle, const struct sg_run *run,
                     struct sg_error *err)
{
    (void)self, (void)handle;
    char *url = sg->alloc(call, run->code_len + 1), text[256];
    if (url == NULL) {
        return sg->fail(err, SG_E_LIMIT, "no memory");
    }
    memcpy(url, run->code, run->code_len);
    struct sg_http_request request = {.url = url};
    struct seen seen = {.guard = 0xC0FFEE};
    int code = sg->http(call, &request, &seen.reply, NULL, err);
    if (seen.guard != 0xC0FFEE) {
        return sg->fail(err, SG_E_INTERNAL, "more was written than there is room for");
    }
    if (code != 0) {
        return sg->fail(err, code, "failed: %s", sg->message(err));
    }
    snprintf(text, sizeof text, "%d %.*s", seen.reply.status, (int)seen.reply.body_len,
             seen.reply.body);
    return sg->emit(call, SG_OUT_LOG_OUT, text, strlen(text), err);
}

static int first_destroy(void *self, struct sg_call *call, const char *handle, struct sg_error *err)
{
    (void)self, (void)call, (void)handle, (void)err;
    return 0;
}

static const struct sg_sandbox_ops sandbox = {first_create, first_run, first_destroy, .put = NULL};
static const struct sg_plugin first_sandbox = {.name = "first",
                                               .help = "A sandbox.",
                                               .options = options,
                                               .config_size = sizeof(struct config),
                                               .open = first_open,
                                               .close = first_close,
                                               .sandbox = &sandbox};

/* ---- the hook ---- */

static int first_request(void *self, struct sg_call *call, const char *json, size_t len,
                         void **ret_state, struct sg_error *err)
{
    (void)json, (void)len, (void)ret_state;
    const struct config *config = self;
    const char *who = sg->identity(call);
    return config->only == NULL || strcmp(who, config->only) == 0
               ? 0
               : sg->fail(err, SG_E_DENIED, "'%s' may not ask, only '%s' may", who, config->only);
}

static const struct sg_interceptor_ops hook = {.request = first_request};
static const struct sg_plugin first_hook = {.name = "first",
                                            .help = "A hook.",
                                            .options = options,
                                            .config_size = sizeof(struct config),
                                            .open = first_open,
                                            .close = first_close,
                                            .interceptor = &hook};

SG_PLUGIN_SET("1.1", &first_sandbox, &first_hook);
