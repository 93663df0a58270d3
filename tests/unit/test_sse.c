/* core/http/sse.h: streams of events, cut at every place and ended in every way. */
#include "base/check.h"
#include "cunit_main.h"
#include "http/sse.h"

/* Reads `text`, first up to `cut`, then in steps; writes "name|data;" for each event. */
static int read_events(struct sse_reader *reader, struct str text, size_t cut, size_t step,
                       struct buf *out)
{
    size_t at = 0;
    while (at < text.len) {
        size_t end = at < cut ? cut : at + step;
        end = end > text.len ? text.len : end;
        while (at < end) {
            struct sse_event event;
            size_t used = 0;
            int result =
                sse_reader_feed(reader, (struct str){text.data + at, end - at}, &used, &event);
            at += used;
            if (result < 0) {
                return -1;
            }
            if (result == 1) {
                buf_append_str(out, event.name);
                buf_putc(out, '|');
                buf_append_str(out, event.data);
                buf_putc(out, ';');
            }
        }
    }
    return 0;
}

static void expect_events(struct str text, const char *wanted)
{
    for (size_t cut = 0; cut <= text.len; cut++) {
        for (size_t step = 1; step <= text.len; step += text.len > 1 ? text.len - 1 : 1) {
            struct sse_reader reader;
            BUF_CLEANUP struct buf out = {0};
            buf_puts(&out, "");
            sse_reader_init(&reader, 1000);
            CU_ASSERT_EQUAL(read_events(&reader, text, cut, step, &out), 0);
            if (strcmp(out.data, wanted) != 0) {
                printf("\ncut %zu: '%s' instead of '%s'\n", cut, out.data, wanted);
                CU_FAIL("events");
            }
            sse_reader_clear(&reader);
        }
    }
}

static void events_are_the_same_at_every_split_and_with_every_line_end(void)
{
    expect_events(STR("data: one\n\nevent: e\ndata: two\ndata:three\n\n"), "|one;e|two\nthree;");
    expect_events(STR("data: one\r\n\r\nevent: e\r\ndata: two\r\ndata:three\r\n\r\n"),
                  "|one;e|two\nthree;");
    expect_events(STR("data: one\r\revent: e\rdata: two\rdata:three\r\r"), "|one;e|two\nthree;");
    expect_events(STR("data: one\r\n\ndata: two\r\r\ndata: three\n\r"), "|one;|two;|three;");
}

static void comments_and_other_fields_make_no_event(void)
{
    expect_events(STR(": ping\n\nid: 1\nretry: 5\n\ndatas: x\n\ndata: y\n: z\n\n"), "|y;");
}

static void a_name_without_data_is_forgotten(void)
{
    expect_events(STR("event: lost\n\ndata: x\n\n"), "|x;");
    expect_events(STR("event: a\nevent: b\ndata: x\n\ndata: y\n\n"), "b|x;|y;");
}

static void empty_data_is_data(void)
{
    expect_events(STR("data\n\ndata:\n\ndata:\ndata: \n\n"), "|;|;|\n;");
}

static void one_space_after_the_colon_goes(void)
{
    expect_events(STR("data:  two\n\ndata:\tt\n\ndata: a: b\n\n"), "| two;|\tt;|a: b;");
}

static void a_byte_order_mark_is_skipped_only_at_the_start(void)
{
    expect_events(STR("\xEF\xBB\xBF"
                      "data: x\n\n\xEF\xBB\xBF"
                      "data: y\n\n"),
                  "|x;");
}

static void an_event_that_was_not_ended_is_none(void)
{
    expect_events(STR("data: one\n\ndata: two\n"), "|one;");
}

static void long_lines_pass_whole(void)
{
    BUF_CLEANUP struct buf text = {0}, wanted = {0};
    buf_puts(&text, "data: ");
    buf_putc(&wanted, '|');
    for (size_t i = 0; i < 600; i++) {
        buf_putc(&text, (char)('a' + i % 26));
        buf_putc(&wanted, (char)('a' + i % 26));
    }
    buf_puts(&text, "\r\n\r\n");
    buf_putc(&wanted, ';');
    expect_events(buf_str(&text), wanted.data);
}

static int read_bounded(struct str text, size_t max, size_t step)
{
    struct sse_reader reader;
    BUF_CLEANUP struct buf out = {0};
    sse_reader_init(&reader, max);
    int result = read_events(&reader, text, 0, step, &out);
    if (result < 0) { /* and from then on */
        struct sse_event event;
        size_t used = 0;
        CU_ASSERT_EQUAL(sse_reader_feed(&reader, STR("\n\ndata: x\n\n"), &used, &event), -1);
    }
    sse_reader_clear(&reader);
    return result;
}

static void an_event_may_be_as_long_as_its_bound_and_no_longer(void)
{
    for (size_t step = 1; step < 60; step += 58) {
        CU_ASSERT_EQUAL(read_bounded(STR("data: 12345678\n\ndata: 12345678\n\n"), 8, step), 0);
        CU_ASSERT_EQUAL(read_bounded(STR("data: 123456789\n\n"), 8, step), -1);
        CU_ASSERT_EQUAL(read_bounded(STR("data: 1234\ndata: 567\n\n"), 8, step), 0);
        CU_ASSERT_EQUAL(read_bounded(STR("data: 1234\ndata: 5678\n\n"), 8, step), -1);
        CU_ASSERT_EQUAL(read_bounded(STR(":3456789 123456789 123456\n\n"), 8, step), -1);
    }
}

static const struct test tests[] = {
    TEST(events_are_the_same_at_every_split_and_with_every_line_end),
    TEST(comments_and_other_fields_make_no_event),
    TEST(a_name_without_data_is_forgotten),
    TEST(empty_data_is_data),
    TEST(one_space_after_the_colon_goes),
    TEST(a_byte_order_mark_is_skipped_only_at_the_start),
    TEST(an_event_that_was_not_ended_is_none),
    TEST(long_lines_pass_whole),
    TEST(an_event_may_be_as_long_as_its_bound_and_no_longer),
};

int main(int argc, char **argv)
{
    return run_tests("sse", tests, COUNT_OF(tests), argc, argv);
}
