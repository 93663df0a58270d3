/* core/surface/model_name: the client's name for a model in answers of all three APIs, whole and streamed, in any pieces; and
 * everything else unchanged. */
#include "base/check.h"
#include "cunit_main.h"
#include "surface/model_name.h"

#include <stdio.h>
#include <string.h>

static void become(const char *text, bool is_stream, size_t piece, struct buf *ret)
{
    struct model_name m;
    model_name_init(&m, STR("\"fast\""), is_stream);
    buf_reset(ret);
    for (size_t at = 0, len = strlen(text); at < len; at += piece) {
        struct str bytes = {text + at, len - at < piece ? len - at : piece};
        model_name_feed(&m, bytes, ret);
    }
    (void)buf_append(ret, "", 1);
}

struct example {
    const char *before, *after; /* NULL: unchanged */
};

static void check(const struct example *examples, size_t count, bool is_stream)
{
    static const size_t pieces[] = {1, 2, 3, 7, 1000};
    BUF_CLEANUP struct buf found = {0};
    for (size_t i = 0; i < count; i++) {
        const char *after = examples[i].after != NULL ? examples[i].after : examples[i].before;
        for (size_t k = 0; k < COUNT_OF(pieces); k++) {
            become(examples[i].before, is_stream, pieces[k], &found);
            CU_ASSERT_STRING_EQUAL(found.data, after);
            if (strcmp(found.data, after) != 0) {
                fprintf(stderr, "example %zu in pieces of %zu: %s\n", i, pieces[k], found.data);
            }
        }
    }
}

static void whole_answers_have_the_clients_name(void)
{
    static const struct example examples[] = {
        {"{\"id\":\"a\",\"model\":\"gpt-5-mini\",\"choices\":[]}",
         "{\"id\":\"a\",\"model\":\"fast\",\"choices\":[]}"},
        {"{ \"model\" : \"x\\\"y\\\\\" , \"n\":1}", "{ \"model\" : \"fast\" , \"n\":1}"},
        {"{\"response\":{\"model\":\"x\"},\"message\":{\"a\":{\"model\":\"y\"},\"model\":\"z\"}}",
         "{\"response\":{\"model\":\"fast\"},\"message\":{\"a\":{\"model\":\"y\"},\"model\":"
         "\"fast\"}}"},
        {"{\"a\":[{\"model\":\"x\"}],\"model\":\"\"}",
         "{\"a\":[{\"model\":\"x\"}],\"model\":\"fast\"}"},
    };
    check(examples, COUNT_OF(examples), false);
}

static void what_only_looks_like_it_stays(void)
{
    static const struct example examples[] = {
        {"{\"choices\":[{\"message\":{\"content\":\"{\\\"model\\\":\\\"x\\\"}\"}}]}", NULL},
        {"{\"data\":[{\"id\":\"m\",\"model\":\"x\"}],\"tool\":{\"model\":\"x\"}}", NULL},
        {"{\"a\":\"model\",\"b\":\"x\",\"model\":null,\"model_x\":\"y\",\"amodel\":\"y\",\"mode\":"
         "\"l\"}",
         NULL},
        {"{\"model\":{\"model\":\"x\"},\"message\":[{\"model\":\"x\"}],\"response\":\"model\"}",
         NULL},
        {"[{\"model\":\"x\"}]", NULL},
        {"[\"model\",\"x\",{\"response\":{\"model\":\"x\"}}]", NULL},
        {"\"model\":\"x\" is no object", NULL},
        {"}}]]{\"k\":\"v\"", NULL},
        {"{\"a_key_that_is_longer_than_what_is_kept_of_it_model\":\"x\"}", NULL},
        {"", NULL},
    };
    check(examples, COUNT_OF(examples), false);
}

static void events_have_it_too(void)
{
    static const struct example examples[] = {
        {"data: {\"model\":\"x\",\"choices\":[]}\n\ndata: {\"model\":\"x\"}\n\ndata: [DONE]\n\n",
         "data: {\"model\":\"fast\",\"choices\":[]}\n\ndata: {\"model\":\"fast\"}\n\ndata: "
         "[DONE]\n\n"},
        {"event: message_start\r\ndata:{\"message\":{\"model\":\"x\"}}\r\n\r\n: "
         "{\"model\":\"x\"}\r\n",
         "event: message_start\r\ndata:{\"message\":{\"model\":\"fast\"}}\r\n\r\n: "
         "{\"model\":\"x\"}\r\n"},
        {"data: {\"response\":\ndata: {\"model\":\ndata: \"x\"}}\n\n",
         "data: {\"response\":\ndata: {\"model\":\ndata: \"fast\"}}\n\n"},
        {"data: {\"response\":\r\ndata: {\"model\":\r\ndata: \"x\"}}\r\n\r\n",
         "data: {\"response\":\r\ndata: {\"model\":\r\ndata: \"fast\"}}\r\n\r\n"},
        {"event: e\rdata: {\"model\":\"x\"}\r\rdata: {\"model\":\"y\"}\r\r",
         "event: e\rdata: {\"model\":\"fast\"}\r\rdata: {\"model\":\"fast\"}\r\r"},
        {"data: {\"broken\":\"\n\ndata: {\"model\":\"x\"}\n\n",
         "data: {\"broken\":\"\n\ndata: {\"model\":\"fast\"}\n\n"},
        {"id: {\"model\":\"x\"}\ndatax: {\"model\":\"x\"}\n\n", NULL},
    };
    check(examples, COUNT_OF(examples), true);
}

static void a_long_name_is_cut_without_being_kept(void)
{
    BUF_CLEANUP struct buf text = {0}, found = {0};
    (void)buf_puts(&text, "{\"model\":\"");
    for (int i = 0; i < 100000; i++) {
        (void)buf_puts(&text, "\\\\n");
    }
    (void)buf_append(&text, "\"}", 3);
    become(text.data, false, 4096, &found);
    CU_ASSERT_STRING_EQUAL(found.data, "{\"model\":\"fast\"}");
}

static const struct test tests[] = {
    TEST(whole_answers_have_the_clients_name),
    TEST(what_only_looks_like_it_stays),
    TEST(events_have_it_too),
    TEST(a_long_name_is_cut_without_being_kept),
};

int main(int argc, char **argv)
{
    return run_tests("model_name", tests, COUNT_OF(tests), argc, argv);
}
