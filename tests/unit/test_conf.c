/* core/conf: YAML to a tree. The whole text of the problems is compared, so that each message, its place and its order are
 * held; a text that is right comes out as the tree it means. */
#include "base/check.h"
#include "conf/conf.h"
#include "cunit_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct arena *arena; /* as long as the program */

static const struct conf_node *parse_str(struct str text, char *ret_problems, size_t size)
{
    struct conf_problems problems = {0};
    const struct conf_node *root = conf_parse_text("c.yaml", text, arena, &problems);
    (void)snprintf(ret_problems, size, "%s", problems.count > 0 ? problems.text.data : "");
    conf_problems_clear(&problems);
    return root;
}

#define EXPECT_PROBLEMS(yaml, expected)                                  \
    do {                                                                 \
        char problems_[8192];                                            \
        (void)parse_str(str_of(yaml), problems_, sizeof problems_);      \
        CU_ASSERT_STRING_EQUAL(problems_, expected);                     \
        if (strcmp(problems_, expected) != 0) {                          \
            fprintf(stderr, "line %d: got:\n%s\n", __LINE__, problems_); \
        }                                                                \
    } while (0)

static const struct conf_node *parse(const char *yaml)
{
    char problems[1024];
    const struct conf_node *root = parse_str(str_of(yaml), problems, sizeof problems);
    CU_ASSERT_STRING_EQUAL(problems, "");
    CU_ASSERT_PTR_NOT_NULL_FATAL(root);
    return root;
}

static void every_node_keeps_its_line_and_column(void)
{
    const struct conf_node *root = parse("# first\n"
                                         "server:\n"
                                         "  listen: 127.0.0.1:4000\n"
                                         "äö: [a, {b: \"c\"}]\n");
    CU_ASSERT_EQUAL(root->type, CONF_MAP);
    CU_ASSERT_EQUAL(root->count, 2);
    const struct conf_node *listen = conf_get(conf_get(root, "server"), "listen");
    CU_ASSERT_STRING_EQUAL(listen->text, "127.0.0.1:4000");
    CU_ASSERT_FALSE(listen->quoted);
    CU_ASSERT_EQUAL(listen->line, 3);
    CU_ASSERT_EQUAL(listen->column, 11);
    const struct conf_node *list = conf_get(root, "äö");
    CU_ASSERT_EQUAL(list->type, CONF_LIST);
    CU_ASSERT_EQUAL(list->line, 4);
    CU_ASSERT_EQUAL(list->column, 5); /* characters, not bytes */
    const struct conf_node *quoted = conf_get(list->items[1], "b");
    CU_ASSERT_STRING_EQUAL(quoted->text, "c");
    CU_ASSERT_TRUE(quoted->quoted);
    CU_ASSERT_EQUAL(quoted->column, 13);
    CU_ASSERT_EQUAL(root->keys[1]->line, 4);
    CU_ASSERT_EQUAL(root->keys[1]->column, 1);
}

static void nothing_at_all_is_an_empty_map(void)
{
    static const char *const empty[] = {"", "\n\n", "# only a comment\n", "---\n", "~\n", "{}"};
    for (size_t i = 0; i < COUNT_OF(empty); i++) {
        const struct conf_node *root = parse(empty[i]);
        CU_ASSERT_EQUAL(root->type, CONF_MAP);
        CU_ASSERT_EQUAL(root->count, 0);
    }
    char problems[64];
    CU_ASSERT_PTR_NOT_NULL(parse_str((struct str){NULL, 0}, problems, sizeof problems));
}

static void null_is_absent_and_a_quoted_null_is_text(void)
{
    const struct conf_node *root =
        parse("a:\nb: ~\nc: null\nd: NULL\ne: \"\"\nf: 'null'\ng: nil\nh: []\n");
    CU_ASSERT_TRUE(conf_is_absent(conf_get(root, "a")));
    CU_ASSERT_TRUE(conf_is_absent(conf_get(root, "b")));
    CU_ASSERT_TRUE(conf_is_absent(conf_get(root, "c")));
    CU_ASSERT_TRUE(conf_is_absent(conf_get(root, "d")));
    CU_ASSERT_FALSE(conf_is_absent(conf_get(root, "e")));
    CU_ASSERT_FALSE(conf_is_absent(conf_get(root, "f")));
    CU_ASSERT_FALSE(conf_is_absent(conf_get(root, "g")));
    CU_ASSERT_FALSE(conf_is_absent(conf_get(root, "h")));
    CU_ASSERT_TRUE(conf_is_absent(conf_get(root, "zzz")));
}

