/* core/conf: options filled by a table. Each message is compared whole; secrets and values of the environment are searched
 * for in everything that was said. */
#include "base/check.h"
#include "base/log.h"
#include "conf/conf.h"
#include "cunit_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct rule {
    const char *when;
    int64_t delay_ms;
    struct sg_list steps;
};

struct step {
    const char *say;
};

struct config {
    const char *text, *key, *mode;
    bool enabled;
    int64_t count, timeout_ms;
    uint64_t memory;
    const char *const *names;
    const char *const *sources;
    struct sg_map headers;
    struct sg_list rules;
};

static const struct sg_option step_fields[] = {
    {"say", SG_STRING, SG_REQUIRED, SG_FIELD(struct step, say), .help = "h"},
    {0},
};

static const struct sg_option rule_fields[] = {
    {"when", SG_STRING, SG_REQUIRED, SG_FIELD(struct rule, when), .help = "h"},
    {"delay", SG_DURATION, 0, SG_FIELD(struct rule, delay_ms), .def = "10ms", .max = "1m",
     .help = "h"},
    {"steps", SG_LIST, 0, SG_FIELD(struct rule, steps), .help = "h", .fields = step_fields,
     .fields_size = sizeof(struct step)},
    {0},
};

static const struct sg_option table[] = {
    {"text", SG_STRING, 0, SG_FIELD(struct config, text), .def = "plain", .help = "h"},
    {"api_key", SG_STRING, SG_SECRET, SG_FIELD(struct config, key), .help = "h"},
    {"mode", SG_CHOICE, 0, SG_FIELD(struct config, mode), .def = "fast", .choices = "fast|slow",
     .help = "h"},
    {"enabled", SG_BOOL, 0, SG_FIELD(struct config, enabled), .def = "true", .help = "h"},
    {"count", SG_INT, 0, SG_FIELD(struct config, count), .def = "3", .min = "1", .max = "10",
     .help = "h"},
    {"timeout", SG_DURATION, 0, SG_FIELD(struct config, timeout_ms), .def = "30s", .min = "1s",
     .max = "1h", .help = "h"},
    {"wait", SG_DURATION, SG_DEPRECATED, SG_FIELD(struct config, timeout_ms),
     .help = "Use timeout."},
    {"memory", SG_SIZE, 0, SG_FIELD(struct config, memory), .def = "512MiB", .min = "1MiB",
     .max = "2GiB", .help = "h"},
    {"names", SG_STRINGS, 0, SG_FIELD(struct config, names), .help = "h"},
    {"sources", SG_STRINGS, 0, SG_FIELD(struct config, sources), .def = "[a.b, c]", .help = "h"},
    {"headers", SG_MAP, 0, SG_FIELD(struct config, headers), .help = "h"},
    {"rules", SG_LIST, 0, SG_FIELD(struct config, rules), .help = "h", .fields = rule_fields,
     .fields_size = sizeof(struct rule)},
    {0},
};

static const char *const reserved[] = {"name", "plugin", NULL};

static struct arena *arena; /* as long as the program */
static char said[8192];     /* by the last fill() */

static struct config fill_by(const struct sg_option *options, const char *yaml)
{
    struct config config = {0};
    struct conf_problems problems = {0};
    const struct conf_node *root = conf_parse_text("c.yaml", str_of(yaml), arena, &problems);
    CU_ASSERT_EQUAL(problems.count, 0);
    size_t count = conf_fill(options, root, root, reserved, "e2b", &config, arena, &problems);
    CU_ASSERT_EQUAL(count, problems.count);
    (void)snprintf(said, sizeof said, "%s", problems.count > 0 ? problems.text.data : "");
    conf_problems_clear(&problems);
    return config;
}

static struct config fill(const char *yaml)
{
    return fill_by(table, yaml);
}

#define EXPECT_SAID(expected)                                        \
    do {                                                             \
        CU_ASSERT_STRING_EQUAL(said, expected);                      \
        if (strcmp(said, expected) != 0) {                           \
            fprintf(stderr, "line %d: said:\n%s\n", __LINE__, said); \
        }                                                            \
    } while (0)

