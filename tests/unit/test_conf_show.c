/* core/conf: options as they are shown to who operates the gateway. Each text is compared whole, and secrets are looked for in it. */
#include "base/check.h"
#include "conf/conf.h"
#include "cunit_main.h"

#include <stdlib.h>

static const struct sg_option step_fields[] = {
    {.name = "say", .type = SG_STRING},
    {.name = "token", .type = SG_STRING, .flags = SG_SECRET},
    {0}};

static const struct sg_option table[] = {
    {.name = "text", .type = SG_STRING, .def = "plain"},
    {.name = "key", .type = SG_STRING, .flags = SG_SECRET},
    {.name = "enabled", .type = SG_BOOL, .def = "true"},
    {.name = "count", .type = SG_INT, .def = "3"},
    {.name = "timeout", .type = SG_DURATION, .def = "30s"},
    {.name = "old", .type = SG_STRING, .flags = SG_DEPRECATED},
    {.name = "names", .type = SG_STRINGS},
    {.name = "sources", .type = SG_STRINGS, .def = "[a.b, c]"},
    {.name = "tokens", .type = SG_STRINGS, .flags = SG_SECRET},
    {.name = "labels", .type = SG_MAP},
    {.name = "headers", .type = SG_MAP, .flags = SG_SECRET},
    {.name = "steps", .type = SG_LIST, .fields = step_fields},
    {0},
};

static void expect_shown(const struct sg_option *options, const char *yaml, const char *expected)
{
    struct arena *arena = arena_new(0);
    struct conf_problems problems = {0};
    BUF_CLEANUP struct buf out = {0};
    const struct conf_node *root = conf_parse_text("c.yaml", str_of(yaml), arena, &problems);
    CU_ASSERT_EQUAL_FATAL(problems.count, 0);
    buf_puts(&out, "{");
    conf_show_all(options, root, &out);
    buf_puts(&out, "}");
    CU_ASSERT_STRING_EQUAL(out.data, expected);
    if (strcmp(out.data, expected) != 0) {
        printf("\n%s\n", out.data);
    }
    CU_ASSERT_PTR_NULL(strstr(out.data, "sk-"));
    conf_problems_clear(&problems);
    arena_free(arena);
}

static void what_is_not_given_is_its_default(void)
{
    expect_shown(
        table, "key: ~\n",
        "{\"text\":\"plain\",\"key\":null,\"enabled\":true,\"count\":3,\"timeout\":\"30s\","
        "\"names\":[],\"sources\":[\"a.b\",\"c\"],\"tokens\":[],\"labels\":{},"
        "\"headers\":{},\"steps\":[]}");
    expect_shown(NULL, "text: x\n", "{}");
}

static void what_is_given_is_shown_by_its_type(void)
{
    expect_shown(table,
                 "text: \"a \\\"b\\\"\"\nenabled: off\ncount: -7\ntimeout: 5m\nold: x\n"
                 "names: one\nsources: [a, 'b c']\nlabels: { a: 1, b: two }\n"
                 "steps: [ { say: hello }, {} ]\n",
                 "{\"text\":\"a \\\"b\\\"\",\"key\":null,\"enabled\":false,\"count\":-7,"
                 "\"timeout\":\"5m\",\"old\":\"x\",\"names\":[\"one\"],\"sources\":[\"a\",\"b c\"],"
                 "\"tokens\":[],\"labels\":{\"a\":\"1\",\"b\":\"two\"},\"headers\":{},"
                 "\"steps\":[{\"say\":\"hello\",\"token\":null},{\"say\":null,\"token\":null}]}");
}

static void secrets_are_left_out_wherever_they_stand(void)
{
    static const struct sg_option some[] = {
        {.name = "key", .type = SG_STRING, .flags = SG_SECRET},
        {.name = "tokens", .type = SG_STRINGS, .flags = SG_SECRET},
        {.name = "headers", .type = SG_MAP, .flags = SG_SECRET},
        {.name = "steps", .type = SG_LIST, .fields = step_fields},
        {0}};
    expect_shown(some,
                 "key: sk-1\ntokens: [sk-2, sk-3]\nheaders: { api-key: sk-4, 'b:sk-5': sk-6 }\n"
                 "steps: [ { token: sk-7 } ]\n",
                 "{\"key\":\"***\",\"tokens\":\"***\",\"headers\":{\"api-key\":\"***\",\"b\":"
                 "\"***\"},\"steps\":[{\"say\":null,\"token\":\"***\"}]}");
    expect_shown(some, "key: \"\"\ntokens: sk-2\n",
                 "{\"key\":\"***\",\"tokens\":\"***\",\"headers\":{},\"steps\":[]}");
}

static void what_the_environment_holds_is_shown_as_it_is_written(void)
{
    static const struct sg_option some[] = {{.name = "text", .type = SG_STRING},
                                            {.name = "count", .type = SG_INT},
                                            {.name = "enabled", .type = SG_BOOL},
                                            {.name = "names", .type = SG_STRINGS},
                                            {0}};
    CU_ASSERT_EQUAL(setenv("SHOWN", "sk-of-the-environment", 1), 0);
    expect_shown(some,
                 "text: a-${SHOWN}\ncount: ${SHOWN}\nenabled: os.environ/SHOWN\n"
                 "names: [ '${SHOWN}', '$${x}' ]\n",
                 "{\"text\":\"a-${SHOWN}\",\"count\":\"${SHOWN}\",\"enabled\":"
                 "\"os.environ/SHOWN\",\"names\":[\"${SHOWN}\",\"$${x}\"]}");
}

static void of_urls_user_password_and_query_are_left_out(void)
{
    static const struct sg_option some[] = {{.name = "text", .type = SG_STRING}, {0}};
    static const struct {
        const char *text, *shown;
    } cases[] = {{"https://a.example/v1", "https://a.example/v1"},
                 {"http://u:sk-1@h:1/p", "http://***@h:1/p"},
                 {"http://sk-1@h", "http://***@h"},
                 {"http://u:sk-1/2@3@h/p@q", "http://***@q"},
                 {"https://h/p?key=sk-1&b", "https://h/p?***"},
                 {"https://u:sk-1@h/?sk-2", "https://***@h/?***"},
                 {"a http://u:sk-1@h b socks5h://x:sk-2@y", "a http://***@h b socks5h://***@y"},
                 {"a@b.c?d", "a@b.c?d"},
                 {"", ""}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        BUF_CLEANUP struct buf yaml = {0}, expected = {0};
        buf_printf(&yaml, "text: '%s'\n", cases[i].text);
        buf_printf(&expected, "{\"text\":\"%s\"}", cases[i].shown);
        expect_shown(some, yaml.data, expected.data);
    }
}

static const struct test tests[] = {
    TEST(what_is_not_given_is_its_default),
    TEST(what_is_given_is_shown_by_its_type),
    TEST(secrets_are_left_out_wherever_they_stand),
    TEST(what_the_environment_holds_is_shown_as_it_is_written),
    TEST(of_urls_user_password_and_query_are_left_out),
};

int main(int argc, char **argv)
{
    return run_tests("conf_show", tests, COUNT_OF(tests), argc, argv);
}