static void getting_from_what_is_no_map_gives_nothing(void)
{
    const struct conf_node *root = parse("a: [b]\n");
    CU_ASSERT_PTR_NULL(conf_get(NULL, "a"));
    CU_ASSERT_PTR_NULL(conf_get(conf_get(root, "a"), "b"));
    CU_ASSERT_PTR_EQUAL(conf_at(root, "a"), conf_get(root, "a"));
    CU_ASSERT_PTR_EQUAL(conf_at(root, "b"), root);
}

static void a_root_that_is_no_map_is_refused(void)
{
    EXPECT_PROBLEMS("- a\n", "c.yaml:1:1: must be a map of keys and values, not a list\n");
    EXPECT_PROBLEMS("sk-secret\n", "c.yaml:1:1: must be a map of keys and values, not text\n");
}

static void what_yaml_has_and_a_configuration_needs_not_is_refused_by_name(void)
{
    EXPECT_PROBLEMS("a: &x 1\n",
                    "c.yaml:1:4: anchors ('&x') are not supported; write the value out\n");
    EXPECT_PROBLEMS("a: !!str 1\nb: !own {}\nc: !l []\n",
                    "c.yaml:1:4: tags ('tag:yaml.org,2002:str') are not supported; write the value "
                    "alone\n"
                    "c.yaml:2:4: tags ('!own') are not supported; write the value alone\n"
                    "c.yaml:3:4: tags ('!l') are not supported; write the value alone\n");
    EXPECT_PROBLEMS("a: &x {b: c}\nd:\n  <<: *x\n",
                    "c.yaml:1:4: anchors ('&x') are not supported; write the value out\n"
                    "c.yaml:3:7: aliases ('*x') are not supported; write the value out\n"
                    "c.yaml:3:3: merge keys ('<<') are not supported; write the keys out\n");
    EXPECT_PROBLEMS("a: 1\n---\nb: 2\n",
                    "c.yaml:2:1: a second document starts here; a file holds one\n");
    EXPECT_PROBLEMS("? [a]\n: b\n? {c: d}\n: e\n",
                    "c.yaml:1:3: a key must be a plain name, not a list\n"
                    "c.yaml:3:3: a key must be a plain name, not a map\n");
    EXPECT_PROBLEMS("\"\": b\n", "c.yaml:1:1: a key is empty; a name must stand before ':'\n");
    EXPECT_PROBLEMS("a: \"b\\0c\"\n", "c.yaml:1:4: a text may not hold a NUL character ('\\0')\n");
}

static void a_document_may_be_marked(void)
{
    const struct conf_node *root = parse("%YAML 1.1\n---\na: 1\n...\n");
    CU_ASSERT_STRING_EQUAL(conf_get(root, "a")->text, "1");
    root = parse("\xEF\xBB\xBF"
                 "a: 1\n");
    CU_ASSERT_STRING_EQUAL(conf_get(root, "a")->text, "1");
}

static void duplicate_keys_are_problems_and_the_first_stands(void)
{
    EXPECT_PROBLEMS("a: 1\nb: 2\na: 3\n'a': 4\n",
                    "c.yaml:3:1: duplicate key 'a'; it stands at line 1 already\n"
                    "c.yaml:4:1: duplicate key 'a'; it stands at line 1 already\n");
    EXPECT_PROBLEMS("x: { a: 1, A: 2 }\n", "");
    char problems[256];
    const struct conf_node *root = parse_str(STR("a: 1\na: 2\n"), problems, sizeof problems);
    CU_ASSERT_STRING_EQUAL(conf_get(root, "a")->text, "1");
}

