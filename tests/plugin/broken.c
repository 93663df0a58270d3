/* Plugins that are wrong in one place each: built once for every CASE_… below, which changes one thing of a plugin that is
 * otherwise right. test_load.c says what the loader must answer to each. */
#include <sandgate/plugin.h>

/* ---- the set ---- */
#if defined(CASE_wrong_magic)
#define MAGIC 0x12345678u
#elif defined(CASE_major_newer)
#define MAJOR (SG_ABI_MAJOR + 1)
#elif defined(CASE_major_older)
#define MAJOR (SG_ABI_MAJOR - 1)
#elif defined(CASE_minor_newer)
#define MINOR (SG_ABI_MINOR + 1)
#elif defined(CASE_set_too_small)
#define SET_SIZE 24
#elif defined(CASE_sizes_none)
#define SIZES NULL
#elif defined(CASE_sizes_too_few)
#define SIZES_COUNT 19
#elif defined(CASE_sizes_too_many)
#define SIZES_COUNT (SG_STRUCT_COUNT + 1)
#elif defined(CASE_size_zero)
#define TOOL_SIZE 0
#elif defined(CASE_size_larger)
#define TOOL_SIZE (sizeof(struct sg_tool) + 8)
#elif defined(CASE_host_none)
#define HOST NULL
#elif defined(CASE_plugins_none)
#define PLUGINS NULL
#elif defined(CASE_plugins_empty)
#define LIST NULL
#elif defined(CASE_version_none)
#define VERSION ""
#elif defined(CASE_two_of_a_kind)
#define LIST &plugin, &second, NULL

/* ---- the plugin ---- */
#elif defined(CASE_name_none)
#define NAME NULL
#elif defined(CASE_name_wrong)
#define NAME "Broken One"
#elif defined(CASE_help_none)
#define HELP ""
#elif defined(CASE_no_kind)
#define KIND .sandbox = NULL
#elif defined(CASE_two_kinds)
#define KIND .sandbox = &sandbox, .search = &search
#elif defined(CASE_flags_unknown)
#define FLAGS (1u << 9)
#elif defined(CASE_durable_search)
#define KIND .search = &search
#define FLAGS SG_DURABLE
#elif defined(CASE_account_without_durable)
#define SANDBOX .create = create, .run = run, .destroy = end, .account = account
#elif defined(CASE_tells_required)
#define FLAGS SG_TELLS_OF_HOST
#define OPTIONS                                                                     \
    {                                                                               \
        "number", SG_INT, SG_REQUIRED, SG_FIELD(struct config, number), .help = "h" \
    }
#elif defined(CASE_create_missing)
#define SANDBOX .run = run, .destroy = end
#elif defined(CASE_run_missing)
#define SANDBOX .create = create, .destroy = end
#elif defined(CASE_destroy_missing)
#define SANDBOX .create = create, .run = run
#elif defined(CASE_search_missing)
#define KIND .search = &empty_search
#elif defined(CASE_turn_missing)
#define KIND .upstream = &empty_upstream

/* ---- interceptors ---- */
#elif defined(CASE_interceptor_empty)
#define KIND .interceptor = &interceptor
#define INTERCEPTOR .tools = NULL
#elif defined(CASE_interceptor_no_tool)
#define KIND .interceptor = &interceptor
#define INTERCEPTOR .tools = no_tools
#elif defined(CASE_done_without_request)
#define KIND .interceptor = &interceptor
#define INTERCEPTOR .tools = tools, .done = done
#elif defined(CASE_tool_name)
#define KIND .interceptor = &interceptor
#define TOOL                                                                            \
    {                                                                                   \
        .name = "run code", .description = "d", .parameters_json = SCHEMA, .call = call \
    }
#elif defined(CASE_tool_twice)
#define KIND .interceptor = &interceptor
#define TOOL A_TOOL, A_TOOL
#elif defined(CASE_tool_call)
#define KIND .interceptor = &interceptor
#define TOOL                                                       \
    {                                                              \
        .name = "t", .description = "d", .parameters_json = SCHEMA \
    }