static void what_is_not_written_has_its_default(void)
{
    struct config config = fill("name: x\ntext:\nmode: ~\n");
    EXPECT_SAID("");
    CU_ASSERT_STRING_EQUAL(config.text, "plain");
    CU_ASSERT_PTR_NULL(config.key);
    CU_ASSERT_STRING_EQUAL(config.mode, "fast");
    CU_ASSERT_TRUE(config.enabled);
    CU_ASSERT_EQUAL(config.count, 3);
    CU_ASSERT_EQUAL(config.timeout_ms, 30000);
    CU_ASSERT_EQUAL(config.memory, 512u << 20);
    CU_ASSERT_PTR_NOT_NULL_FATAL(config.names);
    CU_ASSERT_PTR_NULL(config.names[0]);
    CU_ASSERT_STRING_EQUAL(config.sources[0], "a.b");
    CU_ASSERT_STRING_EQUAL(config.sources[1], "c");
    CU_ASSERT_PTR_NULL(config.sources[2]);
    CU_ASSERT_EQUAL(config.headers.count, 0);
    CU_ASSERT_EQUAL(config.rules.count, 0);
}

static void every_type_is_filled(void)
{
    struct config config = fill("name: x\n"
                                "text: 007\n"
                                "api_key: 'null'\n"
                                "mode: slow\n"
                                "enabled: Off\n"
                                "count: +10\n"
                                "timeout: \"1h\"\n"
                                "memory: 1MiB\n"
                                "names: [a, \"\", '~']\n"
                                "sources: one\n"
                                "headers: { x-a: 1, x-b: \"\" }\n"
                                "rules:\n"
                                "  - { when: a }\n"
                                "  - when: b\n"
                                "    delay: 1m\n"
                                "    steps: [{ say: hi }, { say: \"\\n\" }]\n");
    EXPECT_SAID("");
    CU_ASSERT_STRING_EQUAL(config.text, "007");
    CU_ASSERT_STRING_EQUAL(config.key, "null");
    CU_ASSERT_STRING_EQUAL(config.mode, "slow");
    CU_ASSERT_FALSE(config.enabled);
    CU_ASSERT_EQUAL(config.count, 10);
    CU_ASSERT_EQUAL(config.timeout_ms, 3600000);
    CU_ASSERT_EQUAL(config.memory, 1048576);
    CU_ASSERT_STRING_EQUAL(config.names[0], "a");
    CU_ASSERT_STRING_EQUAL(config.names[1], "");
    CU_ASSERT_STRING_EQUAL(config.names[2], "~");
    CU_ASSERT_PTR_NULL(config.names[3]);
    CU_ASSERT_STRING_EQUAL(config.sources[0], "one");
    CU_ASSERT_PTR_NULL(config.sources[1]);
    CU_ASSERT_EQUAL(config.headers.count, 2);
    CU_ASSERT_STRING_EQUAL(config.headers.keys[1], "x-b");
    CU_ASSERT_STRING_EQUAL(config.headers.values[0], "1");
    CU_ASSERT_EQUAL_FATAL(config.rules.count, 2);
    const struct rule *rules = config.rules.items;
    CU_ASSERT_STRING_EQUAL(rules[0].when, "a");
    CU_ASSERT_EQUAL(rules[0].delay_ms, 10);
    CU_ASSERT_EQUAL(rules[0].steps.count, 0);
    CU_ASSERT_STRING_EQUAL(rules[1].when, "b");
    CU_ASSERT_EQUAL(rules[1].delay_ms, 60000);
    CU_ASSERT_EQUAL_FATAL(rules[1].steps.count, 2);
    CU_ASSERT_STRING_EQUAL(((const struct step *)rules[1].steps.items)[1].say, "\n");
}

