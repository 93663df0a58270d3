/* core/gateway/collected.c and tools.c: what a tool's call shows becomes a surface's result, whatever was emitted; and
 * which of an interceptor's tools has which name. */
#include "base/check.h"
#include "base/limits.h"
#include "cunit_main.h"
#include "gateway/collected.h"
#include "gateway/request.h"

#include <stdlib.h>

static struct account account; /* not open: it takes anything */

static struct collected collected_new(void)
{
    return (struct collected){
        .arena = arena_new(0), .account = &account, .model = {.max = 1024 * 1024}};
}

static void collected_end(struct collected *c)
{
    buf_clear(&c->model);
    arena_free(c->arena);
}

static void take(struct collected *c, enum sg_out kind, const char *data)
{
    struct call_output output = {kind, str_of(data)};
    collected_take(c, &output);
}

/* The statuses in turn, behind an exception if it is told to raise. */
static struct surface_result result_of(bool raises, const char *const *statuses, size_t count)
{
    struct collected c = collected_new();
    struct surface_result result = {.reason = SURFACE_REASON_LIMIT, .return_code = 77};
    if (raises) {
        take(&c, SG_OUT_EXCEPTION, "{\"name\":\"E\"}");
    }
    for (size_t i = 0; i < count; i++) {
        take(&c, SG_OUT_STATUS, statuses[i]);
    }
    collected_result(&c, &result);
    collected_end(&c);
    return result;
}

#define EXPECT_RESULT(raises, wanted_status, wanted_reason, wanted_code, ...)              \
    do {                                                                                   \
        static const char *const statuses_[] = {__VA_ARGS__};                              \
        struct surface_result result_ = result_of(raises, statuses_, COUNT_OF(statuses_)); \
        CU_ASSERT_EQUAL(result_.status, wanted_status);                                    \
        CU_ASSERT_EQUAL(result_.reason, wanted_reason);                                    \
        CU_ASSERT_EQUAL(result_.return_code, wanted_code);                                 \
    } while (0)

static void a_status_tells_how_the_call_ended(void)
{
    EXPECT_RESULT(false, SURFACE_CALL_COMPLETED, SURFACE_REASON_NONE, 0,
                  "{\"state\":\"completed\"}");
    EXPECT_RESULT(false, SURFACE_CALL_COMPLETED, SURFACE_REASON_NONE, 127,
                  "{ \"code\" : 127 , \"st\\u0061te\" : \"completed\" }");
    EXPECT_RESULT(false, SURFACE_CALL_FAILED, SURFACE_REASON_NONE, 0, "{\"state\":\"failed\"}");
    EXPECT_RESULT(false, SURFACE_CALL_FAILED, SURFACE_REASON_TIMEOUT, 0,
                  "{\"state\":\"failed\",\"reason\":\"timeout\"}");
    EXPECT_RESULT(false, SURFACE_CALL_FAILED, SURFACE_REASON_LIMIT, 0,
                  "{\"state\":\"failed\",\"reason\":\"limit\"}");
    EXPECT_RESULT(false, SURFACE_CALL_FAILED, SURFACE_REASON_UNAVAILABLE, 0,
                  "{\"state\":\"failed\",\"reason\":\"unavailable\"}");
    EXPECT_RESULT(false, SURFACE_CALL_FAILED, SURFACE_REASON_NOT_FOUND, 0,
                  "{\"state\":\"failed\",\"reason\":\"not_found\"}");
    EXPECT_RESULT(false, SURFACE_CALL_FAILED, SURFACE_REASON_INVALID, 0,
                  "{\"state\":\"failed\",\"reason\":\"invalid\"}");
    EXPECT_RESULT(false, SURFACE_CALL_FAILED, SURFACE_REASON_TOO_LONG, 0,
                  "{\"state\":\"invalid\",\"reason\":\"too_long\"}");
    EXPECT_RESULT(false, SURFACE_CALL_FAILED, SURFACE_REASON_INVALID, 0, "{\"state\":\"invalid\"}");
    EXPECT_RESULT(false, SURFACE_CALL_FAILED, SURFACE_REASON_NONE, 0,
                  "{\"state\":\"failed\",\"reason\":\"of its own\"}");
}

