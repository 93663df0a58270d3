/* The loader: what it refuses, each with its whole message, and what comes out of plugins that are right. Every wrong
 * plugin is broken.c built for one case. */
#include "base/arena.h"
#include "cunit_main.h"
#include "plugin/load.h"
#include "plugin_folder.h"

/* Loads NAME from a folder; "" or the message. The loader and what it loaded are gone afterwards. */
static const char *load_message(const char *folder, const char *name)
{
    static char message[ERROR_MESSAGE_BYTES];
    const struct plugin_file *file = NULL;
    struct loader *loader = loader_new(&folder, 1);
    struct sg_error err = {0};
    int code = loader_load(loader, name, &file, &err);
    CU_ASSERT_EQUAL(code, err.message[0] == '\0' ? 0 : SG_E_CONFIG);
    CU_ASSERT_EQUAL(file != NULL, code == 0);
    (void)snprintf(message, sizeof message, "%s", err.message); /* of the same size */
    loader_free(loader);
    return message;
}

/* `expected` with each "$" as the folder. */
static void expect(const struct folder *folder, const char *name, const char *expected)
{
    BUF_CLEANUP struct buf whole = {0};
    buf_puts(&whole, ""); /* so that there is a text */
    for (; *expected != '\0'; expected++) {
        if (*expected == '$') {
            buf_puts(&whole, folder->path);
        } else {
            buf_putc(&whole, *expected);
        }
    }
    const char *message = load_message(folder->path, name);
    CU_ASSERT_STRING_EQUAL(message, whole.data);
    if (strcmp(message, whole.data) != 0) {
        fprintf(stderr, "%s: %s\n", name, message);
    }
}

/* ---- finding the file ---- */

static void a_plugin_is_named_by_a_plain_word(void)
{
    struct folder folder = folder_new();
    plugin_put(&folder, "good");
    static const char *const wrong[] = {"./good", "good.so", "../x/good", "/etc/passwd",
                                        "Good",   "a b",     "-good",     ""};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        char expected[512];
        (void)snprintf(expected, sizeof expected,
                       "plugin '%s': a plugin is named by a plain word (a-z, 0-9, '_', '-'), not "
                       "by a path; NAME stands for NAME.so in one of the plugin folders",
                       wrong[i]);
        expect(&folder, wrong[i], expected);
    }
    char name[70];
    memset(name, 'a', sizeof name);
    name[65] = '\0';
    CU_ASSERT_PTR_NOT_NULL(strstr(load_message(folder.path, name), "plain word"));
    name[64] = '\0';
    CU_ASSERT_PTR_NOT_NULL(strstr(load_message(folder.path, name), "there is no aaaa"));
    folder_remove(&folder);
}

static void a_missing_plugin_names_the_folders_and_the_nearest(void)
{
    struct folder folder = folder_new();
    expect(&folder, "godo", "plugin 'godo': there is no godo.so in $");
    plugin_put(&folder, "good");
    expect(&folder, "godo", "plugin 'godo': there is no godo.so in $; did you mean 'good'?");
    CU_ASSERT_STRING_EQUAL(load_message("/nowhere", "good"),
                           "plugin 'good': there is no good.so in /nowhere (no such folder)");
    struct loader *loader = loader_new(NULL, 0);
    const struct plugin_file *file = NULL;
    struct sg_error err = {0};
    CU_ASSERT_EQUAL(loader_load(loader, "good", &file, &err), SG_E_CONFIG);
    CU_ASSERT_STRING_EQUAL(err.message,
                           "plugin 'good': there is no good.so in any folder (none is configured)");
    loader_free(loader);
    folder_remove(&folder);
}