static void all_problems_are_told_in_one_run_in_file_order(void)
{
    (void)fill("tiemout: 5s\n"
               "timeout: 5\n"
               "rules:\n"
               "  - { delay: 2m, whn: x }\n"
               "  - { when: y, steps: [{ say: 1 }, { sya: 2 }] }\n"
               "count: 11\n");
    EXPECT_SAID("c.yaml:1:1: e2b: unknown key 'tiemout'; did you mean 'timeout'?\n"
                "c.yaml:2:10: e2b: 'timeout' must be a duration such as 30s, not '5'; its unit is "
                "missing, as in 5s\n"
                "c.yaml:4:14: e2b: 'rules[0].delay' must be at most 1m, not '2m'\n"
                "c.yaml:4:18: e2b: unknown key 'rules[0].whn'; did you mean 'when'?\n"
                "c.yaml:4:5: e2b: 'rules[0].when' is required: text\n"
                "c.yaml:5:38: e2b: unknown key 'rules[1].steps[1].sya'; did you mean 'say'?\n"
                "c.yaml:5:36: e2b: 'rules[1].steps[1].say' is required: text\n"
                "c.yaml:6:8: e2b: 'count' must be at most 10, not '11'\n");
}

static void each_type_says_what_would_be_right(void)
{
    static const struct {
        const char *yaml, *said;
    } cases[] = {
        {"text: [a]\n", "c.yaml:1:7: e2b: 'text' must be text, not a list\n"},
        {"text: {a: b}\n", "c.yaml:1:7: e2b: 'text' must be text, not a map\n"},
        {"enabled: maybe\n", "c.yaml:1:10: e2b: 'enabled' must be true or false, not 'maybe'\n"},
        {"enabled: 1\n", "c.yaml:1:10: e2b: 'enabled' must be true or false, not '1'\n"},
        {"enabled: \"yes\"\n", "c.yaml:1:10: e2b: 'enabled' must be true or false, not the quoted "
                               "text 'yes'; leave the quotes off\n"},
        {"enabled: []\n", "c.yaml:1:10: e2b: 'enabled' must be true or false, not a list\n"},
        {"count: five\n", "c.yaml:1:8: e2b: 'count' must be a whole number, not 'five'\n"},
        {"count: 1.0\n", "c.yaml:1:8: e2b: 'count' must be a whole number, not '1.0'\n"},
        {"count: '5'\n", "c.yaml:1:8: e2b: 'count' must be a whole number, not the quoted text "
                         "'5'; leave the quotes off\n"},
        {"count: 0\n", "c.yaml:1:8: e2b: 'count' must be at least 1, not '0'\n"},
        {"count: -9223372036854775809\n",
         "c.yaml:1:8: e2b: 'count' must be between -9223372036854775808 and 9223372036854775807, "
         "not '-9223372036854775809'\n"},
        {"timeout: 999ms\n", "c.yaml:1:10: e2b: 'timeout' must be at least 1s, not '999ms'\n"},
        {"timeout: 61m\n", "c.yaml:1:10: e2b: 'timeout' must be at most 1h, not '61m'\n"},
        {"timeout: -1s\n",
         "c.yaml:1:10: e2b: 'timeout' must be a duration such as 30s, not '-1s'\n"},
        {"memory: 512MB\n",
         "c.yaml:1:9: e2b: 'memory' must be a size such as 64MiB, not '512MB'; write 512MiB\n"},
        {"memory: 512\n", "c.yaml:1:9: e2b: 'memory' must be a size such as 64MiB, not '512'; its "
                          "unit is missing, as in 512MiB\n"},
        {"memory: 5 g\n",
         "c.yaml:1:9: e2b: 'memory' must be a size such as 64MiB, not '5 g'; write 5GiB\n"},
        {"memory: 5xb\n", "c.yaml:1:9: e2b: 'memory' must be a size such as 64MiB, not '5xb'\n"},
        {"timeout: 5\n", "c.yaml:1:10: e2b: 'timeout' must be a duration such as 30s, not '5'; its "
                         "unit is missing, as in 5s\n"},
        {"timeout: 2 min\n",
         "c.yaml:1:10: e2b: 'timeout' must be a duration such as 30s, not '2 min'; write 2m\n"},
        {"timeout: 90 Seconds\n",
         "c.yaml:1:10: e2b: 'timeout' must be a duration such as 30s, not '90 Seconds'; write "
         "90s\n"},
        {"timeout: 1.5h\n",
         "c.yaml:1:10: e2b: 'timeout' must be a duration such as 30s, not '1.5h'\n"},
        {"memory: 1023KiB\n", "c.yaml:1:9: e2b: 'memory' must be at least 1MiB, not '1023KiB'\n"},
        {"memory: 3GiB\n", "c.yaml:1:9: e2b: 'memory' must be at most 2GiB, not '3GiB'\n"},
        {"memory: 16777215TiB\n",
         "c.yaml:1:9: e2b: 'memory' must be a size such as 64MiB, not '16777215TiB'\n"},
        {"mode: fsat\n",
         "c.yaml:1:7: e2b: 'mode' must be one of fast, slow, not 'fsat'; did you mean 'fast'?\n"},
        {"mode: other\n", "c.yaml:1:7: e2b: 'mode' must be one of fast, slow, not 'other'\n"},
        {"mode: {}\n", "c.yaml:1:7: e2b: 'mode' must be one of its choices, not a map\n"},
        {"names: {a: b}\n", "c.yaml:1:8: e2b: 'names' must be a list of texts, not a map\n"},
        {"names: [a, [b], ~]\n", "c.yaml:1:12: e2b: 'names[1]' must be text, not a list\n"
                                 "c.yaml:1:17: e2b: 'names[2]' has no value; write \"\" for an "
                                 "empty text\n"},
        {"headers: [a]\n",
         "c.yaml:1:10: e2b: 'headers' must be a map of names to texts, not a list\n"},
        {"headers: { a: , b: [] }\n",
         "c.yaml:1:15: e2b: 'headers.a' has no value; write \"\" for an empty text\n"
         "c.yaml:1:20: e2b: 'headers.b' must be text, not a list\n"},
        {"rules: { when: a }\n", "c.yaml:1:8: e2b: 'rules' must be a list of maps, not a map\n"},
        {"rules: a\n", "c.yaml:1:8: e2b: 'rules' must be a list of maps, not text\n"},
        {"rules: [a, ~, [b]]\n", "c.yaml:1:9: e2b: 'rules[0]' must be a map, not text\n"
                                 "c.yaml:1:12: e2b: 'rules[1]' must be a map, not empty\n"
                                 "c.yaml:1:15: e2b: 'rules[2]' must be a map, not a list\n"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        (void)fill(cases[i].yaml);
        EXPECT_SAID(cases[i].said);
    }
}

static void values_at_their_bounds_are_taken(void)
{
    struct config config = fill("count: 1\ntimeout: 1000ms\nmemory: 2GiB\n");
    EXPECT_SAID("");
    CU_ASSERT_EQUAL(config.count, 1);
    CU_ASSERT_EQUAL(config.timeout_ms, 1000);
    CU_ASSERT_EQUAL(config.memory, (uint64_t)2 << 30);
    config = fill("count: 10\ntimeout: 60m\nmemory: 1024KiB\n");
    EXPECT_SAID("");
    CU_ASSERT_EQUAL(config.count, 10);
    CU_ASSERT_EQUAL(config.timeout_ms, 3600000);
    CU_ASSERT_EQUAL(config.memory, 1 << 20);
}

static void a_refused_value_leaves_the_default(void)
{
    struct config config = fill("count: 99\nmemory: lots\nmode: x\nenabled: x\n");
    CU_ASSERT_EQUAL(config.count, 3);
    CU_ASSERT_EQUAL(config.memory, 512u << 20);
    CU_ASSERT_STRING_EQUAL(config.mode, "fast");
    CU_ASSERT_TRUE(config.enabled);
}

static void unknown_keys_name_the_nearest_or_the_few_there_are(void)
{
    (void)fill("nmae: x\n");
    EXPECT_SAID("c.yaml:1:1: e2b: unknown key 'nmae'; did you mean 'name'?\n");
    (void)fill("wiat: 1s\n"); /* deprecated ones are not proposed; there are too many to list */
    EXPECT_SAID("c.yaml:1:1: e2b: unknown key 'wiat'\n");
    (void)fill_by(NULL, "other: x\n");
    EXPECT_SAID("c.yaml:1:1: e2b: unknown key 'other'; known are name, plugin\n");
}

static void a_missing_space_shows_no_secret(void)
{
    (void)fill("{ api_key:sk-hidden, name: x }\n");
    EXPECT_SAID("c.yaml:1:3: e2b: unknown key 'api_key:…' (is a space missing after ':'?)\n");
    (void)fill("{ api_key=sk-hidden, name: x }\n");
    EXPECT_SAID("c.yaml:1:3: e2b: unknown key 'api_key=…'; did you mean 'api_key'?\n");
    (void)fill("headers: { authorization:sk-hidden }\n");
    EXPECT_SAID("c.yaml:1:36: e2b: 'headers.authorization:…' has no value; write \"\" for an empty "
                "text\n");
}

static void required_ones_are_asked_for_where_they_belong(void)
{
    static const struct sg_option needy[] = {
        {"text", SG_STRING, SG_REQUIRED, SG_FIELD(struct config, text), .help = "h"},
        {"mode", SG_CHOICE, SG_REQUIRED, SG_FIELD(struct config, mode), .choices = "fast|slow",
         .help = "h"},
        {"names", SG_STRINGS, SG_REQUIRED, SG_FIELD(struct config, names), .help = "h"},
        {"rules", SG_LIST, SG_REQUIRED, SG_FIELD(struct config, rules), .help = "h",
         .fields = rule_fields, .fields_size = sizeof(struct rule)},
        {0},
    };
    (void)fill_by(needy, "name: x\nmode:\n");
    EXPECT_SAID("c.yaml:1:1: e2b: 'text' is required: text\n"
                "c.yaml:2:6: e2b: 'mode' is required: fast|slow\n"
                "c.yaml:1:1: e2b: 'names' is required: a list of texts\n"
                "c.yaml:1:1: e2b: 'rules' is required: a list of maps\n");
    setenv("CONF_EMPTY", "", 1);
    (void)fill_by(needy, "text: ''\nmode: fast\nnames: []\nrules: []\n");
    EXPECT_SAID("c.yaml:1:7: e2b: 'text' must not be empty\n"
                "c.yaml:3:8: e2b: 'names' must not be empty\n"
                "c.yaml:4:8: e2b: 'rules' must not be empty\n");
    (void)fill_by(needy, "text: ${CONF_EMPTY}\nmode: fast\nnames: a\nrules: [{when: a}]\n");
    EXPECT_SAID("c.yaml:1:7: e2b: 'text' must not be empty, and '${CONF_EMPTY}' is\n");
}

static void a_map_that_is_absent_or_none_at_all(void)
{
    static const struct sg_option needy[] = {
        {"text", SG_STRING, SG_REQUIRED, SG_FIELD(struct config, text), .help = "h"},
        {0},
    };
    struct conf_problems problems = {.file = "c.yaml"};
    struct conf_node at = {.type = CONF_MAP, .line = 7, .column = 3};
    struct config config = {0};
    CU_ASSERT_EQUAL(conf_fill(needy, NULL, &at, NULL, NULL, &config, arena, &problems), 1);
    CU_ASSERT_STRING_EQUAL(problems.text.data, "c.yaml:7:3: 'text' is required: text\n");
    conf_problems_clear(&problems);
    struct conf_node text = {.type = CONF_SCALAR, .line = 8, .column = 2, .text = "sk-hidden"};
    CU_ASSERT_EQUAL(conf_fill(needy, &text, &at, NULL, "loop", &config, arena, &problems), 1);
    CU_ASSERT_STRING_EQUAL(problems.text.data,
                           "c.yaml:8:2: loop: must be a map of keys and values, not text\n");
    conf_problems_clear(&problems);
}

static void the_environment_is_read_anywhere_in_a_scalar(void)
{
    setenv("CONF_ONE", "eins", 1);
    setenv("CONF_PORT", "7", 1);
    setenv("CONF_WORD", "null", 1);
    struct config config = fill("text: a-${CONF_ONE}-$${CONF_ONE}-$x-${CONF_ONE}\n"
                                "api_key: os.environ/CONF_ONE\n"
                                "count: \"${CONF_PORT}\"\n"
                                "names: [\"${CONF_WORD}\", x$, \"$$${CONF_ONE}\"]\n"
                                "headers: { a: \"os.environ/CONF_ONE\", b: a os.environ/X }\n");
    EXPECT_SAID("");
    CU_ASSERT_STRING_EQUAL(config.text, "a-eins-${CONF_ONE}-$x-eins");
    CU_ASSERT_STRING_EQUAL(config.key, "eins");
    CU_ASSERT_EQUAL(config.count, 7);
    CU_ASSERT_STRING_EQUAL(config.names[0], "null");
    CU_ASSERT_STRING_EQUAL(config.names[1], "x$");
    CU_ASSERT_STRING_EQUAL(config.names[2], "$${CONF_ONE}");
    CU_ASSERT_STRING_EQUAL(config.headers.values[0], "eins");
    CU_ASSERT_STRING_EQUAL(config.headers.values[1], "a os.environ/X");
}

static void an_unset_variable_is_named(void)
{
    unsetenv("CONF_UNSET");
    (void)fill(
        "text: a${CONF_UNSET}\napi_key: os.environ/CONF_UNSET\nnames: [a, \"${CONF_UNSET}\"]\n"
        "headers: { a: \"${CONF_UNSET}\" }\n");
    EXPECT_SAID(
        "c.yaml:1:7: e2b: 'text': the environment variable 'CONF_UNSET' is not set\n"
        "c.yaml:2:10: e2b: 'api_key': the environment variable 'CONF_UNSET' is not set\n"
        "c.yaml:3:12: e2b: 'names[1]': the environment variable 'CONF_UNSET' is not set\n"
        "c.yaml:4:15: e2b: 'headers.a': the environment variable 'CONF_UNSET' is not set\n");
}

static void a_misspelt_expansion_is_told_and_not_shown(void)
{
    static const char *const wrong[] = {"${}", "${1A}", "${A-b}", "${A", "x${"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        (void)fill(arena_printf(arena, "api_key: \"%s\"\n", wrong[i]));
        EXPECT_SAID("c.yaml:1:10: e2b: 'api_key': '${' must be followed by the name of an "
                    "environment variable and '}'; write $${ for the two characters themselves\n");
    }
    (void)fill("text: os.environ/a-b\n");
    EXPECT_SAID("c.yaml:1:7: e2b: 'text': 'os.environ/' must be followed by the name of an "
                "environment variable\n");
    setenv("CONF_BYTES", "\xFF", 1);
    (void)fill("text: ${CONF_BYTES}\n");
    EXPECT_SAID("c.yaml:1:7: e2b: 'text': the environment variable 'CONF_BYTES' does not hold "
                "UTF-8 text\n");
}

static void an_expansion_is_bounded(void)
{
    char *value = arena_alloc(arena, 100001);
    memset(value, 'v', 100000);
    setenv("CONF_LONG", value, 1);
    BUF_CLEANUP struct buf yaml = {0};
    buf_puts(&yaml, "text: ");
    for (int i = 0; i < 10; i++) {
        buf_puts(&yaml, "${CONF_LONG}");
    }
    struct config config = fill(yaml.data);
    EXPECT_SAID("");
    CU_ASSERT_EQUAL(strlen(config.text), 1000000);
    buf_puts(&yaml, "${CONF_LONG}");
    (void)fill(yaml.data);
    EXPECT_SAID("c.yaml:1:7: e2b: 'text': is longer than 1 MiB after the environment was put in\n");
    unsetenv("CONF_LONG");
}

static void values_of_the_environment_are_never_shown(void)
{
    setenv("CONF_SECRET", "sk-hidden", 1);
    (void)fill("enabled: ${CONF_SECRET}\ncount: ${CONF_SECRET}\ntimeout: ${CONF_SECRET}\n"
               "memory: ${CONF_SECRET}\nmode: os.environ/CONF_SECRET\n");
    EXPECT_SAID(
        "c.yaml:1:10: e2b: 'enabled' must be true or false, not what '${CONF_SECRET}' holds\n"
        "c.yaml:2:8: e2b: 'count' must be a whole number, not what '${CONF_SECRET}' holds\n"
        "c.yaml:3:10: e2b: 'timeout' must be a duration such as 30s, not what '${CONF_SECRET}' "
        "holds\n"
        "c.yaml:4:9: e2b: 'memory' must be a size such as 64MiB, not what '${CONF_SECRET}' holds\n"
        "c.yaml:5:7: e2b: 'mode' must be one of fast, slow, not what 'os.environ/CONF_SECRET' "
        "holds\n");
}

static void secrets_are_never_shown_whatever_their_type(void)
{
    static const struct sg_option secrets[] = {
        {"a", SG_STRING, SG_SECRET, SG_FIELD(struct config, text), .help = "h"},
        {"b", SG_CHOICE, SG_SECRET, SG_FIELD(struct config, mode), .choices = "sk-x|sk-y",
         .help = "h"},
        {"c", SG_BOOL, SG_SECRET, SG_FIELD(struct config, enabled), .help = "h"},
        {"d", SG_INT, SG_SECRET, SG_FIELD(struct config, count), .max = "5", .help = "h"},
        {"e", SG_DURATION, SG_SECRET, SG_FIELD(struct config, timeout_ms), .help = "h"},
        {"f", SG_SIZE, SG_SECRET, SG_FIELD(struct config, memory), .help = "h"},
        {"g", SG_STRINGS, SG_SECRET, SG_FIELD(struct config, names), .help = "h"},
        {"h", SG_MAP, SG_SECRET, SG_FIELD(struct config, headers), .help = "h"},
        {0},
    };
    (void)fill_by(secrets, "a: [sk-hidden]\nb: sk-hidden\nc: sk-hidden\nd: 77777\ne: sk-hidden\n"
                           "f: sk-hidden\ng: {sk-hidden: 1}\nh: sk-hidden\n");
    CU_ASSERT_PTR_NULL(strstr(said, "hidden"));
    CU_ASSERT_PTR_NULL(strstr(said, "7777"));
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "c.yaml:4:4: e2b: 'd' must be at most 5, not what is given "
                                        "(a secret, not shown)\n"));
    (void)fill_by(secrets, "c: 'sk-hidden'\nd: \"77777\"\ng: [[sk-hidden]]\nh: {k: [sk-hidden]}\n");
    CU_ASSERT_PTR_NULL(strstr(said, "hidden"));
    CU_ASSERT_PTR_NULL(strstr(said, "7777"));
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "c.yaml:1:4: e2b: 'c' must be true or false, not what is "
                                        "given (a secret, not shown); leave the quotes off\n"));
}