#elif defined(CASE_tool_description)
#define KIND .interceptor = &interceptor
#define TOOL                                                 \
    {                                                        \
        .name = "t", .parameters_json = SCHEMA, .call = call \
    }
#elif defined(CASE_tool_schema_none)
#define KIND .interceptor = &interceptor
#define TOOL                                          \
    {                                                 \
        .name = "t", .description = "d", .call = call \
    }
#elif defined(CASE_tool_schema_broken)
#define KIND .interceptor = &interceptor
#define TOOL                                                                             \
    {                                                                                    \
        .name = "t", .description = "d", .parameters_json = "{\"type\": }", .call = call \
    }
#elif defined(CASE_tool_schema_list)
#define KIND .interceptor = &interceptor
#define TOOL                                                                   \
    {                                                                          \
        .name = "t", .description = "d", .parameters_json = "[]", .call = call \
    }
#elif defined(CASE_tool_schema_type)
#define KIND .interceptor = &interceptor
#define TOOL                                                                                       \
    {                                                                                              \
        .name = "t", .description = "d", .parameters_json = "{\"type\": \"string\"}", .call = call \
    }
#elif defined(CASE_tool_hosted)
#define KIND .interceptor = &interceptor
#define TOOL                                                                                      \
    {                                                                                             \
        .hosted = "Code Interpreter", .name = "t", .description = "d", .parameters_json = SCHEMA, \
        .call = call                                                                              \
    }
#elif defined(CASE_tool_flags)
#define KIND .interceptor = &interceptor
#define TOOL                                                                                       \
    {                                                                                              \
        .name = "t", .description = "d", .parameters_json = SCHEMA, .flags = 1u << 7, .call = call \
    }

/* ---- options ---- */
#elif defined(CASE_option_name)
#define OPTIONS                                                           \
    {                                                                     \
        "Number", SG_INT, 0, SG_FIELD(struct config, number), .help = "h" \
    }
#elif defined(CASE_option_name_digit)
#define OPTIONS                                                        \
    {                                                                  \
        "1st", SG_INT, 0, SG_FIELD(struct config, number), .help = "h" \
    }
#elif defined(CASE_option_twice)
#define OPTIONS                                                            \
    {"number", SG_INT, 0, SG_FIELD(struct config, number), .help = "h"},   \
    {                                                                      \
        "number", SG_STRING, 0, SG_FIELD(struct config, text), .help = "h" \
    }
#elif defined(CASE_option_same_member)
#define OPTIONS                                                               \
    {"number", SG_INT, 0, SG_FIELD(struct config, number), .help = "h"},      \
    {                                                                         \
        "other", SG_DURATION, 0, SG_FIELD(struct config, number), .help = "h" \
    }
#elif defined(CASE_option_reserved)
#define OPTIONS                                                                     \
    {                                                                               \
        "run_timeout", SG_DURATION, 0, SG_FIELD(struct config, number), .help = "h" \
    }
#elif defined(CASE_option_reserved_upstream)
#define KIND .upstream = &upstream
#define OPTIONS                                                                         \
    {                                                                                   \
        "silence_timeout", SG_DURATION, 0, SG_FIELD(struct config, number), .help = "h" \
    }
#elif defined(CASE_option_reserved_interceptor)
#define KIND .interceptor = &interceptor
#define OPTIONS                                                            \
    {                                                                      \
        "show_runs", SG_BOOL, 0, SG_FIELD(struct config, yes), .help = "h" \
    }
#elif defined(CASE_option_type)
#define OPTIONS                                                       \
    {                                                                 \
        "number", 77, 0, SG_FIELD(struct config, number), .help = "h" \
    }
#elif defined(CASE_option_flags)
#define OPTIONS                                                                 \
    {                                                                           \
        "number", SG_INT, 1u << 5, SG_FIELD(struct config, number), .help = "h" \
    }
#elif defined(CASE_option_help)
#define OPTIONS                                                            \
    {                                                                      \
        "number", SG_INT, 0, SG_FIELD(struct config, number), .help = NULL \
    }
