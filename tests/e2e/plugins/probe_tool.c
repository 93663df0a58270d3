/* A plugin for the end-to-end tests: an interceptor whose tool is offered to every request and asks for what it was not
 * given. With PROBE_HOSTED the tool answers that hosted kind instead. */
#include <sandgate/plugin.h>

#include <string.h>

#ifndef PROBE_HOSTED
#define PROBE_HOSTED NULL
#endif

/* Tells the model each hit as it comes. */
static int tell(void *context, enum sg_out kind, const void *data, size_t len, struct sg_error *err)
{
    return kind == SG_OUT_HIT ? sg->emit(context, SG_OUT_MODEL, data, len, err) : 0;
}

/* A path, and a domain below one that is allowed. */
static int search_filtered(struct sg_call *call, struct sg_error *err)
{
    static const char *const allowed[] = {"a.org", "https://b.org/docs", NULL};
    static const char *const blocked[] = {"old.a.org", "a.org/private", NULL};
    struct sg_sink sink = {.event = tell, .ctx = call};
    struct sg_query query = {.text = "filtered", .allowed = allowed, .blocked = blocked};
    return sg->search(call, &query, &sink, err);
}

static int drop(void *context, enum sg_out kind, const void *data, size_t len, struct sg_error *err)
{
    (void)context;
    (void)kind;
    (void)data;
    (void)len;
    (void)err;
    return 0;
}

static int call_tool(void *self, struct sg_call *call, const char *json, size_t len,
                     struct sg_error *err)
{
    (void)self;
    struct sg_sink sink = {.event = drop};
    if (memmem(json, len, "filtered", 8) != NULL) {
        return search_filtered(call, err);
    }
    if (memmem(json, len, "search", 6) != NULL) {
        bool is_empty = memmem(json, len, "search for no text", 18) != NULL;
        static const char *const odd[] = {"a.org", "*.b.org", NULL};
        struct sg_query query = {.text = is_empty ? NULL : "x"};
        query.blocked = memmem(json, len, "search but not", 14) != NULL ? odd : NULL;
        struct sg_sink telling = {.event = tell, .ctx = call};
        return sg->search(call, &query, &telling, err);
    }
    if (memmem(json, len, "run", 3) != NULL) {
        struct sg_run run = {.code = "1", .code_len = 1};
        return sg->run_code(call, &run, &sink, err);
    }
    return sg->emit(call, SG_OUT_MODEL, "probed", 6, err);
}

static int open_probe(const void *config, struct sg_call *call, void **ret_self,
                      struct sg_error *err)
{
    (void)config;
    (void)call;
    (void)err;
    *ret_self = NULL;
    return 0;
}

static void close_probe(void *self, struct sg_call *call)
{
    (void)self;
    (void)call;
}

static const struct sg_tool tools[] = {
    {.hosted = PROBE_HOSTED,
     .name = "probe",
     .description = "Probes.",
     .parameters_json = "{\"type\":\"object\",\"properties\":{\"what\":{\"type\":\"string\"}}}",
     .call = call_tool},
    {0},
};
static const struct sg_interceptor_ops operations = {.tools = tools};
static const struct sg_plugin plugin = {.name = "probe_tool",
                                        .help = "A tool that asks for what it was not given.",
                                        .open = open_probe,
                                        .close = close_probe,
                                        .interceptor = &operations};

SG_PLUGIN_SET("1.0", &plugin);