static void an_alias_is_told_once(void)
{
    struct config config = {0};
    struct conf_problems problems = {0};
    const struct conf_node *root = conf_parse_text(
        "c.yaml", STR("text: *a\nnames: [*a]\nrules: [*a]\nheaders: {<<: *a, k: *a}\ncount: *a\n"),
        arena, &problems);
    size_t before = problems.count;
    CU_ASSERT_EQUAL(before, 7);
    CU_ASSERT_EQUAL(conf_fill(table, root, root, NULL, NULL, &config, arena, &problems), 0);
    conf_problems_clear(&problems);
}

static void a_deprecated_option_works_and_is_logged(void)
{
    int ends[2];
    char text[1024] = {0};
    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    log_set_fd(ends[1]);
    struct config config = fill("name: x\nwait: 7s\n");
    log_set_fd(2);
    close(ends[1]);
    CU_ASSERT_TRUE(read(ends[0], text, sizeof text - 1) > 0);
    close(ends[0]);
    EXPECT_SAID("");
    CU_ASSERT_EQUAL(config.timeout_ms, 7000);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, " level=warn event=option_deprecated file=c.yaml line=2 "
                                        "where=e2b option=wait help=\"Use timeout.\"\n"));
}

static void a_list_ends_at_its_limit(void)
{
    BUF_CLEANUP struct buf yaml = {0};
    buf_puts(&yaml, "names: [a");
    for (size_t i = 1; i < CONF_ITEMS_MAX; i++) {
        buf_puts(&yaml, ",a");
    }
    struct config config = fill(arena_printf(arena, "%s]", yaml.data));
    EXPECT_SAID("");
    CU_ASSERT_STRING_EQUAL(config.names[CONF_ITEMS_MAX - 1], "a");
    CU_ASSERT_PTR_NULL(config.names[CONF_ITEMS_MAX]);
    (void)fill(arena_printf(arena, "%s,a]", yaml.data));
    EXPECT_SAID("c.yaml:1:8: e2b: 'names' has 10001 items; at most 10000 are taken\n");
}