#elif defined(CASE_option_size)
#define OPTIONS                                                           \
    {                                                                     \
        "number", SG_INT, 0, SG_FIELD(struct config, narrow), .help = "h" \
    }
#elif defined(CASE_option_outside)
#define OPTIONS                                                         \
    {                                                                   \
        "number", SG_INT, 0, SG_FIELD(struct wide, number), .help = "h" \
    }
#elif defined(CASE_option_far_outside)
#define OPTIONS                                           \
    {                                                     \
        "number", SG_INT, 0, SIZE_MAX - 7, 8, .help = "h" \
    }
#elif defined(CASE_option_misaligned)
#define OPTIONS                                \
    {                                          \
        "number", SG_INT, 0, 3, 8, .help = "h" \
    }
#elif defined(CASE_config_size_none)
#define CONFIG_SIZE 0
#elif defined(CASE_config_size_huge)
#define CONFIG_SIZE ((size_t)1024 * 1024 + 1)
#elif defined(CASE_default_wrong)
#define OPTIONS                                                                            \
    {                                                                                      \
        "number", SG_DURATION, 0, SG_FIELD(struct config, number), .def = "5", .help = "h" \
    }
#elif defined(CASE_default_out_of_bounds)
#define OPTIONS                                                                                   \
    {                                                                                             \
        "number", SG_INT, 0, SG_FIELD(struct config, number), .def = "9", .max = "8", .help = "h" \
    }
#elif defined(CASE_default_no_choice)
#define OPTIONS                                                                            \
    {                                                                                      \
        "text", SG_CHOICE, 0, SG_FIELD(struct config, text), .def = "c", .choices = "a|b", \
                                                             .help = "h"                   \
    }
#elif defined(CASE_default_of_required)
#define OPTIONS                                                                                 \
    {                                                                                           \
        "number", SG_INT, SG_REQUIRED, SG_FIELD(struct config, number), .def = "9", .help = "h" \
    }
#elif defined(CASE_min_wrong)
#define OPTIONS                                                                        \
    {                                                                                  \
        "number", SG_SIZE, 0, SG_FIELD(struct config, number), .min = "5", .help = "h" \
    }
#elif defined(CASE_max_wrong)
#define OPTIONS                                                                          \
    {                                                                                    \
        "number", SG_INT, 0, SG_FIELD(struct config, number), .max = "many", .help = "h" \
    }
#elif defined(CASE_min_over_max)
#define OPTIONS                                                                               \
    {                                                                                         \
        "number", SG_DURATION, 0, SG_FIELD(struct config, number), .min = "1m", .max = "59s", \
                                                                   .help = "h"                \
    }
#elif defined(CASE_bounds_of_text)
#define OPTIONS                                                                      \
    {                                                                                \
        "text", SG_STRING, 0, SG_FIELD(struct config, text), .max = "5", .help = "h" \
    }
#elif defined(CASE_choices_none)
#define OPTIONS                                                          \
    {                                                                    \
        "text", SG_CHOICE, 0, SG_FIELD(struct config, text), .help = "h" \
    }
#elif defined(CASE_choices_empty)
#define OPTIONS                                                                             \
    {                                                                                       \
        "text", SG_CHOICE, 0, SG_FIELD(struct config, text), .choices = "a||b", .help = "h" \
    }
#elif defined(CASE_choices_of_text)
#define OPTIONS                                                                            \
    {                                                                                      \
        "text", SG_STRING, 0, SG_FIELD(struct config, text), .choices = "a|b", .help = "h" \
    }
#elif defined(CASE_fields_none)
#define OPTIONS                                                        \
    {                                                                  \
        "list", SG_LIST, 0, SG_FIELD(struct config, list), .help = "h" \
    }
#elif defined(CASE_fields_of_text)
#define OPTIONS                                                                                 \
    {                                                                                           \
        "text", SG_STRING, 0, SG_FIELD(struct config, text), .help = "h", .fields = fields,     \
                                                             .fields_size = sizeof(struct item) \
    }