static void folders_are_searched_in_order(void)
{
    struct folder one = folder_new(), other = folder_new();
    plugin_put(&one, "good");
    plugin_put(&other, "good");
    plugin_put(&other, "older");
    file_write(&other, "not a plugin.so", STR("x"));
    file_write(&other, "readme.txt", STR("x"));
    const char *folders[] = {"/nowhere", one.path, other.path};
    struct loader *loader = loader_new(folders, 3);
    struct arena *arena = arena_new(0);
    const struct plugin_file *file = NULL, *again = NULL;
    struct sg_error err = {0};
    CU_ASSERT_EQUAL_FATAL(loader_load(loader, "good", &file, &err), 0);
    CU_ASSERT_EQUAL(strncmp(file->path, one.path, strlen(one.path)), 0);
    CU_ASSERT_EQUAL(loader_load(loader, "good", &again, &err), 0);
    CU_ASSERT_PTR_EQUAL(again, file);
    CU_ASSERT_EQUAL(loader_load(loader, "older", &again, &err), 0);
    CU_ASSERT_EQUAL(strncmp(again->path, other.path, strlen(other.path)), 0);
    const char *const *names = loader_list(loader, arena);
    CU_ASSERT_STRING_EQUAL(names[0], "good");
    CU_ASSERT_STRING_EQUAL(names[1], "older");
    CU_ASSERT_PTR_NULL(names[2]);
    arena_free(arena);
    loader_free(loader);
    folder_remove(&one);
    folder_remove(&other);
}

static void the_installed_folder_stands_beside_the_program(void)
{
    struct arena *arena = arena_new(0);
    char *build = realpath(BUILD_DIR, NULL);
    CU_ASSERT_STRING_EQUAL(loader_installed_folder(arena),
                           arena_printf(arena, "%s/lib/sandgate", build));
    free(build);
    arena_free(arena);
}

/* ---- whose file it is ---- */

static void what_others_may_write_is_not_loaded(void)
{
    struct folder folder = folder_new();
    char path[512];
    plugin_put(&folder, "good");
    (void)snprintf(path, sizeof path, "%s/good.so", folder.path);
    CU_ASSERT_EQUAL(chmod(path, 0664), 0);
    expect(
        &folder, "good",
        "$/good.so may be written by others (mode 0664), who could change what the gateway runs: "
        "chmod go-w '$/good.so'");
    CU_ASSERT_EQUAL(chmod(path, 0646), 0);
    expect(
        &folder, "good",
        "$/good.so may be written by others (mode 0646), who could change what the gateway runs: "
        "chmod go-w '$/good.so'");
    CU_ASSERT_EQUAL(chmod(path, 0755), 0);
    expect(&folder, "good", "");
    CU_ASSERT_EQUAL(chmod(folder.path, 0777), 0);
    expect(&folder, "good",
           "$ may be written by others (mode 0777), who could change what the gateway runs: chmod "
           "go-w '$'");
    CU_ASSERT_EQUAL(chmod(folder.path, 01770), 0);
    expect(&folder, "good",
           "$ may be written by others (mode 1770), who could change what the gateway runs: chmod "
           "go-w '$'");
    CU_ASSERT_EQUAL(chmod(folder.path, 0755), 0);
    expect(&folder, "good", "");
    folder_remove(&folder);
}

static void what_another_user_owns_is_not_loaded(void)
{
    struct folder folder = folder_new();
    char path[512];
    plugin_put(&folder, "good");
    (void)snprintf(path, sizeof path, "%s/good.so", folder.path);
    if (geteuid() == 0) { /* only root can give a file away */
        CU_ASSERT_EQUAL(chown(path, 12345, 0), 0);
        expect(&folder, "good",
               "$/good.so belongs to user 12345, who could change what the gateway runs; it must "
               "belong to root or to the running user: chown 0 '$/good.so'");
        CU_ASSERT_EQUAL(chown(path, 0, 0), 0);
        CU_ASSERT_EQUAL(chown(folder.path, 12345, 0), 0);
        expect(&folder, "good",
               "$ belongs to user 12345, who could change what the gateway runs; it must belong to "
               "root or to the running user: chown 0 '$'");
        CU_ASSERT_EQUAL(chown(folder.path, 0, 0), 0);
    }
    expect(&folder, "good", "");
    folder_remove(&folder);
}