static void broken_yaml_is_told_with_its_place_and_advice(void)
{
    EXPECT_PROBLEMS("a: [1, 2\nb: 3\n",
                    "c.yaml:2:2: not valid YAML: did not find expected ',' or ']', while parsing a "
                    "flow sequence that starts at line 1\n");
    EXPECT_PROBLEMS(
        "a:\n\tb: 1\n",
        "c.yaml:2:1: not valid YAML: found character that cannot start any token, while "
        "scanning for the next token that starts at line 2; indentation must be "
        "spaces, not tabs\n");
    EXPECT_PROBLEMS(
        "a: { key: ${KEY} }\n",
        "c.yaml:1:12: not valid YAML: did not find expected ',' or '}', while parsing a "
        "flow mapping that starts at line 1; within { } and [ ] a ${NAME} must stand "
        "in quotes\n");
    EXPECT_PROBLEMS("a: \"b\n", "c.yaml:2:1: not valid YAML: found unexpected end of stream, while "
                                "scanning a quoted scalar that starts at line 1\n");
    EXPECT_PROBLEMS("ok: 1\na: \x01\n",
                    "c.yaml:2:4: not valid YAML: control characters are not allowed\n");
}

static void a_problem_before_broken_yaml_is_still_told(void)
{
    EXPECT_PROBLEMS("a: &x 1\nb: [\n",
                    "c.yaml:1:4: anchors ('&x') are not supported; write the value out\n"
                    "c.yaml:3:1: not valid YAML: did not find expected node content, while parsing "
                    "a flow node that starts at line 3\n");
}

static void only_utf8_is_read(void)
{
    EXPECT_PROBLEMS("a: ä\nb: \xE4\n", "c.yaml:2:4: not UTF-8 text; save the file as UTF-8\n");
    EXPECT_PROBLEMS("\xFF\xFE"
                    "a",
                    "c.yaml:1:1: not UTF-8 text; save the file as UTF-8\n");
    char problems[256];
    CU_ASSERT_PTR_NULL(parse_str(STR("a: b\0c\n"), problems, sizeof problems));
    CU_ASSERT_STRING_EQUAL(problems,
                           "c.yaml:1:5: not valid YAML: control characters are not allowed\n");
}

static char *nested(size_t depth)
{
    char *text = arena_alloc(arena, 4 + 2 * depth + 1);
    memcpy(text, "a: ", 3);
    memset(text + 3, '[', depth);
    memset(text + 3 + depth, ']', depth);
    return text;
}

static void nesting_ends_at_its_limit(void)
{
    EXPECT_PROBLEMS(nested(CONF_DEPTH_MAX - 1), ""); /* the map itself is one level */
    EXPECT_PROBLEMS(nested(CONF_DEPTH_MAX),
                    "c.yaml:1:35: lists and maps are nested deeper than 32 levels\n");
    EXPECT_PROBLEMS(nested(5000), "c.yaml:1:35: lists and maps are nested deeper than 32 levels\n");
}

static void a_file_ends_at_one_mebibyte(void)
{
    char problems[256];
    char *text = arena_alloc(arena, CONF_BYTES_MAX + 2);
    memset(text, '#', CONF_BYTES_MAX + 1);
    CU_ASSERT_PTR_NOT_NULL(
        parse_str((struct str){text, CONF_BYTES_MAX}, problems, sizeof problems));
    CU_ASSERT_STRING_EQUAL(problems, "");
    CU_ASSERT_PTR_NULL(
        parse_str((struct str){text, CONF_BYTES_MAX + 1}, problems, sizeof problems));
    CU_ASSERT_STRING_EQUAL(problems,
                           "c.yaml: is larger than 1 MiB; a configuration must be smaller\n");
}

static void many_problems_end_with_a_word_on_the_rest(void)
{
    BUF_CLEANUP struct buf text = {0};
    for (size_t i = 0; i < 3 * CONF_PROBLEMS_MAX; i++) {
        buf_printf(&text, "k%zu: &a 1\n", i);
    }
    struct conf_problems problems = {0};
    CU_ASSERT_PTR_NOT_NULL(conf_parse_text("c.yaml", buf_str(&text), arena, &problems));
    CU_ASSERT_EQUAL(problems.count, 3 * CONF_PROBLEMS_MAX);
    CU_ASSERT_PTR_NOT_NULL(strstr(problems.text.data, "c.yaml:100:6: anchors"));
    CU_ASSERT_PTR_NULL(strstr(problems.text.data, "c.yaml:101:"));
    CU_ASSERT_PTR_NOT_NULL(
        strstr(problems.text.data, "\nc.yaml: more than 100 problems; the rest is not shown\n"));
    conf_problems_clear(&problems);
    CU_ASSERT_EQUAL(problems.count, 0);
}

