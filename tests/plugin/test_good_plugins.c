/* What comes out of plugins that are right: found by kind, filled by their tables, described, called through the host that
 * they were given; likewise one whose structs end earlier than the core's. */
#include "conf/conf.h"
#include "cunit_main.h"
#include "plugin/load.h"
#include "plugin_folder.h"

/* As good.c has them. */
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

static struct folder folder; /* of all tests */
static struct loader *loader;
static const char *folders[1];

static const struct plugin_file *load(const char *name)
{
    const struct plugin_file *file = NULL;
    struct sg_error err = {0};
    CU_ASSERT_EQUAL(loader_load(loader, name, &file, &err), 0);
    CU_ASSERT_STRING_EQUAL(err.message, "");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    return file;
}

static void a_set_is_found_by_kind(void)
{
    const struct plugin_file *file = load("good");
    static const char *const names[] = {"good-box", "good_tools", "find", "model"};
    CU_ASSERT_STRING_EQUAL(file->name, "good");
    CU_ASSERT_STRING_EQUAL(file->version, "1.2");
    for (enum plugin_kind kind = 0; kind < PLUGIN_KIND_COUNT; kind++) {
        const struct sg_plugin *plugin = plugin_of_kind(file, kind);
        CU_ASSERT_PTR_NOT_NULL_FATAL(plugin);
        CU_ASSERT_STRING_EQUAL(plugin->name, names[kind]);
        CU_ASSERT_EQUAL(plugin_kind_of(plugin), kind);
    }
    CU_ASSERT_PTR_NULL(plugin_of_kind(load("older"), PLUGIN_SEARCH));
    CU_ASSERT_STRING_EQUAL(plugin_kind_names[PLUGIN_UPSTREAM], "upstream");
}

static void helper_programs_stand_beside_the_file(void)
{
    char expected[512];
    (void)snprintf(expected, sizeof expected, "%s/libexec", folder.path);
    CU_ASSERT_STRING_EQUAL(load("good")->libexec_dir, expected);
}

static void its_options_are_filled_from_the_configuration(void)
{
    struct arena *arena = arena_new(0);
    const struct sg_plugin *plugin = plugin_of_kind(load("good"), PLUGIN_SANDBOX);
    struct conf_problems problems = {0};
    struct config config = {0};
    CU_ASSERT_EQUAL(plugin->config_size, sizeof config);
    CU_ASSERT_EQUAL(plugin->flags, SG_ON_LOOP | SG_DURABLE);
    const struct conf_node *map =
        conf_parse_text("c.yaml",
                        STR("name: box\nplugin: good\nkeep: 5s\ntext: hello\napi_key: k\n"
                            "mode: slow\nenabled: no\ncount: 10\ntimeout: 1s\nmemory: 2GiB\n"
                            "names: c\nheaders: { x: y }\nrules: [{ when: a }]\n"),
                        arena, &problems);
    CU_ASSERT_EQUAL(conf_fill(plugin->options, map, map, plugin_reserved(PLUGIN_SANDBOX), "box",
                              &config, arena, &problems),
                    0);
    CU_ASSERT_STRING_EQUAL(config.text, "hello");
    CU_ASSERT_STRING_EQUAL(config.key, "k");
    CU_ASSERT_STRING_EQUAL(config.mode, "slow");
    CU_ASSERT_FALSE(config.enabled);
    CU_ASSERT_EQUAL(config.count, 10);
    CU_ASSERT_EQUAL(config.timeout_ms, 1000);
    CU_ASSERT_EQUAL(config.memory, (uint64_t)2 << 30);
    CU_ASSERT_STRING_EQUAL(config.names[0], "c");
    CU_ASSERT_STRING_EQUAL(config.headers.values[0], "y");
    CU_ASSERT_EQUAL_FATAL(config.rules.count, 1);
    CU_ASSERT_STRING_EQUAL(((const struct rule *)config.rules.items)->when, "a");
    CU_ASSERT_EQUAL(((const struct rule *)config.rules.items)->delay_ms, 10);
    map = conf_parse_text("c.yaml", STR("name: box\ncount: 11\n"), arena, &problems);
    CU_ASSERT_EQUAL(conf_fill(plugin->options, map, map, plugin_reserved(PLUGIN_SANDBOX), "box",
                              &config, arena, &problems),
                    2);
    CU_ASSERT_STRING_EQUAL(problems.text.data,
                           "c.yaml:2:8: box: 'count' must be at most 10, not '11'\n"
                           "c.yaml:1:1: box: 'text' is required: text\n");
    conf_problems_clear(&problems);
    arena_free(arena);
}