static void one_value_is_filled_by_itself(void)
{
    static const struct sg_option offer = {
        .name = "offer", .type = SG_CHOICE, .def = "requested", .choices = "requested|always"};
    struct conf_problems problems = {0};
    const struct conf_node *root =
        conf_parse_text("c.yaml", STR("offer: alwys\nother: always\n"), arena, &problems);
    const char *word = NULL;
    CU_ASSERT_EQUAL(conf_fill_one(&offer, conf_get(root, "offer"), root, "interceptors[0]", &word,
                                  arena, &problems),
                    1);
    CU_ASSERT_STRING_EQUAL(problems.text.data,
                           "c.yaml:1:8: interceptors[0]: 'offer' must be one of requested, always, "
                           "not 'alwys'; did you mean 'always'?\n");
    CU_ASSERT_STRING_EQUAL(word, "requested");
    CU_ASSERT_EQUAL(
        conf_fill_one(&offer, conf_get(root, "other"), root, NULL, &word, arena, &problems), 0);
    CU_ASSERT_STRING_EQUAL(word, "always");
    CU_ASSERT_EQUAL(conf_fill_one(&offer, NULL, root, NULL, &word, arena, &problems), 0);
    CU_ASSERT_STRING_EQUAL(word, "requested");
    conf_problems_clear(&problems);
}

