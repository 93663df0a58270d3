/* The example provider, loaded as the gateway does and driven through a fake host: TEST_EXAMPLE in the environment names
 * the folder of another build of it, such as one made outside the tree. */
#include "conf/conf.h"
#include "cunit_main.h"
#include "plugin/load.h"
#include "plugin_folder.h"

#include <stdarg.h>

static struct folder folder; /* of all tests */
static struct loader *loader;
static const char *folders[1];
static struct arena *arena;
static struct buf out; /* what was emitted since open_echo() */

static int fake_emit(struct sg_call *call, enum sg_out kind, const void *data, size_t len,
                     struct sg_error *err)
{
    (void)call, (void)err;
    buf_printf(&out, "%d:", (int)kind);
    buf_append(&out, data, len);
    buf_putc(&out, '\n');
    return 0;
}

static int fake_fail(struct sg_error *err, enum sg_code code, const char *format, ...)
    SG_PRINTF(3, 4);

static int fake_fail(struct sg_error *err, enum sg_code code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)error_vset(err, code, format, arguments); /* returns the code */
    va_end(arguments);
    return code;
}

static const struct sg_host host = {.size = sizeof host, .emit = fake_emit, .fail = fake_fail};

static const struct sg_plugin *open_echo(const char *yaml, void **ret_self)
{
    const struct plugin_file *file = NULL;
    struct sg_error err = {0};
    struct conf_problems problems = {0};
    CU_ASSERT_EQUAL_FATAL(loader_load(loader, "echo", &file, &err), 0);
    loader_bind_host(file, &host);
    const struct sg_plugin *plugin = plugin_of_kind(file, PLUGIN_SANDBOX);
    CU_ASSERT_PTR_NOT_NULL_FATAL(plugin);
    const struct conf_node *map = conf_parse_text("c.yaml", str_of(yaml), arena, &problems);
    void *config = arena_get(arena, plugin->config_size);
    CU_ASSERT_EQUAL(conf_fill(plugin->options, map, map, NULL, "echo", config, arena, &problems),
                    0);
    CU_ASSERT_EQUAL(plugin->open(config, NULL, ret_self, &err), 0);
    buf_reset(&out);
    return plugin;
}

static int run(const struct sg_plugin *plugin, void *self, const char *handle, const char *code,
               struct sg_error *err)
{
    struct sg_run what = {.code = code, .code_len = strlen(code)};
    return plugin->sandbox->run(self, NULL, handle, &what, err);
}

static void each_container_keeps_its_last_code(void)
{
    void *self = NULL;
    struct sg_error err = {0};
    const struct sg_sandbox_spec spec = {.label = "x"};
    const struct sg_plugin *plugin = open_echo("greeting: '> '\n", &self);
    CU_ASSERT_EQUAL(plugin->sandbox->create(self, NULL, &spec, &err), 0);
    CU_ASSERT_EQUAL(plugin->sandbox->create(self, NULL, &spec, &err), 0);
    CU_ASSERT_STRING_EQUAL(out.data, "3:echo-1\n3:echo-2\n");
    buf_reset(&out);
    CU_ASSERT_EQUAL(run(plugin, self, "echo-1", "a = 1", &err), 0);
    CU_ASSERT_STRING_EQUAL(out.data, "");
    CU_ASSERT_EQUAL(run(plugin, self, "echo-2", "b = 2", &err), 0);
    CU_ASSERT_EQUAL(run(plugin, self, "echo-1", "a", &err), 0);
    CU_ASSERT_STRING_EQUAL(out.data, "4:> \n4:a = 1\n");
    CU_ASSERT_EQUAL(plugin->sandbox->destroy(self, NULL, "echo-1", &err), 0);
    CU_ASSERT_EQUAL(plugin->sandbox->destroy(self, NULL, "echo-1", &err), 0);
    CU_ASSERT_EQUAL(run(plugin, self, "echo-1", "a", &err), SG_E_GONE_BEFORE);
    CU_ASSERT_STRING_EQUAL(err.message, "the container is gone");
    plugin->close(self, NULL); /* one container is left in it */
}

static void the_limit_of_containers_holds(void)
{
    void *self = NULL;
    struct sg_error err = {0};
    const struct sg_sandbox_spec spec = {.label = "x"};
    const struct sg_plugin *plugin = open_echo("containers_max: 1\n", &self);
    CU_ASSERT_EQUAL(plugin->sandbox->create(self, NULL, &spec, &err), 0);
    CU_ASSERT_EQUAL(plugin->sandbox->create(self, NULL, &spec, &err), SG_E_LIMIT);
    CU_ASSERT_STRING_EQUAL(err.message, "no room for another container; raise containers_max");
    CU_ASSERT_EQUAL(plugin->sandbox->destroy(self, NULL, "echo-1", &err), 0);
    CU_ASSERT_EQUAL(plugin->sandbox->create(self, NULL, &spec, &err), 0);
    CU_ASSERT_STRING_EQUAL(out.data, "3:echo-1\n3:echo-2\n");
    plugin->close(self, NULL);
}

static const struct test tests[] = {
    TEST(each_container_keeps_its_last_code),
    TEST(the_limit_of_containers_holds),
};

int main(int argc, char **argv)
{
    const char *other = getenv("TEST_EXAMPLE");
    folder = folder_new();
    plugin_put_from(&folder, other != NULL ? other : TEST_PLUGINS, "echo");
    folders[0] = folder.path;
    loader = loader_new(folders, 1);
    arena = arena_new(0);
    int code = run_tests("example", tests, COUNT_OF(tests), argc, argv);
    buf_clear(&out);
    arena_free(arena);
    loader_free(loader);
    folder_remove(&folder);
    return code;
}
