/* A plugin as it was written for the first minor of the contract, and is built with the header of that minor, which stands
 * beside it and never changes: a sandbox that keeps what its code says, and an interceptor with a hook and a tool that use
 * it. It must go on working (tests/e2e/test_compatibility.py). */
#include <sandgate/plugin.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rule {
    const char *word, *reason;
};

struct config {
    const char *greeting, *mood;
    int64_t count;
    bool loud;
    struct sg_map names;
    struct sg_list rules;
};

static const struct sg_option rule_options[] = {
    {.name = "word",
     .type = SG_STRING,
     .flags = SG_REQUIRED,
     SG_FIELD(struct rule, word),
     .help = "A word."},
    {.name = "reason",
     .type = SG_STRING,
     SG_FIELD(struct rule, reason),
     .def = "no",
     .help = "Why not."},
    {0},
};

static const struct sg_option options[] = {
    {.name = "greeting",
     .type = SG_STRING,
     SG_FIELD(struct config, greeting),
     .def = "hello",
     .help = "A greeting."},
    {.name = "mood",
     .type = SG_CHOICE,
     SG_FIELD(struct config, mood),
     .def = "good",
     .choices = "good|bad",
     .help = "A mood."},
    {.name = "count",
     .type = SG_INT,
     SG_FIELD(struct config, count),
     .def = "1",
     .min = "1",
     .max = "9",
     .help = "A count."},
    {.name = "loud", .type = SG_BOOL, SG_FIELD(struct config, loud), .help = "Loudness."},
    {.name = "names", .type = SG_MAP, SG_FIELD(struct config, names), .help = "Names."},
    {.name = "rules",
     .type = SG_LIST,
     SG_FIELD(struct config, rules),
     .fields = rule_options,
     .fields_size = sizeof(struct rule),
     .help = "Words that are refused."},
    {0},
};

struct first {
    const struct config *config;
    pthread_mutex_t lock;
    int made, live, hooks;
};

static int open_first(const void *config, struct sg_call *call, void **ret_self,
                      struct sg_error *err)
{
    struct first *first = calloc(1, sizeof *first);
    if (first == NULL) {
        return sg->fail(err, SG_E_INTERNAL, "out of memory");
    }
    first->config = config;
    pthread_mutex_init(&first->lock, NULL);
    sg->log(call, SG_INFO, "opened with %lld, minor %u", (long long)first->config->count,
            (unsigned)sg->abi_minor);
    *ret_self = first;
    return 0;
}

static void close_first(void *self, struct sg_call *call)
{
    struct first *first = self;
    sg->log(call, SG_INFO, "closed with live=%d hooks=%d", first->live, first->hooks);
    pthread_mutex_destroy(&first->lock);
    free(first);
}

static int add(struct first *first, int *figure, int count)
{
    pthread_mutex_lock(&first->lock);
    int now = *figure += count;
    pthread_mutex_unlock(&first->lock);
    return now;
}

/* ---- the sandbox ---- */

static int create(void *self, struct sg_call *call, const struct sg_sandbox_spec *spec,
                  struct sg_error *err)
{
    struct first *first = self;
    char handle[64];
    int len = snprintf(handle, sizeof handle, "box-%d", add(first, &first->made, 1));
    if (spec->label == NULL || spec->life_ms <= 0 || spec->idle_ms <= 0 ||
        spec->template_name != NULL) {
        return sg->fail(err, SG_E_INTERNAL, "the spec is not as it was");
    }
    add(first, &first->live, 1);
    return sg->emit(call, SG_OUT_HANDLE, handle, (size_t)len, err);
}

static int nothing(void *arg)
{
    *(int *)arg += 1;
    return 0;
}

static int run(void *self, struct sg_call *call, const char *handle, const struct sg_run *what,
               struct sg_error *err)
{
    struct first *first = self;
    int visits = 0;
    char *text = sg->alloc(call, what->code_len + 256);
    if (text == NULL || what->timeout_ms <= 0 || sg->time_left_ms(call) <= 0) {
        return sg->fail(err, SG_E_INTERNAL, "the run is not as it was");
    }
    int code = sg->sleep(call, 1, err);
    code = code == 0 ? sg->blocking(call, nothing, &visits, err) : code;
    if (code != 0) {
        return code;
    }
    int len = sprintf(text, "%s from %s: %.*s (%d)\n", first->config->greeting, handle,
                      (int)what->code_len, what->code, visits);
    return sg->emit(call, SG_OUT_LOG_OUT, text, (size_t)len, err);
}