static void code_that_raised_returns_one_unless_it_is_said_otherwise(void)
{
    EXPECT_RESULT(true, SURFACE_CALL_COMPLETED, SURFACE_REASON_NONE, 1,
                  "{\"state\":\"running\",\"code\":3}");
    EXPECT_RESULT(true, SURFACE_CALL_COMPLETED, SURFACE_REASON_NONE, 1,
                  "{\"state\":\"completed\"}");
    EXPECT_RESULT(true, SURFACE_CALL_COMPLETED, SURFACE_REASON_NONE, 0,
                  "{\"state\":\"completed\",\"code\":0}");
}

static void the_last_status_that_tells_of_the_end_holds(void)
{
    EXPECT_RESULT(false, SURFACE_CALL_COMPLETED, SURFACE_REASON_NONE, 0,
                  "{\"state\":\"failed\",\"reason\":\"timeout\",\"code\":5}",
                  "{\"state\":\"completed\"}", "{\"state\":\"memory\",\"note\":\"failed\"}");
    EXPECT_RESULT(false, SURFACE_CALL_FAILED, SURFACE_REASON_LIMIT, 0,
                  "{\"state\":\"completed\",\"code\":5}",
                  "{\"state\":\"failed\",\"reason\":\"limit\"}");
}

/* A note may hold any words, and what is not JSON says nothing. */
static void words_within_a_status_are_no_state(void)
{
    EXPECT_RESULT(false, SURFACE_CALL_COMPLETED, SURFACE_REASON_NONE, 0,
                  "{\"state\":\"busy\",\"note\":\"it \\\"failed\\\"\",\"x\":\"invalid\"}",
                  "\"failed\"", "{\"state\":\"failed\"", "", "[\"failed\"]",
                  "{\"state\":\"failed\",\"state\":\"failed\"}", "{\"state\":[\"failed\"]}");
}

static void a_code_that_is_no_small_number_is_none(void)
{
    EXPECT_RESULT(true, SURFACE_CALL_COMPLETED, SURFACE_REASON_NONE, 1,
                  "{\"state\":\"completed\",\"code\":\"7\"}");
    EXPECT_RESULT(true, SURFACE_CALL_COMPLETED, SURFACE_REASON_NONE, 1,
                  "{\"state\":\"completed\",\"code\":99999999999}");
    EXPECT_RESULT(true, SURFACE_CALL_COMPLETED, SURFACE_REASON_NONE, 1,
                  "{\"state\":\"completed\",\"code\":7.5}");
    EXPECT_RESULT(false, SURFACE_CALL_COMPLETED, SURFACE_REASON_NONE, -9,
                  "{\"state\":\"completed\",\"code\":-9}");
}

static void a_status_that_is_too_long_says_nothing(void)
{
    struct collected c = collected_new();
    char *text = malloc(5000);
    int len = snprintf(text, 5000, "{\"state\":\"failed\",\"note\":\"");
    memset(text + len, 'x', 5000 - (size_t)len - 3);
    memcpy(text + 4997, "\"}", 3);
    take(&c, SG_OUT_STATUS, text);
    CU_ASSERT_FALSE(c.failed);
    free(text);
    collected_end(&c);
}

static void a_failure_of_the_tool_itself_stands_above_what_it_said(void)
{
    struct collected c = collected_new();
    struct surface_result result = {0};
    take(&c, SG_OUT_STATUS, "{\"state\":\"completed\",\"code\":0}");
    collected_fail(&c, SURFACE_REASON_UNAVAILABLE);
    collected_result(&c, &result);
    CU_ASSERT_EQUAL(result.status, SURFACE_CALL_FAILED);
    CU_ASSERT_EQUAL(result.reason, SURFACE_REASON_UNAVAILABLE);
    collected_end(&c);
}

static void outputs_are_kept_in_order_and_within_bounds(void)
{
    struct collected c = collected_new();
    struct surface_result result = {0};
    take(&c, SG_OUT_LOG_OUT, "one");
    take(&c, SG_OUT_MODEL, "for the ");
    take(&c, SG_OUT_DATA, "nobody's");
    take(&c, SG_OUT_RESULT, "{}");
    take(&c, SG_OUT_MODEL, "model");
    collected_result(&c, &result);
    CU_ASSERT_EQUAL_FATAL(result.outputs_count, 2);
    CU_ASSERT_EQUAL(result.outputs[0].kind, SG_OUT_LOG_OUT);
    CU_ASSERT_TRUE(str_is(result.outputs[0].data, "one"));
    CU_ASSERT_EQUAL(result.outputs[1].kind, SG_OUT_RESULT);
    CU_ASSERT_TRUE(str_is(buf_str(&c.model), "for the model"));
    for (size_t i = 0; i < 5000; i++) {
        take(&c, SG_OUT_RESULT, "{}");
    }
    CU_ASSERT_EQUAL(c.count, 4096);
    collected_end(&c);
    c = collected_new();
    char *large = calloc(1, LIMIT_TOOL_OUTPUT_BYTES + 1);
    memset(large, 'x', LIMIT_TOOL_OUTPUT_BYTES);
    take(&c, SG_OUT_LOG_OUT, large);
    take(&c, SG_OUT_LOG_OUT, "y");
    CU_ASSERT_EQUAL(c.count, 1);
    CU_ASSERT_TRUE(c.emitted > LIMIT_TOOL_OUTPUT_BYTES + 1);
    free(large);
    collected_end(&c);
}