static void a_symbolic_link_is_judged_by_what_it_leads_to(void)
{
    struct folder real = folder_new(), link = folder_new();
    char path[512], target[512];
    plugin_put(&real, "good");
    (void)snprintf(path, sizeof path, "%s/link", link.path);
    CU_ASSERT_EQUAL(symlink(real.path, path), 0);
    CU_ASSERT_STRING_EQUAL(load_message(path, "good"), "");
    CU_ASSERT_EQUAL(chmod(real.path, 0777), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(load_message(path, "good"), "link may be written by others"));
    (void)snprintf(target, sizeof target, "%s/good.so", real.path);
    (void)snprintf(path, sizeof path, "%s/good.so", link.path);
    CU_ASSERT_EQUAL(symlink(target, path), 0);
    char expected[600];
    (void)snprintf(expected, sizeof expected, "%s may be written by others (mode 0777)", real.path);
    CU_ASSERT_EQUAL(strncmp(load_message(link.path, "good"), expected, strlen(expected)), 0);
    CU_ASSERT_EQUAL(chmod(real.path, 0700), 0);
    CU_ASSERT_STRING_EQUAL(load_message(link.path, "good"), "");
    CU_ASSERT_EQUAL(chmod(target, 0666), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(load_message(link.path, "good"), "good.so may be written"));
    folder_remove(&link);
    folder_remove(&real);
}

/* ---- what kind of file it is ---- */

static void a_file_that_is_no_shared_object_is_told_so(void)
{
    struct folder folder = folder_new();
    const char *const expected = "$/x.so is no shared object for this machine; build it with "
                                 "-shared -fPIC (docs/writing-plugins.md)";
    file_write(&folder, "x.so",
               STR("just a text that is longer than the header of a shared object, "
                   "so that it could be one"));
    expect(&folder, "x", expected);
    file_write(&folder, "x.so", STR(""));
    expect(&folder, "x", expected);
    BUF_CLEANUP struct buf data = {0};
    plugin_read("good", &data);
    data.data[16] = 1; /* e_type: an object file */
    file_write(&folder, "x.so", buf_str(&data));
    expect(&folder, "x", expected);
    data.data[16] = 3;
    data.data[4] ^= 3; /* the other class */
    file_write(&folder, "x.so", buf_str(&data));
    expect(&folder, "x", expected);
    folder_remove(&folder);
}

static void a_file_that_was_cut_short_ends_in_a_message(void)
{
    struct folder folder = folder_new();
    BUF_CLEANUP struct buf data = {0};
    plugin_read("good", &data);
    static const size_t cuts[] = {2000, 64, 65, 4096, 8192};
    for (size_t i = 0; i <= COUNT_OF(cuts); i++) {
        size_t len = i < COUNT_OF(cuts) ? cuts[i] : data.len - 1;
        char start[600];
        file_write(&folder, "x.so", (struct str){data.data, len});
        (void)snprintf(start, sizeof start,
                       "%s/x.so is cut short: it has %zu bytes, its headers "
                       "speak of ",
                       folder.path, len);
        const char *message = load_message(folder.path, "x");
        CU_ASSERT_EQUAL(strncmp(message, start, strlen(start)), 0);
        CU_ASSERT_PTR_NOT_NULL(strstr(message, "; copy or build it again"));
    }
    file_write(&folder, "x.so", (struct str){data.data, 63});
    CU_ASSERT_PTR_NOT_NULL(strstr(load_message(folder.path, "x"), "is no shared object"));
    memset(data.data + 40, 0xFF, 8); /* e_shoff beyond all */
    file_write(&folder, "x.so", buf_str(&data));
    CU_ASSERT_PTR_NOT_NULL(strstr(load_message(folder.path, "x"), "speak of 18446744073709551615"));
    folder_remove(&folder);
}

static void folders_and_pipes_are_no_plugins(void)
{
    struct folder folder = folder_new();
    char path[512];
    (void)snprintf(path, sizeof path, "%s/x.so", folder.path);
    CU_ASSERT_EQUAL(mkdir(path, 0700), 0);
    expect(&folder, "x", "$/x.so is no regular file");
    CU_ASSERT_EQUAL(rmdir(path), 0);
    CU_ASSERT_EQUAL(mkfifo(path, 0600), 0);
    expect(&folder, "x", "$/x.so is no regular file"); /* and nobody waits for a writer */
    folder_remove(&folder);
}

/* ---- what is wrong inside ---- */

struct broken {
    const char *name, *says; /* behind the path; "@" stands for "'broken' " */
};