static const struct test tests[] = {
    TEST(what_is_not_written_has_its_default),
    TEST(every_type_is_filled),
    TEST(all_problems_are_told_in_one_run_in_file_order),
    TEST(each_type_says_what_would_be_right),
    TEST(values_at_their_bounds_are_taken),
    TEST(a_refused_value_leaves_the_default),
    TEST(unknown_keys_name_the_nearest_or_the_few_there_are),
    TEST(a_missing_space_shows_no_secret),
    TEST(required_ones_are_asked_for_where_they_belong),
    TEST(a_map_that_is_absent_or_none_at_all),
    TEST(the_environment_is_read_anywhere_in_a_scalar),
    TEST(an_unset_variable_is_named),
    TEST(a_misspelt_expansion_is_told_and_not_shown),
    TEST(an_expansion_is_bounded),
    TEST(values_of_the_environment_are_never_shown),
    TEST(secrets_are_never_shown_whatever_their_type),
    TEST(an_alias_is_told_once),
    TEST(a_deprecated_option_works_and_is_logged),
    TEST(a_list_ends_at_its_limit),
    TEST(one_value_is_filled_by_itself),
};

int main(int argc, char **argv)
{
    arena = arena_new(0);
    int code = run_tests("conf_fill", tests, COUNT_OF(tests), argc, argv);
    arena_free(arena);
    return code;
}