/* A loop that prints a line at a time is a log of all its lines, with what comes behind it. */
static void what_is_printed_piece_by_piece_is_one_log(void)
{
    struct collected c = collected_new();
    struct surface_result result = {0};
    for (size_t i = 0; i < 50000; i++) {
        take(&c, SG_OUT_LOG_OUT, "ab\n");
        take(&c, SG_OUT_LOG_OUT, "");
    }
    take(&c, SG_OUT_LOG_ERR, "one ");
    take(&c, SG_OUT_LOG_ERR, "two");
    take(&c, SG_OUT_EXCEPTION, "{}");
    take(&c, SG_OUT_EXCEPTION, "{}");
    collected_result(&c, &result);
    CU_ASSERT_EQUAL_FATAL(result.outputs_count, 4);
    CU_ASSERT_EQUAL(result.outputs[0].data.len, 150000);
    CU_ASSERT_TRUE(memcmp(result.outputs[0].data.data + 149997, "ab\n", 3) == 0);
    CU_ASSERT_TRUE(str_is(result.outputs[1].data, "one two"));
    CU_ASSERT_EQUAL(result.outputs[3].kind, SG_OUT_EXCEPTION);
    CU_ASSERT_EQUAL(c.bytes, 150000 + 7 + 4);
    CU_ASSERT_TRUE(c.emitted < 300000);
    collected_end(&c);
}

/* ---- names ---- */

static void expect_names(const struct sg_tool *tools, const char *const *names, size_t count)
{
    const struct sg_interceptor_ops ops = {.tools = tools};
    const struct sg_plugin plugin = {.interceptor = &ops};
    struct instance instance = {.plugin = &plugin};
    static const char *const all[] = {NULL};
    struct interceptor interceptor = {
        .instance = &instance, .upstreams = all, .tool_name = "python"};
    struct config config = {.interceptors = &interceptor, .interceptors_count = 1};
    struct gateway gateway = {.config = &config};
    struct upstream upstream = {.name = "one"};
    struct request r = {.gateway = &gateway, .upstream = &upstream, .arena = arena_new(0)};
    tools_offer(&r);
    CU_ASSERT_EQUAL_FATAL(r.offers_count, count);
    for (size_t i = 0; i < count; i++) {
        CU_ASSERT_TRUE(str_is(r.offers[i].name, names[i]));
    }
    arena_free(r.arena);
}

static void another_name_is_for_the_first_hosted_tool_alone(void)
{
    static const struct sg_tool three[] = {{.name = "extra"},
                                           {.hosted = "code_interpreter", .name = "code"},
                                           {.hosted = "bash_code_execution", .name = "bash"},
                                           {0}};
    static const struct sg_tool plain[] = {{.name = "one"}, {.name = "two"}, {0}};
    static const char *const names[] = {"extra", "python", "bash"};
    static const char *const plain_names[] = {"python", "two"};
    expect_names(three, names, 3);
    expect_names(plain, plain_names, 2);
}

static const struct test tests[] = {
    TEST(a_status_tells_how_the_call_ended),
    TEST(code_that_raised_returns_one_unless_it_is_said_otherwise),
    TEST(the_last_status_that_tells_of_the_end_holds),
    TEST(words_within_a_status_are_no_state),
    TEST(a_code_that_is_no_small_number_is_none),
    TEST(a_status_that_is_too_long_says_nothing),
    TEST(a_failure_of_the_tool_itself_stands_above_what_it_said),
    TEST(outputs_are_kept_in_order_and_within_bounds),
    TEST(what_is_printed_piece_by_piece_is_one_log),
    TEST(another_name_is_for_the_first_hosted_tool_alone),
};

int main(int argc, char **argv)
{
    return run_tests("collected", tests, COUNT_OF(tests), argc, argv);
}