static const struct broken broken[] = {
    {"no_symbol", "exports no 'sg_plugin_set', so it is no plugin of sandgate; a plugin ends with "
                  "SG_PLUGIN_SET(\"1.0\", &plugin)"},
    {"wrong_magic", "has a 'sg_plugin_set' that starts with 0x12345678, expected 0x53475031: write "
                    "it with SG_PLUGIN_SET of sandgate/plugin.h"},
    {"other_symbol", "has a 'sg_plugin_set' that starts with 0x00000007, expected 0x53475031: "
                     "write it with SG_PLUGIN_SET of sandgate/plugin.h"},
    {"major_newer", "is built for plugin ABI 2.2, this sandgate has 1.2; the major numbers must be "
                    "equal: build it against this sandgate's sandgate/plugin.h"},
    {"major_older", "is built for plugin ABI 0.2, this sandgate has 1.2; the major numbers must be "
                    "equal: build it against this sandgate's sandgate/plugin.h"},
    {"minor_newer", "is built for plugin ABI 1.3, which is newer than this sandgate's 1.2: use a "
                    "newer sandgate, or build it against this one's sandgate/plugin.h"},
    {"set_too_small",
     "has a 'sg_plugin_set' of 24 bytes, expected 48: write it with SG_PLUGIN_SET"},
    {"sizes_none", "has a table of 0 sizes, expected 20 to 20: write the set with SG_PLUGIN_SET"},
    {"sizes_too_few",
     "has a table of 19 sizes, expected 20 to 20: write the set with SG_PLUGIN_SET"},
    {"sizes_too_many",
     "has a table of 21 sizes, expected 20 to 20: write the set with SG_PLUGIN_SET"},
    {"size_zero", "says that 'struct sg_tool' has 0 bytes, expected 1 to 48: build it against an "
                  "unchanged sandgate/plugin.h"},
    {"size_larger", "says that 'struct sg_tool' has 56 bytes, expected 1 to 48: build it against "
                    "an unchanged sandgate/plugin.h"},
    {"host_none", "has a 'sg_plugin_set' without host: write it with SG_PLUGIN_SET"},
    {"plugins_none", "has a 'sg_plugin_set' without plugins: write it with SG_PLUGIN_SET"},
    {"plugins_empty",
     "has no plugins in its set: name them, as in SG_PLUGIN_SET(\"1.0\", &plugin)"},
    {"version_none", "has no version, or one of more than 64 bytes: name one, as in "
                     "SG_PLUGIN_SET(\"1.0\", &plugin)"},
    {"two_of_a_kind", "has two plugins of kind sandbox, 'broken' and 'second': a set holds at most "
                      "one of a kind"},
    {"name_none", "plugin 1 of its set is named '', expected 1 to 64 of a-z, 0-9, '_' and '-'"},
    {"name_wrong",
     "plugin 1 of its set is named 'Broken One', expected 1 to 64 of a-z, 0-9, '_' and '-'"},
    {"help_none", "@has no help: say in one sentence what it does"},
    {"no_kind", "@sets 0 of .sandbox, .interceptor, .search and .upstream: a plugin sets exactly "
                "one; a set may hold several plugins"},
    {"two_kinds", "@sets 2 of .sandbox, .interceptor, .search and .upstream: a plugin sets exactly "
                  "one; a set may hold several plugins"},
    {"flags_unknown",
     "@has unknown flags 0x200: use SG_ON_LOOP, SG_DURABLE and SG_TELLS_OF_HOST only"},
    {"durable_search", "@sets SG_DURABLE, which is for sandboxes only"},
    {"account_without_durable", "@has account(), which means something with SG_DURABLE only"},
    {"tells_required", "@sets SG_TELLS_OF_HOST, but option 'number' is required: it must open with "
                       "its defaults"},
    {"create_missing", "@has no create(): a sandbox needs create(), run() and destroy()"},
    {"run_missing", "@has no run(): a sandbox needs create(), run() and destroy()"},
    {"destroy_missing", "@has no destroy(): a sandbox needs create(), run() and destroy()"},
    {"search_missing", "@has no search(): a search provider needs it"},
    {"turn_missing", "@has no turn(): an upstream needs it"},
    {"interceptor_empty", "@has neither tools nor request(): an interceptor needs one"},
    {"interceptor_no_tool", "@has neither tools nor request(): an interceptor needs one"},
    {"done_without_request", "@has done() without request(), which it would be called for"},
    {"tool_name", "@tool 'run code': a function's name has 1 to 64 letters, digits, '_' and '-'"},
    {"tool_twice", "@has two tools 't'"},
    {"tool_call",
     "@tool 't' has no call: a tool needs name, description, parameters_json and call"},
    {"tool_description",
     "@tool 't' has no description: a tool needs name, description, parameters_json and call"},
    {"tool_schema_none",
     "@tool 't' has no parameters_json: a tool needs name, description, parameters_json and call"},
    {"tool_schema_list",
     "@tool 't': parameters_json must be a JSON Schema of an object: {\"type\": "
     "\"object\", \"properties\": {…}}"},
    {"tool_schema_type",
     "@tool 't': parameters_json must be a JSON Schema of an object: {\"type\": "
     "\"object\", \"properties\": {…}}"},
    {"tool_hosted", "@tool 't': hosted is 'Code Interpreter', expected a plain word such as "
                    "code_interpreter, or NULL"},
    {"tool_flags", "@tool 't' has unknown flags 0x80: use SG_TOOL_… only"},
    {"option_name", "@option 'Number' is not named as options are: lower case letters, digits and "
                    "'_', at most 64, a letter first"},
    {"option_name_digit", "@option '1st' is not named as options are: lower case letters, digits "
                          "and '_', at most 64, a letter first"},
    {"option_twice", "@option 'number' stands twice in the table"},
    {"option_same_member", "@option 'other' fills the same member as 'number'"},
    {"option_reserved", "@option 'run_timeout' has a name that the core keeps for itself in "
                        "'sandboxes': take another"},
    {"option_reserved_upstream", "@option 'silence_timeout' has a name that the core keeps for "
                                 "itself in 'upstreams': take another"},
    {"option_reserved_interceptor", "@option 'show_runs' has a name that the core keeps for itself "
                                    "in 'interceptors': take another"},
    {"option_type", "@option 'number' has the unknown type 77"},
    {"option_flags", "@option 'number' has unknown flags 0x20"},
    {"option_help", "@option 'number' has no help: say in one sentence what it is for"},
    {"option_size", "@option 'number' fills a member of 4 bytes, expected a 'int64_t' of 8"},
    {"option_outside",
     "@option 'number' fills bytes 40 to 48 of a struct of 40: SG_FIELD must name "
     "the struct whose size is given"},
    {"option_far_outside",
     "@option 'number' fills bytes 18446744073709551608 to 0 of a struct of 40: SG_FIELD must name "
     "the struct whose size is given"},
    {"option_misaligned", "@option 'number' fills bytes 3 to 11 of a struct of 40: SG_FIELD must "
                          "name the struct whose size is given"},
    {"config_size_none", "@option 'number' fills bytes 0 to 8 of a struct of 0: SG_FIELD must name "
                         "the struct whose size is given"},
    {"config_size_huge", "@has a config_size of 1048577 bytes, more than 1 MiB"},
    {"default_wrong", "@option 'number' has a wrong default: 'number' must be a duration such as "
                      "30s, not '5'; its unit is missing, as in 5s"},
    {"default_out_of_bounds",
     "@option 'number' has a wrong default: 'number' must be at most 8, not '9'"},
    {"default_no_choice",
     "@option 'text' has a wrong default: 'text' must be one of a, b, not 'c'"},
    {"default_of_required",
     "@option 'number' is required and has a default: it can be one of them"},
    {"min_wrong",
     "@option 'number' has a wrong min: 'number' must be a size such as 64MiB, not '5'; "
     "its unit is missing, as in 5MiB"},
    {"max_wrong", "@option 'number' has a wrong max: 'number' must be a whole number, not 'many'"},
    {"min_over_max", "@option 'number' has a wrong max: 'number' must be at least 1m, not '59s'"},
    {"bounds_of_text", "@option 'text' has bounds, which are for SG_INT, SG_DURATION and SG_SIZE"},
    {"choices_none", "@option 'text' has no choices, expected some such as \"fast|slow\""},
    {"choices_empty", "@option 'text' has an empty choice in \"a||b\""},
    {"choices_of_text", "@option 'text' has choices, but is not of type SG_CHOICE"},
    {"fields_none",
     "@option 'list' is a list without fields, or its fields_size is not that of a struct"},
    {"fields_of_text", "@option 'text' has fields, but is not of type SG_LIST"},
    {"field_outside", "@option 'list.when' fills bytes 0 to 8 of a struct of 4: SG_FIELD must name "
                      "the struct whose size is given"},
    {"field_wrong", "@option 'list.when' has no help: say in one sentence what it is for"},
    {"fields_endless", "has lists of options in each other deeper than 4"},
};