static bool has(const char *const *names, const char *name)
{
    for (; *names != NULL; names++) {
        if (strcmp(*names, name) == 0) {
            return true;
        }
    }
    return false;
}

static void the_core_keeps_its_own_names(void)
{
    CU_ASSERT_TRUE(has(plugin_reserved(PLUGIN_SANDBOX), "run_timeout"));
    CU_ASSERT_FALSE(has(plugin_reserved(PLUGIN_SANDBOX), "timeout"));
    CU_ASSERT_TRUE(has(plugin_reserved(PLUGIN_SEARCH), "plugin"));
    CU_ASSERT_FALSE(has(plugin_reserved(PLUGIN_SEARCH), "keep"));
    CU_ASSERT_TRUE(has(plugin_reserved(PLUGIN_SEARCH), "per_minute"));
    static const char *const upstream[] = {"name",
                                           "plugin",
                                           "base_url",
                                           "api_key",
                                           "models",
                                           "surfaces",
                                           "passthrough",
                                           "relay_paths",
                                           "stream",
                                           "last_turn",
                                           "usage",
                                           "model_prefix",
                                           "connect_timeout",
                                           "first_byte_timeout",
                                           "silence_timeout"};
    for (size_t i = 0; i < COUNT_OF(upstream); i++) {
        CU_ASSERT_TRUE(has(plugin_reserved(PLUGIN_UPSTREAM), upstream[i]));
    }
    static const char *const interceptor[] = {"plugin",  "name",      "enabled",
                                              "sandbox", "search",    "upstreams",
                                              "offer",   "tool_name", "show_runs"};
    for (size_t i = 0; i < COUNT_OF(interceptor); i++) {
        CU_ASSERT_TRUE(has(plugin_reserved(PLUGIN_INTERCEPTOR), interceptor[i]));
    }
}

/* ---- calls through the host ---- */

static char emitted[64];

static int fake_emit(struct sg_call *call, enum sg_out kind, const void *data, size_t len,
                     struct sg_error *err)
{
    (void)call, (void)err;
    (void)snprintf(emitted, sizeof emitted, "%d %.*s", (int)kind, (int)len, (const char *)data);
    return 0;
}

static const struct sg_host host = {.size = sizeof host, .emit = fake_emit};

static void a_bound_host_is_what_the_plugin_calls(void)
{
    struct sg_error err = {0};
    loader_bind_host(load("good"), &host);
    const struct sg_plugin *plugin = plugin_of_kind(load("good"), PLUGIN_SANDBOX);
    struct sg_sandbox_spec spec = {.label = "l-1"};
    CU_ASSERT_EQUAL(plugin->sandbox->create(NULL, NULL, &spec, &err), 0);
    CU_ASSERT_STRING_EQUAL(emitted, "3 l-1");
    CU_ASSERT_PTR_NULL(plugin->sandbox->touch);
    const struct sg_interceptor_ops *tools =
        plugin_of_kind(load("good"), PLUGIN_INTERCEPTOR)->interceptor;
    CU_ASSERT_STRING_EQUAL(tools->tools[0].hosted, "code_interpreter");
    CU_ASSERT_EQUAL(tools->tools[1].call(NULL, NULL, "{}", 2, &err), 0);
    CU_ASSERT_STRING_EQUAL(emitted, "10 {}");
    CU_ASSERT_PTR_NULL(tools->tools[2].name);
}

