/* A set of four plugins that is right in every place, with an option of every type. */
#include <sandgate/plugin.h>

#include <string.h>

struct rule {
    const char *when;
    int64_t delay_ms;
};

struct config {
    const char *text, *key, *mode;
    bool enabled;
    int64_t count, timeout_ms;
    uint64_t memory;
    const char *const *names;
    struct sg_map headers;
    struct sg_list rules;
};

static const struct sg_option rule_fields[] = {
    {"when", SG_STRING, SG_REQUIRED, SG_FIELD(struct rule, when), .help = "What it answers to."},
    {"delay", SG_DURATION, 0, SG_FIELD(struct rule, delay_ms), .def = "10ms",
     .help = "How long it waits."},
    {0},
};

static const struct sg_option options[] = {
    {"text", SG_STRING, SG_REQUIRED, SG_FIELD(struct config, text), .help = "A text."},
    {"api_key", SG_STRING, SG_SECRET, SG_FIELD(struct config, key), .def = "none",
     .help = "A key."},
    {"mode", SG_CHOICE, 0, SG_FIELD(struct config, mode), .def = "fast", .choices = "fast|slow",
     .help = "A choice."},
    {"enabled", SG_BOOL, 0, SG_FIELD(struct config, enabled), .def = "true", .help = "A switch."},
    {"count", SG_INT, 0, SG_FIELD(struct config, count), .def = "3", .min = "1", .max = "10",
     .help = "A number."},
    {"timeout", SG_DURATION, 0, SG_FIELD(struct config, timeout_ms), .def = "30s", .min = "1s",
     .help = "A duration."},
    {"wait", SG_DURATION, SG_DEPRECATED, SG_FIELD(struct config, timeout_ms),
     .help = "Use timeout."},
    {"memory", SG_SIZE, 0, SG_FIELD(struct config, memory), .def = "512MiB", .max = "2GiB",
     .help = "A size."},
    {"names", SG_STRINGS, 0, SG_FIELD(struct config, names), .def = "[a, b]", .help = "Texts."},
    {"headers", SG_MAP, 0, SG_FIELD(struct config, headers), .help = "A map."},
    {"rules", SG_LIST, 0, SG_FIELD(struct config, rules), .help = "A list.", .fields = rule_fields,
     .fields_size = sizeof(struct rule)},
    {0},
};

static int create(void *self, struct sg_call *call, const struct sg_sandbox_spec *spec,
                  struct sg_error *err)
{
    (void)self;
    return sg->emit(call, SG_OUT_HANDLE, spec->label, strlen(spec->label), err);
}

static int run(void *self, struct sg_call *call, const char *handle, const struct sg_run *what,
               struct sg_error *err)
{
    (void)self, (void)handle;
    return sg->emit(call, SG_OUT_LOG_OUT, what->code, what->code_len, err);
}

static int destroy(void *self, struct sg_call *call, const char *handle, struct sg_error *err)
{
    (void)self, (void)call, (void)handle, (void)err;
    return 0;
}

static int search(void *self, struct sg_call *call, const struct sg_query *query,
                  struct sg_error *err)
{
    (void)self, (void)query;
    return sg->emit(call, SG_OUT_HIT, "{}", 2, err);
}

static int turn(void *self, struct sg_call *call, const struct sg_turn *what, struct sg_error *err)
{
    (void)self;
    return sg->emit(call, SG_OUT_DATA, what->json, what->json_len, err);
}

static int tool_call(void *self, struct sg_call *call, const char *json, size_t len,
                     struct sg_error *err)
{
    (void)self;
    return sg->emit(call, SG_OUT_MODEL, json, len, err);
}

static const struct sg_tool tools[] = {
    {"code_interpreter", "code_interpreter", "Runs code.",
     "{\"type\": \"object\", \"properties\": {\"code\": {\"type\": \"string\"}}}", SG_TOOL_PARALLEL,
     tool_call},
    {NULL, "always", "Is always there.", "{\"type\":\"object\"}", 0, tool_call},
    {0},
};

static const struct sg_sandbox_ops sandbox_ops = {.create = create, .run = run, .destroy = destroy};
static const struct sg_interceptor_ops interceptor_ops = {.tools = tools};
static const struct sg_search_ops search_ops = {.search = search};
static const struct sg_upstream_ops upstream_ops = {.turn = turn};

static const struct sg_plugin sandbox = {
    .name = "good-box",
    .help = "Gives back what it gets.",
    .options = options,
    .config_size = sizeof(struct config),
    .sandbox = &sandbox_ops,
    .flags = SG_ON_LOOP | SG_DURABLE,
};
static const struct sg_plugin interceptor = {
    .name = "good_tools", .help = "Has two tools.", .interceptor = &interceptor_ops};
static const struct sg_plugin finder = {
    .name = "find", .help = "Finds one thing.", .search = &search_ops};
static const struct sg_plugin model = {
    .name = "model", .help = "Answers with the question.", .upstream = &upstream_ops};

SG_PLUGIN_SET("1.2", &sandbox, &interceptor, &finder, &model);