static void each_mistake_in_a_plugin_has_its_message(void)
{
    struct folder folder = folder_new();
    for (size_t i = 0; i < COUNT_OF(broken); i++) {
        const char *says = broken[i].says;
        char expected[1024];
        bool is_known = says[0] == '@'; /* the plugin's name is */
        says += is_known;
        bool is_part = strncmp(says, "tool ", 5) == 0 || strncmp(says, "option ", 7) == 0 ||
                       strncmp(says, "plugin ", 7) == 0;
        (void)snprintf(expected, sizeof expected, "$/%s.so%s%s%s", broken[i].name,
                       is_known ? ": plugin 'broken'" : "", is_part ? ": " : " ", says);
        plugin_put(&folder, broken[i].name);
        expect(&folder, broken[i].name, expected);
    }
    folder_remove(&folder);
}

static void a_schema_that_is_no_json_says_where(void)
{
    struct folder folder = folder_new();
    plugin_put(&folder, "tool_schema_broken");
    const char *message = load_message(folder.path, "tool_schema_broken");
    CU_ASSERT_PTR_NOT_NULL(strstr(message, ".so: plugin 'broken': tool 't': parameters_json: "));
    CU_ASSERT_PTR_NOT_NULL(strstr(message, "at byte 9"));
    folder_remove(&folder);
}