#elif defined(CASE_field_outside)
#define OPTIONS                                                                           \
    {                                                                                     \
        "list", SG_LIST, 0, SG_FIELD(struct config, list), .help = "h", .fields = fields, \
                                                           .fields_size = 4               \
    }
#elif defined(CASE_field_wrong)
#define FIELDS                                                        \
    {                                                                 \
        "when", SG_STRING, 0, SG_FIELD(struct item, when), .help = "" \
    }
#define OPTIONS                                                                               \
    {                                                                                         \
        "list", SG_LIST, 0, SG_FIELD(struct config, list), .help = "h", .fields = fields,     \
                                                           .fields_size = sizeof(struct item) \
    }
#elif defined(CASE_fields_endless)
#define FIELDS                                                                              \
    {                                                                                       \
        "more", SG_LIST, 0, SG_FIELD(struct item, more), .help = "h", .fields = fields,     \
                                                         .fields_size = sizeof(struct item) \
    }
#define OPTIONS                                                                               \
    {                                                                                         \
        "list", SG_LIST, 0, SG_FIELD(struct config, list), .help = "h", .fields = fields,     \
                                                           .fields_size = sizeof(struct item) \
    }

/* ---- the file ---- */
#elif defined(CASE_no_symbol) || defined(CASE_other_symbol) || defined(CASE_undefined)
/* below */
#else
#error "no such case"
#endif

#ifndef MAGIC
#define MAGIC SG_PLUGIN_MAGIC
#endif
#ifndef MAJOR
#define MAJOR SG_ABI_MAJOR
#endif
#ifndef MINOR
#define MINOR SG_ABI_MINOR
#endif
#ifndef SET_SIZE
#define SET_SIZE sizeof(struct sg_plugin_set)
#endif
#ifndef SIZES
#define SIZES sizes
#endif
#ifndef SIZES_COUNT
#define SIZES_COUNT SG_STRUCT_COUNT
#endif
#ifndef TOOL_SIZE
#define TOOL_SIZE sizeof(struct sg_tool)
#endif
#ifndef HOST
#define HOST &sg
#endif
#ifndef LIST
#define LIST &plugin, NULL
#endif
#ifndef PLUGINS
#define PLUGINS plugins
#endif
#ifndef VERSION
#define VERSION "1.0"
#endif
#ifndef NAME
#define NAME "broken"
#endif
#ifndef HELP
#define HELP "Is wrong in one place."
#endif
#ifndef KIND
#define KIND .sandbox = &sandbox
#endif
#ifndef FLAGS
#define FLAGS 0
#endif
#ifndef SANDBOX
#define SANDBOX .create = create, .run = run, .destroy = end
#endif
#ifndef INTERCEPTOR
#define INTERCEPTOR .tools = tools
#endif
#define SCHEMA "{\"type\": \"object\", \"properties\": {}}"
#define A_TOOL                                                                   \
    {                                                                            \
        .name = "t", .description = "d", .parameters_json = SCHEMA, .call = call \
    }
#ifndef TOOL
#define TOOL A_TOOL
#endif
#ifndef FIELDS
#define FIELDS                                                         \
    {                                                                  \
        "when", SG_STRING, 0, SG_FIELD(struct item, when), .help = "h" \
    }
#endif
#ifndef OPTIONS
#define OPTIONS                                                                       \
    {                                                                                 \
        "number", SG_INT, 0, SG_FIELD(struct config, number), .def = "1", .help = "h" \
    }
#endif
#ifndef CONFIG_SIZE
#define CONFIG_SIZE sizeof(struct config)
#endif

#define UNUSED __attribute__((unused))

struct item {
    const char *when;
    struct sg_list more;
};

struct config {
    int64_t number;
    const char *text;
    struct sg_list list;
    int narrow;
    bool yes;
};

struct wide {
    char before[sizeof(struct config)];
    int64_t number;
};

static const struct sg_option fields[] UNUSED = {FIELDS, {0}};
static const struct sg_option options[] = {OPTIONS, {0}};

