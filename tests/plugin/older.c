/* A plugin as it would be had 1.0 been smaller: its structs end earlier than the core's, and what stands behind them would
 * be wrong if it were read. */
#include <sandgate/plugin.h>

#include <string.h>

/* Stands where the core's struct goes on. */
#define BEYOND ((void *)(uintptr_t)0x5151515151515151u)

struct old_option { /* ends before fields */
    const char *name;
    uint32_t type, flags;
    size_t offset, size;
    const char *def, *min, *max;
    const char *choices, *help;
};

struct old_sandbox_ops { /* ends after destroy */
    int (*create)(void *, struct sg_call *, const struct sg_sandbox_spec *, struct sg_error *);
    int (*run)(void *, struct sg_call *, const char *, const struct sg_run *, struct sg_error *);
    int (*destroy)(void *, struct sg_call *, const char *, struct sg_error *);
};

struct old_plugin { /* ends before search */
    const char *name, *help;
    const struct sg_option *options;
    size_t config_size;
    int (*open)(const void *, struct sg_call *, void **, struct sg_error *);
    void (*close)(void *, struct sg_call *);
    const struct sg_sandbox_ops *sandbox;
    const struct sg_interceptor_ops *interceptor;
};

struct config {
    int64_t number;
    const char *text;
};

static const struct old_option options[] = {
    {"number", SG_INT, 0, SG_FIELD(struct config, number), .def = "7", .help = "A number."},
    {"text", SG_STRING, 0, SG_FIELD(struct config, text), .def = "old", .help = "A text."},
    {0},
};

static int create(void *self, struct sg_call *call, const struct sg_sandbox_spec *spec,
                  struct sg_error *err)
{
    (void)self, (void)spec;
    return sg->emit(call, SG_OUT_HANDLE, "old", 3, err);
}

static int run(void *self, struct sg_call *call, const char *handle, const struct sg_run *what,
               struct sg_error *err)
{
    (void)self, (void)call, (void)handle, (void)what, (void)err;
    return 0;
}

static int destroy(void *self, struct sg_call *call, const char *handle, struct sg_error *err)
{
    (void)self, (void)call, (void)handle, (void)err;
    return 0;
}

static const struct {
    struct old_sandbox_ops ops;
    void *beyond[5];
} sandbox = {{create, run, destroy}, {BEYOND, BEYOND, BEYOND, BEYOND, BEYOND}};

static const struct {
    struct old_plugin plugin;
    void *beyond[4];
} plugin = {
    {.name = "older",
     .help = "Was built before.",
     .options = (const struct sg_option *)(const void *)options,
     .config_size = sizeof(struct config),
     .sandbox = (const struct sg_sandbox_ops *)(const void *)&sandbox},
    {BEYOND, BEYOND, BEYOND, BEYOND},
};

const struct sg_host *sg;

static const uint32_t sizes[SG_STRUCT_COUNT] = {
    [SG_STRUCT_HOST] = sizeof(struct sg_host),
    [SG_STRUCT_PLUGIN] = sizeof(struct old_plugin),
    [SG_STRUCT_OPTION] = sizeof(struct old_option),
    [SG_STRUCT_SANDBOX_OPS] = sizeof(struct old_sandbox_ops),
    [SG_STRUCT_INTERCEPTOR_OPS] = sizeof(struct sg_interceptor_ops),
    [SG_STRUCT_SEARCH_OPS] = sizeof(struct sg_search_ops),
    [SG_STRUCT_UPSTREAM_OPS] = sizeof(struct sg_upstream_ops),
    [SG_STRUCT_TOOL] = sizeof(struct sg_tool),
    [SG_STRUCT_SANDBOX_SPEC] = sizeof(struct sg_sandbox_spec),
    [SG_STRUCT_RUN] = sizeof(struct sg_run),
    [SG_STRUCT_QUERY] = sizeof(struct sg_query),
    [SG_STRUCT_TURN] = sizeof(struct sg_turn),
    [SG_STRUCT_SINK] = sizeof(struct sg_sink),
    [SG_STRUCT_HTTP_REQUEST] = sizeof(struct sg_http_request),
    [SG_STRUCT_HTTP_REPLY] = sizeof(struct sg_http_reply),
    [SG_STRUCT_SPAWN] = sizeof(struct sg_spawn),
    [SG_STRUCT_SPAWN_FD] = sizeof(struct sg_spawn_fd),
    [SG_STRUCT_CHILD] = sizeof(struct sg_child),
    [SG_STRUCT_MAP] = sizeof(struct sg_map),
    [SG_STRUCT_LIST] = sizeof(struct sg_list),
};
static const struct sg_plugin *const plugins[] = {(const struct sg_plugin *)(const void *)&plugin,
                                                  NULL};

extern const struct sg_plugin_set sg_plugin_set __attribute__((visibility("default")));
const struct sg_plugin_set sg_plugin_set = {SG_PLUGIN_MAGIC,
                                            sizeof(struct sg_plugin_set),
                                            SG_ABI_MAJOR,
                                            SG_ABI_MINOR,
                                            SG_STRUCT_COUNT,
                                            sizes,
                                            &sg,
                                            "0.9",
                                            plugins};