static void a_symbol_that_nobody_has_is_named(void)
{
    struct folder folder = folder_new();
    char expected[600];
    plugin_put(&folder, "undefined");
    (void)snprintf(expected, sizeof expected,
                   "%s/undefined.so cannot be loaded: %s/undefined.so: undefined symbol: "
                   "nobody_has_this",
                   folder.path, folder.path);
    CU_ASSERT_STRING_EQUAL(load_message(folder.path, "undefined"), expected);
    folder_remove(&folder);
}

static void a_wrong_plugin_does_not_spoil_the_next(void)
{
    struct folder folder = folder_new();
    const char *folders[] = {folder.path};
    struct loader *loader = loader_new(folders, 1);
    const struct plugin_file *file = NULL;
    struct sg_error err = {0};
    plugin_put(&folder, "no_kind");
    plugin_put(&folder, "good");
    CU_ASSERT_EQUAL(loader_load(loader, "no_kind", &file, &err), SG_E_CONFIG);
    CU_ASSERT_EQUAL(loader_load(loader, "good", &file, &err), 0);
    CU_ASSERT_EQUAL(loader_load(loader, "no_kind", &file, &err), SG_E_CONFIG); /* still */
    loader_free(loader);
    folder_remove(&folder);
}

static const struct test tests[] = {
    TEST(a_plugin_is_named_by_a_plain_word),
    TEST(a_missing_plugin_names_the_folders_and_the_nearest),
    TEST(folders_are_searched_in_order),
    TEST(the_installed_folder_stands_beside_the_program),
    TEST(what_others_may_write_is_not_loaded),
    TEST(what_another_user_owns_is_not_loaded),
    TEST(a_symbolic_link_is_judged_by_what_it_leads_to),
    TEST(a_file_that_is_no_shared_object_is_told_so),
    TEST(a_file_that_was_cut_short_ends_in_a_message),
    TEST(folders_and_pipes_are_no_plugins),
    TEST(each_mistake_in_a_plugin_has_its_message),
    TEST(a_schema_that_is_no_json_says_where),
    TEST(a_symbol_that_nobody_has_is_named),
    TEST(a_wrong_plugin_does_not_spoil_the_next),
};

int main(int argc, char **argv)
{
    return run_tests("load", tests, COUNT_OF(tests), argc, argv);
}
