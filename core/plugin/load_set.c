/* The set that a plugin's file exports: guard fields and sizes first, then every struct copied at the core's own size, so
 * that nothing after this reads a plugin's struct by a size that the plugin was not built with. */
#include "base/check.h"
#include "plugin/load_internal.h"

/* What 1.0 had; a set of any minor has at least that. */
enum { STRUCTS_MIN = SG_STRUCT_LIST + 1 };

struct structure {
    const char *name;
    size_t size;
};

/* The core's own sizes. */
#define STRUCTURE(type)                      \
    {                                        \
        "struct " #type, sizeof(struct type) \
    }
static const struct structure structures[SG_STRUCT_COUNT] = {
    [SG_STRUCT_HOST] = STRUCTURE(sg_host),
    [SG_STRUCT_PLUGIN] = STRUCTURE(sg_plugin),
    [SG_STRUCT_OPTION] = STRUCTURE(sg_option),
    [SG_STRUCT_SANDBOX_OPS] = STRUCTURE(sg_sandbox_ops),
    [SG_STRUCT_INTERCEPTOR_OPS] = STRUCTURE(sg_interceptor_ops),
    [SG_STRUCT_SEARCH_OPS] = STRUCTURE(sg_search_ops),
    [SG_STRUCT_UPSTREAM_OPS] = STRUCTURE(sg_upstream_ops),
    [SG_STRUCT_TOOL] = STRUCTURE(sg_tool),
    [SG_STRUCT_SANDBOX_SPEC] = STRUCTURE(sg_sandbox_spec),
    [SG_STRUCT_RUN] = STRUCTURE(sg_run),
    [SG_STRUCT_QUERY] = STRUCTURE(sg_query),
    [SG_STRUCT_TURN] = STRUCTURE(sg_turn),
    [SG_STRUCT_SINK] = STRUCTURE(sg_sink),
    [SG_STRUCT_HTTP_REQUEST] = STRUCTURE(sg_http_request),
    [SG_STRUCT_HTTP_REPLY] = STRUCTURE(sg_http_reply),
    [SG_STRUCT_SPAWN] = STRUCTURE(sg_spawn),
    [SG_STRUCT_SPAWN_FD] = STRUCTURE(sg_spawn_fd),
    [SG_STRUCT_CHILD] = STRUCTURE(sg_child),
    [SG_STRUCT_MAP] = STRUCTURE(sg_map),
    [SG_STRUCT_LIST] = STRUCTURE(sg_list),
};

static int abi_check(const struct examination *e)
{
    unsigned major = e->set->abi_major, minor = e->set->abi_minor;
    if (major != SG_ABI_MAJOR) {
        return examination_fail(e,
                                "is built for plugin ABI %u.%u, this sandgate has %u.%u; the major "
                                "numbers must be equal: build it against this sandgate's "
                                "sandgate/plugin.h",
                                major, minor, SG_ABI_MAJOR, SG_ABI_MINOR);
    }
    if (minor > SG_ABI_MINOR) {
        return examination_fail(e,
                                "is built for plugin ABI %u.%u, which is newer than this "
                                "sandgate's %u.%u: use a newer sandgate, or build it against this "
                                "one's sandgate/plugin.h",
                                major, minor, SG_ABI_MAJOR, SG_ABI_MINOR);
    }
    return 0;
}

static int sizes_check(const struct examination *e)
{
    const struct sg_plugin_set *set = e->set;
    if (set->sizes == NULL || set->sizes_count < STRUCTS_MIN ||
        set->sizes_count > SG_STRUCT_COUNT) {
        return examination_fail(e,
                                "has a table of %u sizes, expected %d to %d: write the set with "
                                "SG_PLUGIN_SET",
                                set->sizes == NULL ? 0 : set->sizes_count, STRUCTS_MIN,
                                SG_STRUCT_COUNT);
    }
    for (uint32_t i = 0; i < set->sizes_count; i++) {
        if (set->sizes[i] == 0 || set->sizes[i] > structures[i].size) {
            return examination_fail(e,
                                    "says that '%s' has %u bytes, expected 1 to %zu: build it "
                                    "against an unchanged sandgate/plugin.h",
                                    structures[i].name, set->sizes[i], structures[i].size);
        }
    }
    return 0;
}

int set_check(const struct examination *e, size_t symbol_bytes)
{
    const struct sg_plugin_set *set = e->set;
    const size_t guard_bytes = offsetof(struct sg_plugin_set, sizes);
    if (symbol_bytes < guard_bytes || set->magic != SG_PLUGIN_MAGIC) {
        return examination_fail(e,
                                "has a 'sg_plugin_set' that starts with 0x%08x, expected 0x%08x: "
                                "write it with SG_PLUGIN_SET of sandgate/plugin.h",
                                symbol_bytes < sizeof set->magic ? 0 : set->magic, SG_PLUGIN_MAGIC);
    }
    int code = abi_check(e);
    if (code != 0) {
        return code;
    }
    if (set->size != sizeof *set || symbol_bytes < sizeof *set) { /* 1.0 is the first */
        return examination_fail(e,
                                "has a 'sg_plugin_set' of %u bytes, expected %zu: write it with "
                                "SG_PLUGIN_SET",
                                set->size, sizeof *set);
    }
    code = sizes_check(e);
    if (code != 0) {
        return code;
    }
    if (set->host == NULL || set->plugins == NULL) {
        return examination_fail(e, "has a 'sg_plugin_set' without %s: write it with SG_PLUGIN_SET",
                                set->host == NULL ? "host" : "plugins");
    }
    if (set->version == NULL || set->version[0] == '\0' || strlen(set->version) > NAME_BYTES_MAX) {
        return examination_fail(e,
                                "has no version, or one of more than %d bytes: name one, as in "
                                "SG_PLUGIN_SET(\"1.0\", &plugin)",
                                NAME_BYTES_MAX);
    }
    return 0;
}