static void a_plugin_with_smaller_structs_has_zero_behind_them(void)
{
    struct arena *arena = arena_new(0);
    struct sg_error err = {0};
    const struct sg_plugin *plugin = plugin_of_kind(load("older"), PLUGIN_SANDBOX);
    CU_ASSERT_PTR_NOT_NULL_FATAL(plugin);
    CU_ASSERT_PTR_NULL(plugin->search);
    CU_ASSERT_PTR_NULL(plugin->upstream);
    CU_ASSERT_EQUAL(plugin->flags, 0);
    CU_ASSERT_PTR_NULL(plugin->sandbox->touch);
    CU_ASSERT_PTR_NULL(plugin->sandbox->list);
    CU_ASSERT_EQUAL(plugin->sandbox->fds_per_container, 0);
    CU_ASSERT_STRING_EQUAL(plugin->options[1].name, "text");
    CU_ASSERT_STRING_EQUAL(plugin->options[1].help, "A text.");
    CU_ASSERT_PTR_NULL(plugin->options[0].fields);
    CU_ASSERT_EQUAL(plugin->options[0].fields_size, 0);
    CU_ASSERT_PTR_NULL(plugin->options[2].name);
    struct {
        int64_t number;
        const char *text;
    } config = {0};
    struct conf_problems problems = {0};
    CU_ASSERT_EQUAL(
        conf_fill(plugin->options, NULL, NULL, NULL, "older", &config, arena, &problems), 0);
    CU_ASSERT_EQUAL(config.number, 7);
    CU_ASSERT_STRING_EQUAL(config.text, "old");
    loader_bind_host(load("older"), &host);
    CU_ASSERT_EQUAL(plugin->sandbox->create(NULL, NULL, &(struct sg_sandbox_spec){0}, &err), 0);
    CU_ASSERT_STRING_EQUAL(emitted, "3 old");
    arena_free(arena);
}

static void a_plugin_is_described_with_all_its_options(void)
{
    BUF_CLEANUP struct buf out = {0};
    plugin_describe(load("good"), &out);
    const char *const expected =
        "good-box 1.2 (sandbox)\n"
        "Gives back what it gets.\n"
        "\n"
        "configured by 'plugin: good'; options:\n"
        "  text: text; required\n"
        "      A text.\n"
        "  api_key: text; default ***; secret\n"
        "      A key.\n"
        "  mode: one of fast, slow; default fast\n"
        "      A choice.\n"
        "  enabled: true or false; default true\n"
        "      A switch.\n"
        "  count: whole number; 1 to 10; default 3\n"
        "      A number.\n"
        "  timeout: duration; at least 1s; default 30s\n"
        "      A duration.\n"
        "  wait: duration; deprecated\n"
        "      Use timeout.\n"
        "  memory: size; at most 2GiB; default 512MiB\n"
        "      A size.\n"
        "  names: list of texts; default [a, b]\n"
        "      Texts.\n"
        "  headers: map of names to texts\n"
        "      A map.\n"
        "  rules: list of maps\n"
        "      A list.\n"
        "        when: text; required\n"
        "            What it answers to.\n"
        "        delay: duration; default 10ms\n"
        "            How long it waits.\n"
        "\n"
        "good_tools 1.2 (interceptor)\n"
        "Has two tools.\n"
        "Offers the function code_interpreter where code_interpreter is asked for.\n"
        "Offers the function always.\n"
        "\n"
        "configured by 'plugin: good'; no options\n"
        "\n"
        "find 1.2 (search)\n"
        "Finds one thing.\n"
        "\n"
        "configured by 'plugin: good'; no options\n"
        "\n"
        "model 1.2 (upstream)\n"
        "Answers with the question.\n"
        "\n"
        "configured by 'plugin: good'; no options\n";
    CU_ASSERT_STRING_EQUAL(out.data, expected);
    if (strcmp(out.data, expected) != 0) {
        fprintf(stderr, "%s\n", out.data);
    }
}

static const struct test tests[] = {
    TEST(a_set_is_found_by_kind),
    TEST(helper_programs_stand_beside_the_file),
    TEST(its_options_are_filled_from_the_configuration),
    TEST(the_core_keeps_its_own_names),
    TEST(a_bound_host_is_what_the_plugin_calls),
    TEST(a_plugin_with_smaller_structs_has_zero_behind_them),
    TEST(a_plugin_is_described_with_all_its_options),
};

int main(int argc, char **argv)
{
    folder = folder_new();
    plugin_put(&folder, "good");
    plugin_put(&folder, "older");
    folders[0] = folder.path;
    loader = loader_new(folders, 1);
    int code = run_tests("good_plugins", tests, COUNT_OF(tests), argc, argv);
    loader_free(loader);
    folder_remove(&folder);
    return code;
}