#if defined(CASE_undefined)
int nobody_has_this(void);
#else
static int nobody_has_this(void)
{
    return 0;
}
#endif

static UNUSED int create(void *self, struct sg_call *call, const struct sg_sandbox_spec *spec,
                         struct sg_error *err)
{
    (void)self, (void)call, (void)spec, (void)err;
    return nobody_has_this();
}

static UNUSED int run(void *self, struct sg_call *call, const char *handle,
                      const struct sg_run *what, struct sg_error *err)
{
    (void)self, (void)call, (void)handle, (void)what, (void)err;
    return 0;
}

static UNUSED int end(void *self, struct sg_call *call, const char *handle, struct sg_error *err)
{
    (void)self, (void)call, (void)handle, (void)err;
    return 0;
}

static UNUSED const char *account(void *self)
{
    (void)self;
    return "one";
}

static UNUSED int find(void *self, struct sg_call *call, const struct sg_query *query,
                       struct sg_error *err)
{
    (void)self, (void)call, (void)query, (void)err;
    return 0;
}

static UNUSED int turn(void *self, struct sg_call *call, const struct sg_turn *what,
                       struct sg_error *err)
{
    (void)self, (void)call, (void)what, (void)err;
    return 0;
}

static UNUSED int call(void *self, struct sg_call *one, const char *json, size_t len,
                       struct sg_error *err)
{
    (void)self, (void)one, (void)json, (void)len, (void)err;
    return 0;
}

static UNUSED void done(void *self, void *state)
{
    (void)self, (void)state;
}

static const struct sg_tool tools[] UNUSED = {TOOL, {0}};
static const struct sg_tool no_tools[] UNUSED = {{0}};
static const struct sg_sandbox_ops sandbox UNUSED = {SANDBOX};
static const struct sg_interceptor_ops interceptor UNUSED = {INTERCEPTOR};
static const struct sg_search_ops search UNUSED = {.search = find};
static const struct sg_search_ops empty_search UNUSED = {.search = NULL};
static const struct sg_upstream_ops upstream UNUSED = {.turn = turn};
static const struct sg_upstream_ops empty_upstream UNUSED = {.turn = NULL};

static const struct sg_plugin plugin UNUSED = {
    .name = NAME,
    .help = HELP,
    .options = options,
    .config_size = CONFIG_SIZE,
    .flags = FLAGS,
    KIND,
};
static const struct sg_plugin second UNUSED = {.name = "second", .help = "h", .sandbox = &sandbox};

const struct sg_host *sg;

static const uint32_t sizes[SG_STRUCT_COUNT] UNUSED = {
    [SG_STRUCT_HOST] = sizeof(struct sg_host),
    [SG_STRUCT_PLUGIN] = sizeof(struct sg_plugin),
    [SG_STRUCT_OPTION] = sizeof(struct sg_option),
    [SG_STRUCT_SANDBOX_OPS] = sizeof(struct sg_sandbox_ops),
    [SG_STRUCT_INTERCEPTOR_OPS] = sizeof(struct sg_interceptor_ops),
    [SG_STRUCT_SEARCH_OPS] = sizeof(struct sg_search_ops),
    [SG_STRUCT_UPSTREAM_OPS] = sizeof(struct sg_upstream_ops),
    [SG_STRUCT_TOOL] = TOOL_SIZE,
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
static const struct sg_plugin *const plugins[] UNUSED = {LIST};

#define EXPORTED __attribute__((visibility("default")))
#if defined(CASE_other_symbol)
extern const int sg_plugin_set EXPORTED;
const int sg_plugin_set = 7;
#else
#if defined(CASE_no_symbol)
#define SYMBOL some_other_set
#else
#define SYMBOL sg_plugin_set
#endif
extern const struct sg_plugin_set SYMBOL EXPORTED;
const struct sg_plugin_set SYMBOL = {MAGIC, SET_SIZE, MAJOR,   MINOR,  SIZES_COUNT,
                                     SIZES, HOST,     VERSION, PLUGINS};
#endif