static void a_problem_is_always_one_line(void)
{
    struct conf_problems problems = {.file = "a\nb.yaml"};
    struct conf_node at = {.line = 3, .column = 4};
    conf_problem(&problems, &at, "x\n\x1b[31m%s", "\xC2\x9B\x7F\xC3\xA4\xFF");
    CU_ASSERT_STRING_EQUAL(problems.text.data,
                           "a\\x0ab.yaml:3:4: x\\x0a\\x1b[31m\\xc2\\x9b\\x7fä\\xff\n");
    conf_problems_clear(&problems);
    conf_problem(&problems, NULL, "y");
    CU_ASSERT_STRING_EQUAL(problems.text.data, "a\\x0ab.yaml: y\n");
    conf_problems_clear(&problems);
}

static void files_are_read_and_missing_ones_told(void)
{
    char path[] = BUILD_DIR "/tests/conf_XXXXXX";
    int fd = mkstemp(path);
    CU_ASSERT_TRUE_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(write(fd, "a: b\n", 5), 5);
    struct conf_problems problems = {0};
    const struct conf_node *root = conf_parse_file(path, arena, &problems);
    CU_ASSERT_PTR_NOT_NULL_FATAL(root);
    CU_ASSERT_STRING_EQUAL(conf_get(root, "a")->text, "b");
    CU_ASSERT_EQUAL(ftruncate(fd, (off_t)CONF_BYTES_MAX + 1), 0);
    CU_ASSERT_PTR_NULL(conf_parse_file(path, arena, &problems));
    CU_ASSERT_PTR_NOT_NULL(strstr(problems.text.data, ": is larger than 1 MiB;"));
    conf_problems_clear(&problems);
    close(fd);
    unlink(path);
    CU_ASSERT_PTR_NULL(conf_parse_file("/nowhere/c.yaml", arena, &problems));
    CU_ASSERT_STRING_EQUAL(problems.text.data,
                           "/nowhere/c.yaml: cannot be opened: No such file or directory\n");
    conf_problems_clear(&problems);
    CU_ASSERT_PTR_NULL(conf_parse_file("/", arena, &problems));
    CU_ASSERT_STRING_EQUAL(problems.text.data, "/: cannot be read: Is a directory\n");
    conf_problems_clear(&problems);
}

static void large_maps_cost_no_square(void)
{
    BUF_CLEANUP struct buf text = {0};
    for (size_t i = 0; i < 60000; i++) {
        buf_printf(&text, "k%zu: 1\n", i);
    }
    const struct conf_node *root = parse(text.data);
    CU_ASSERT_EQUAL(root->count, 60000);
    CU_ASSERT_STRING_EQUAL(root->keys[59999]->text, "k59999");
    CU_ASSERT_EQUAL(root->items[59999]->line, 60000);
}

static const struct test tests[] = {
    TEST(every_node_keeps_its_line_and_column),
    TEST(nothing_at_all_is_an_empty_map),
    TEST(null_is_absent_and_a_quoted_null_is_text),
    TEST(getting_from_what_is_no_map_gives_nothing),
    TEST(a_root_that_is_no_map_is_refused),
    TEST(what_yaml_has_and_a_configuration_needs_not_is_refused_by_name),
    TEST(a_document_may_be_marked),
    TEST(duplicate_keys_are_problems_and_the_first_stands),
    TEST(broken_yaml_is_told_with_its_place_and_advice),
    TEST(a_problem_before_broken_yaml_is_still_told),
    TEST(only_utf8_is_read),
    TEST(nesting_ends_at_its_limit),
    TEST(a_file_ends_at_one_mebibyte),
    TEST(many_problems_end_with_a_word_on_the_rest),
    TEST(a_problem_is_always_one_line),
    TEST(files_are_read_and_missing_ones_told),
    TEST(large_maps_cost_no_square),
};

int main(int argc, char **argv)
{
    arena = arena_new(0);
    int code = run_tests("conf", tests, COUNT_OF(tests), argc, argv);
    arena_free(arena);
    return code;
}
