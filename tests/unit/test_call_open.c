/* core/plugin/instance.c: a plugin is opened and closed, and says at its start how it is. */
#include "call_fixture.h"

static int opened, closed, open_code;

/* The last status counts; what is none changes nothing. */
static void say_how_it_is(struct sg_call *call, struct sg_error *err)
{
    static char large[2100];
    CU_ASSERT_EQUAL(host->emit(call, SG_OUT_STATUS, "{\"state\":\"first\"}", 17, err), 0);
    CU_ASSERT_EQUAL(host->emit(call, SG_OUT_STATUS, "{\"state\":\"open\",\"n\":1}", 22, err), 0);
    CU_ASSERT_EQUAL(host->emit(call, SG_OUT_STATUS, "[1]", 3, err), SG_E_INTERNAL);
    CU_ASSERT_STRING_EQUAL(err->message, "emit(): the status of 'open' is no JSON object");
    CU_ASSERT_EQUAL(host->emit(call, SG_OUT_STATUS, "{\"a\":1", 6, err), SG_E_INTERNAL);
    memset(large, ' ', sizeof large);
    CU_ASSERT_EQUAL(host->emit(call, SG_OUT_STATUS, large, sizeof large, err), SG_E_INTERNAL);
    CU_ASSERT_STRING_EQUAL(err->message, "emit(): a status of 'open' with 2100 bytes, over 2048");
}

static int open_it(const void *config, struct sg_call *call, void **ret_self, struct sg_error *err)
{
    CU_ASSERT_STRING_EQUAL((const char *)config, "config");
    CU_ASSERT_EQUAL(host->sleep(call, 1, err), 0);
    CU_ASSERT_EQUAL(host->emit(call, SG_OUT_DATA, "x", 1, err), SG_E_INTERNAL);
    CU_ASSERT_STRING_EQUAL(err->message, "emit() in 'open', where nobody takes output");
    say_how_it_is(call, err);
    CU_ASSERT_PTR_NOT_NULL(host->alloc(call, 10));
    CU_ASSERT_STRING_EQUAL(host->libexec_dir(call), "/lib/helpers");
    opened++;
    *ret_self = &opened;
    return open_code == 0 ? 0 : host->fail(err, (enum sg_code)open_code, "'a' must be below 'b'");
}

static void close_it(void *self, struct sg_call *call)
{
    struct sg_error err = {0};
    CU_ASSERT_PTR_EQUAL(self, &opened);
    CU_ASSERT_EQUAL(host->sleep(call, 1, &err), 0);
    closed++;
}

static void open_and_close(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    const struct sg_plugin plugin = {.name = "box", .open = open_it, .close = close_it};
    const struct sg_plugin plain = {.name = "plain"};
    struct instance box = {
        .name = "b", .plugin = &plugin, .config = "config", .libexec_dir = "/lib/helpers"};
    struct instance simple = {.name = "plain", .plugin = &plain};
    opened = closed = 0;
    open_code = SG_E_CONFIG;
    CU_ASSERT_EQUAL(instance_open(&box, &err), SG_E_CONFIG);
    CU_ASSERT_STRING_EQUAL(err.message, "box (b): 'a' must be below 'b'");
    CU_ASSERT_FALSE(box.is_open);
    CU_ASSERT_PTR_NULL(box.about);
    instance_close(&box); /* nothing to close */
    CU_ASSERT_EQUAL(closed, 0);
    open_code = 0;
    CU_ASSERT_EQUAL(instance_open(&box, &err), 0);
    CU_ASSERT_PTR_EQUAL(box.self, &opened);
    CU_ASSERT_PTR_NOT_NULL_FATAL(box.about);
    CU_ASSERT_STRING_EQUAL(box.about, "{\"state\":\"open\",\"n\":1}");
    instance_close(&box);
    CU_ASSERT_PTR_NULL(box.about);
    instance_close(&box);
    CU_ASSERT_EQUAL(closed, 1);
    CU_ASSERT_EQUAL(instance_open(&simple, &err), 0);
    CU_ASSERT_TRUE(simple.is_open);
    CU_ASSERT_PTR_NULL(simple.about);
    instance_close(&simple);
}

static void an_instance_opens_and_closes_in_the_callers_fiber(void)
{
    run_once(&on_loop, open_and_close, 1);
}

static const struct test tests[] = {
    TEST(an_instance_opens_and_closes_in_the_callers_fiber),
};

int main(int argc, char **argv)
{
    return run_tests("call_open", tests, COUNT_OF(tests), argc, argv);
}
