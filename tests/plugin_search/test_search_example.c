/* The provider that docs/writing-plugins.md shows: what stands there is what is tried here. */
#include "base/check.h"
#include "cunit_main.h"
#include "fake_host.h"

extern const struct sg_plugin_set sg_plugin_set;

static void the_example_gives_hits(void)
{
    const struct sg_plugin *plugin = sg_plugin_set.plugins[0];
    struct sg_call *call = call_new();
    void *config = config_new(plugin), *self = NULL;
    const struct sg_query query = {.text = "a b", .freshness = "week"};
    config_set(plugin, config, "section", "hr");
    CU_ASSERT_EQUAL_FATAL(plugin->open(config, call, &self, call_error(call)), 0);
    call_reply(call, (struct fake_reply){
                         .status = 200,
                         .body = "{\"found\":{\"pages\":[{\"name\":\"N\",\"link\":\"https://a."
                                 "example\",\"text\":\"t\",\"changed\":\"2024-03-05\"}]}}"});
    CU_ASSERT_EQUAL(plugin->search->search(self, call, &query, call_error(call)), 0);
    CU_ASSERT_STRING_EQUAL(
        call->requests[0].url,
        "https://search.intranet.example/api/search?q=a%20b&n=10&age=7d&section=hr");
    CU_ASSERT_STRING_EQUAL(call_text(call, SG_OUT_HIT),
                           "{\"title\": \"N\", \"url\": \"https://a.example\", \"snippet\": \"t\", "
                           "\"date\": \"2024-03-05\"}");
    config_free(plugin, config);
    call_free(call);
}

/* Ended by a NUL; the caller frees it. */
static char *read_file(const char *path)
{
    char *text = calloc(1, 1 << 20);
    FILE *file = fopen(path, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    size_t len = fread(text, 1, (1 << 20) - 1, file);
    CU_ASSERT_TRUE(len > 0);
    (void)fclose(file);
    return text;
}

static void the_manual_shows_it_as_it_is(void)
{
    char *page = read_file(SOURCE_DIR "/docs/writing-plugins.md");
    char *source = read_file(SOURCE_DIR "/tests/plugin_search/intranet.c");
    CU_ASSERT_PTR_NOT_NULL(strstr(page, source));
    free(page);
    free(source);
}

static const struct test tests[] = {
    TEST(the_example_gives_hits),
    TEST(the_manual_shows_it_as_it_is),
};

int main(int argc, char **argv)
{
    *sg_plugin_set.host = host_table();
    return run_tests("search_example", tests, COUNT_OF(tests), argc, argv);
}