/* ---- copies at the core's sizes ---- */

/* The element `index` of the plugin's array (or its one struct), at the core's size: the smaller is copied, the rest is
 * zero, which means the old behaviour. */
static void struct_copy(const struct examination *e, enum sg_struct what, const void *from,
                        size_t index, void *to)
{
    size_t theirs = e->set->sizes[what], ours = structures[what].size;
    memset(to, 0, ours);
    memcpy(to, (const char *)from + index * theirs, theirs < ours ? theirs : ours);
}

/* An operation table, or NULL. */
static const void *ops_copy(const struct examination *e, enum sg_struct what, const void *from)
{
    if (from == NULL) {
        return NULL;
    }
    void *ops = arena_get(e->arena, structures[what].size);
    struct_copy(e, what, from, 0, ops);
    return ops;
}

static int options_copy(const struct examination *e, const struct sg_option *from, size_t depth,
                        const struct sg_option **ret)
{
    struct sg_option option;
    size_t count = 0;
    if (from == NULL) {
        *ret = NULL;
        return 0;
    }
    if (depth > OPTIONS_DEPTH_MAX) {
        return examination_fail(e, "has lists of options in each other deeper than %d",
                                OPTIONS_DEPTH_MAX);
    }
    do {
        struct_copy(e, SG_STRUCT_OPTION, from, count++, &option);
    } while (option.name != NULL && count <= OPTIONS_MAX);
    if (option.name != NULL) {
        return examination_fail(e, "has more than %d options in one table; a table ends with {0}",
                                OPTIONS_MAX);
    }
    struct sg_option *options = arena_get(e->arena, count * sizeof *options);
    for (size_t i = 0; i + 1 < count; i++) {
        struct_copy(e, SG_STRUCT_OPTION, from, i, &options[i]);
        int code = options_copy(e, options[i].fields, depth + 1, &options[i].fields);
        if (code != 0) {
            return code;
        }
    }
    *ret = options;
    return 0;
}

static int tools_copy(const struct examination *e, const struct sg_tool *from,
                      const struct sg_tool **ret)
{
    struct sg_tool tool;
    size_t count = 0;
    if (from == NULL) {
        *ret = NULL;
        return 0;
    }
    do {
        struct_copy(e, SG_STRUCT_TOOL, from, count++, &tool);
    } while (tool.name != NULL && count <= TOOLS_MAX);
    if (tool.name != NULL) {
        return examination_fail(e, "has more than %d tools; the table ends with {0}", TOOLS_MAX);
    }
    struct sg_tool *tools = arena_get(e->arena, count * sizeof *tools);
    for (size_t i = 0; i + 1 < count; i++) {
        struct_copy(e, SG_STRUCT_TOOL, from, i, &tools[i]);
    }
    *ret = tools;
    return 0;
}

static int plugin_copy(const struct examination *e, const struct sg_plugin *from,
                       const struct sg_plugin **ret)
{
    struct sg_plugin *plugin = arena_get(e->arena, sizeof *plugin);
    struct_copy(e, SG_STRUCT_PLUGIN, from, 0, plugin);
    plugin->sandbox = ops_copy(e, SG_STRUCT_SANDBOX_OPS, plugin->sandbox);
    plugin->search = ops_copy(e, SG_STRUCT_SEARCH_OPS, plugin->search);
    plugin->upstream = ops_copy(e, SG_STRUCT_UPSTREAM_OPS, plugin->upstream);
    if (plugin->interceptor != NULL) {
        struct sg_interceptor_ops *ops = arena_get(e->arena, sizeof *ops);
        struct_copy(e, SG_STRUCT_INTERCEPTOR_OPS, plugin->interceptor, 0, ops);
        int code = tools_copy(e, ops->tools, &ops->tools);
        if (code != 0) {
            return code;
        }
        plugin->interceptor = ops;
    }
    int code = options_copy(e, plugin->options, 1, &plugin->options);
    if (code == 0) {
        *ret = plugin;
    }
    return code;
}

int set_rebuild(const struct examination *e, const struct sg_plugin ***ret)
{
    size_t count = 0;
    while (count <= PLUGINS_MAX && e->set->plugins[count] != NULL) {
        count++;
    }
    if (count == 0 || count > PLUGINS_MAX) {
        return examination_fail(e,
                                "has %s plugins in its set: name them, as in "
                                "SG_PLUGIN_SET(\"1.0\", &plugin)",
                                count == 0 ? "no" : "too many");
    }
    const struct sg_plugin **plugins = arena_get(e->arena, (count + 1) * sizeof *plugins);
    for (size_t i = 0; i < count; i++) {
        int code = plugin_copy(e, e->set->plugins[i], &plugins[i]);
        if (code != 0) {
            return code;
        }
    }
    *ret = plugins;
    return 0;
}