static int destroy(void *self, struct sg_call *call, const char *handle, struct sg_error *err)
{
    struct first *first = self;
    (void)call, (void)handle, (void)err;
    add(first, &first->live, -1);
    return 0;
}

static int touch(void *self, struct sg_call *call, const char *handle, int64_t life_ms,
                 struct sg_error *err)
{
    (void)self, (void)call, (void)handle;
    return life_ms > 0 ? 0 : sg->fail(err, SG_E_INTERNAL, "the life is not as it was");
}

static int get(void *self, struct sg_call *call, const char *handle, const char *path,
               struct sg_error *err)
{
    (void)self, (void)handle;
    return sg->emit(call, SG_OUT_DATA, path, strlen(path), err);
}

/* ---- the interceptor ---- */

static int hook(void *self, struct sg_call *call, const char *json, size_t len, void **ret_state,
                struct sg_error *err)
{
    struct first *first = self;
    const struct rule *rules = first->config->rules.items;
    (void)call;
    for (size_t i = 0; i < first->config->rules.count; i++) {
        if (memmem(json, len, rules[i].word, strlen(rules[i].word)) != NULL) {
            return sg->fail(err, SG_E_DENIED, "'%s' is not for here: %s", rules[i].word,
                            rules[i].reason);
        }
    }
    add(first, &first->hooks, 1);
    *ret_state = first;
    return 0;
}

static void hook_done(void *self, void *state)
{
    struct first *first = self;
    add(first, &first->hooks, state == self ? -1 : 100);
}

struct heard {
    char text[256];
    size_t len;
};

static int hear(void *ctx, enum sg_out kind, const void *data, size_t len, struct sg_error *err)
{
    struct heard *heard = ctx;
    if (len > sizeof heard->text - heard->len) {
        return sg->fail(err, SG_E_LIMIT, "heard too much");
    }
    memcpy(heard->text + heard->len, data, kind == SG_OUT_LOG_OUT || kind == SG_OUT_DATA ? len : 0);
    heard->len += len;
    return 0;
}

static int tool(void *self, struct sg_call *call, const char *json, size_t len,
                struct sg_error *err)
{
    struct heard heard = {0};
    struct sg_sink sink = {hear, &heard};
    struct sg_run what = {.language = "python", .code = json, .code_len = len};
    (void)self;
    int code = sg->run_code(call, &what, &sink, err);
    if (code != 0) {
        return sg->fail(err, (enum sg_code)code, "no run: %s", sg->message(err));
    }
    code = sg->file_get(call, "/a/file", &sink, err);
    return code == 0 ? sg->emit(call, SG_OUT_MODEL, heard.text, heard.len, err) : code;
}

static const struct sg_tool tools[] = {
    {.name = "first",
     .description = "Runs what it is given.",
     .parameters_json = "{\"type\":\"object\",\"properties\":{\"say\":{\"type\":\"string\"}}}",
     .call = tool},
    {0},
};

/* ---- the set ---- */

static const struct sg_sandbox_ops sandbox_operations = {.create = create,
                                                         .run = run,
                                                         .destroy = destroy,
                                                         .touch = touch,
                                                         .get = get,
                                                         .fds_per_container = 2};
static const struct sg_interceptor_ops interceptor_operations = {
    .tools = tools, .request = hook, .done = hook_done};

static const struct sg_plugin sandbox = {.name = "first",
                                         .help = "Says what it was given.",
                                         .options = options,
                                         .config_size = sizeof(struct config),
                                         .open = open_first,
                                         .close = close_first,
                                         .sandbox = &sandbox_operations};
static const struct sg_plugin interceptor = {.name = "first",
                                             .help = "Refuses words, runs the rest.",
                                             .options = options,
                                             .config_size = sizeof(struct config),
                                             .open = open_first,
                                             .close = close_first,
                                             .interceptor = &interceptor_operations};

SG_PLUGIN_SET("1.0.0", &sandbox, &interceptor);
