/* Answers that a server would not give by mistake alone, and forms that are legal and rare: all is bounded, and no text is
 * changed on the way. */
#include "answer_summary.h"
#include "translate_bench.h"

#include <CUnit/CUnit.h>

static const struct translate_pair responses_over_chat = {"responses", "chat"},
                                   messages_over_chat = {"messages", "chat"},
                                   chat_over_messages = {"chat", "messages"},
                                   responses_over_messages = {"responses", "messages"};

#define DELTA(delta) "data: {\"choices\":[{\"index\":0,\"delta\":" delta "}]}\n\n"
#define DONE "data: [DONE]\n\n"

static int answer(struct translate_pair pair, bool is_stream, struct str bytes, struct buf *out,
                  struct sg_error *err)
{
    return translate_answer(pair, is_stream, bytes, 0, out, err);
}

static void expect_summary(struct translate_pair pair, bool is_stream, const char *bytes,
                           const char *expected)
{
    BUF_CLEANUP struct buf out = {0}, got = {0};
    struct sg_error err = {0};
    CU_ASSERT_EQUAL(answer(pair, is_stream, str_of(bytes), &out, &err), SG_OK);
    CU_ASSERT_STRING_EQUAL(err.message, "");
    answer_summary(pair.from, is_stream, buf_str(&out), &got);
    CU_ASSERT_STRING_EQUAL(got.data, expected);
}

/* ---- frames ---- */

static void a_last_event_may_lack_its_empty_line(void)
{
    expect_summary(
        responses_over_chat, true,
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}",
        "text(a) end(completed)");
    expect_summary(messages_over_chat, true, DELTA("{\"content\":\"a\"}") "data: [DONE]",
                   "text(a) end(end_turn) usage(- - - -)");
}

/* An answer that the server did not stream after all is said as one. */
static void white_space_in_an_answer_does_no_harm(void)
{
    expect_summary(responses_over_chat, false,
                   "\n{ \"choices\" :\r\n[ { \"message\" : { \"content\" : \"a\" } } ] }\n",
                   "text(a) end(completed)");
    expect_summary(
        responses_over_chat, true,
        "data: {\"choices\":\ndata: [{\"delta\":\ndata: {\"content\":\"a\"}}]}\r\n\r\n" DONE,
        "text(a) end(completed)");
}

/* What is passed on raw stays within its line. */
static void logprobs_on_several_lines_go_on_in_one(void)
{
    BUF_CLEANUP struct buf out = {0};
    struct sg_error err = {0};
    struct str bytes =
        STR("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"logprobs\":{"
            "\"content\":[\ndata: {\"token\":\"a\",\ndata: \"logprob\":-0.5}\ndata: ]}}]}"
            "\n\n" DONE);
    CU_ASSERT_EQUAL(answer(responses_over_chat, true, bytes, &out, &err), SG_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(out.data, "\"delta\":\"a\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(out.data, "\"logprobs\":[{\"token\":\"a\", \"logprob\":-0.5}]"));
}

static void logprobs_of_half_a_character_are_kept(void)
{
    BUF_CLEANUP struct buf out = {0};
    struct sg_error err = {0};
    struct str bytes = STR(
        "data: "
        "{\"choices\":[{\"delta\":{\"content\":\"\"},\"logprobs\":{\"content\":[{\"token\":\"1\"}]"
        "}}]}\n\ndata: "
        "{\"choices\":[{\"delta\":{\"content\":\"\xC3\xA4\"},\"logprobs\":{\"content\":[{"
        "\"token\":\"2\"}]}}]}\n\n" DONE);
    CU_ASSERT_EQUAL(answer(responses_over_chat, true, bytes, &out, &err), SG_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(
        out.data, "\"logprobs\":[{\"token\":\"1\"},{\"token\":\"2\"}],\"text\":\"\xC3\xA4\""));
}

/* The name of the event says what its data does not. */
static void an_event_that_is_called_error_is_one(void)
{
    static const struct {
        struct translate_pair pair;
        const char *bytes;
    } rows[] = {{{"responses", "chat"},
                 DELTA("{\"content\":\"a\"}") "event: error\ndata: "
                                              "{\"message\":\"Full.\",\"code\":503}\n\n" DONE},
                {{"chat", "messages"},
                 "event: error\ndata: {\"message\":\"Full.\",\"status\":\"503\"}\n\n"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        BUF_CLEANUP struct buf out = {0};
        struct sg_error err = {0};
        CU_ASSERT_EQUAL(answer(rows[i].pair, true, str_of(rows[i].bytes), &out, &err),
                        SG_E_UNAVAILABLE);
        CU_ASSERT_STRING_EQUAL(err.message, "Full.");
        CU_ASSERT_EQUAL(error_status(&err), 503);
    }
}

/* ---- texts ---- */

static void texts_with_nul_and_halves_of_pairs_are_whole(void)
{
    static const struct {
        struct translate_pair pair;
        bool is_stream;
        const char *bytes;
    } rows[] = {{{"responses", "chat"}, true, DELTA("{\"content\":\"a\\u0000b\\ud800c\"}") DONE},
                {{"messages", "chat"}, true, DELTA("{\"content\":\"a\\u0000b\\udc00c\"}") DONE},
                {{"messages", "chat"},
                 false,
                 "{\"choices\":[{\"message\":{\"content\":\"a\\u0000b\\ud800c\"}}]}"},
                {{"chat", "messages"},
                 false,
                 "{\"content\":[{\"type\":\"text\",\"text\":\"a\\u0000b\\ud800c\"}],\"stop_"
                 "reason\":\"end_turn\"}"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        BUF_CLEANUP struct buf out = {0};
        struct sg_error err = {0};
        CU_ASSERT_EQUAL(answer(rows[i].pair, rows[i].is_stream, str_of(rows[i].bytes), &out, &err),
                        SG_OK);
        CU_ASSERT_PTR_NOT_NULL(strstr(out.data, "\"a\\u0000b\xEF\xBF\xBD"
                                                "c\""));
    }
}

static void names_and_ids_with_odd_characters_stay_within_their_strings(void)
{
    BUF_CLEANUP struct buf out = {0};
    struct sg_error err = {0};
    struct str bytes = STR(DELTA(
        "{\"tool_calls\":[{\"index\":0,\"id\":\"a\\\"\\n\",\"function\":{\"name\":\"f\\\"\\u0000"
        "g\",\"arguments\":\"\\\"\"}}]}") DONE);
    CU_ASSERT_EQUAL(answer(messages_over_chat, true, bytes, &out, &err), SG_OK);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(out.data, "\"id\":\"toolu_a\\\"\\n\",\"name\":\"f\\\"\\u0000g\""));
}

/* ---- bounds ---- */

static void calls_put(struct buf *out, size_t count, bool is_messages)
{
    for (size_t i = 0; i < count; i++) {
        (void)buf_printf(
            out,
            is_messages
                ? "%s{\"type\":\"tool_use\",\"id\":\"toolu_%zu\",\"name\":\"f\",\"input\":{}}"
                : "%s{\"index\":%zu,\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}",
            i > 0 ? "," : "", i);
    }
}

static void more_than_128_calls_of_a_server_of_chat_fail(void)
{
    for (size_t count = 128; count <= 200; count += 72) {
        BUF_CLEANUP struct buf bytes = {0}, out = {0};
        struct sg_error err = {0};
        (void)buf_puts(&bytes, "data: {\"choices\":[{\"delta\":{\"tool_calls\":[");
        calls_put(&bytes, count, false);
        (void)buf_puts(&bytes, "]}}]}\n\n" DONE);
        int code = answer(responses_over_chat, true, buf_str(&bytes), &out, &err);
        CU_ASSERT_EQUAL(code, count == 128 ? SG_OK : SG_E_UNAVAILABLE);
        CU_ASSERT_STRING_EQUAL(err.message,
                               count == 128 ? "" : "The upstream made more than 128 calls");
        CU_ASSERT_PTR_NOT_NULL(strstr(out.data, "\"call_0123abcd_128\""));
        CU_ASSERT_PTR_NULL(strstr(out.data, "\"call_0123abcd_129\""));
    }
}

static void more_than_128_calls_cannot_be_told_on_chat(void)
{
    for (size_t count = 128; count <= 129; count++) {
        BUF_CLEANUP struct buf bytes = {0}, out = {0};
        struct sg_error err = {0};
        (void)buf_puts(&bytes, "{\"content\":[");
        calls_put(&bytes, count, true);
        (void)buf_puts(&bytes, "],\"stop_reason\":\"tool_use\"}");
        int code = answer(chat_over_messages, false, buf_str(&bytes), &out, &err);
        CU_ASSERT_EQUAL(code, count == 128 ? SG_OK : SG_E_UNAVAILABLE);
        CU_ASSERT_STRING_EQUAL(err.message,
                               count == 128 ? "" : "The upstream made more than 128 calls");
    }
}

static void more_than_4096_blocks_are_not_understood(void)
{
    for (size_t count = 4096; count <= 4097; count++) {
        BUF_CLEANUP struct buf bytes = {0}, out = {0};
        struct sg_error err = {0};
        (void)buf_puts(&bytes, "{\"content\":[");
        calls_put(&bytes, count, true);
        (void)buf_puts(&bytes, "],\"stop_reason\":\"tool_use\"}");
        int code = answer(responses_over_messages, false, buf_str(&bytes), &out, &err);
        CU_ASSERT_EQUAL(code, count == 4096 ? SG_OK : SG_E_UNAVAILABLE);
        CU_ASSERT_STRING_EQUAL(
            err.message, count == 4096 ? ""
                                       : "The upstream's answer cannot be understood: a content "
                                         "block is no object, or one too many");
    }
}

/* Text and reasoning by turns make a part each time. */
static void more_than_4096_parts_cannot_be_told(void)
{
    static const struct translate_pair *const pairs[] = {&responses_over_chat, &messages_over_chat};
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        BUF_CLEANUP struct buf bytes = {0}, out = {0};
        struct sg_error err = {0};
        for (size_t k = 0; k < 2049; k++) {
            (void)buf_puts(&bytes, DELTA("{\"content\":\"a\"}") DELTA("{\"reasoning\":\"b\"}"));
        }
        (void)buf_puts(&bytes, DONE);
        CU_ASSERT_EQUAL(answer(*pairs[i], true, buf_str(&bytes), &out, &err), SG_E_UNAVAILABLE);
        CU_ASSERT_STRING_EQUAL(err.message, "The upstream's answer has more than 4096 parts");
    }
}

static void json_that_is_too_deep_is_not_understood(void)
{
    BUF_CLEANUP struct buf bytes = {0}, out = {0};
    struct sg_error err = {0};
    (void)buf_puts(&bytes, "{\"choices\":[{\"message\":{\"content\":");
    for (size_t i = 0; i < 10000; i++) {
        (void)buf_putc(&bytes, '[');
    }
    CU_ASSERT_EQUAL(answer(responses_over_chat, false, buf_str(&bytes), &out, &err),
                    SG_E_UNAVAILABLE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.message, "The upstream's answer cannot be understood: "));
    CU_ASSERT_EQUAL(out.len, 0);
}

static void arguments_as_a_deep_object_are_text_to_us(void)
{
    expect_summary(
        responses_over_chat, false,
        "{\"choices\":[{\"message\":{\"tool_calls\":[{\"id\":\"call_a\",\"function\":{\"name\":"
        "\"f\",\"arguments\":{\"a\":[[[[{\"b\":null}]]]],\"a\":1}}}]}}]}",
        "call(call_a f {\"a\":[[[[{\"b\":null}]]]],\"a\":1}) end(completed)");
}

static void a_whole_answer_of_more_than_32_mib_fails(void)
{
    BUF_CLEANUP struct buf bytes = {0}, out = {0};
    struct sg_error err = {0};
    (void)buf_puts(&bytes, "{\"choices\":[{\"message\":{\"content\":\"");
    size_t room = (size_t)32 * 1024 * 1024;
    char *text = buf_reserve(&bytes, room);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    memset(text, 'a', room);
    buf_commit(&bytes, room);
    (void)buf_puts(&bytes, "\"}}]}");
    CU_ASSERT_EQUAL(answer(responses_over_chat, false, buf_str(&bytes), &out, &err),
                    SG_E_UNAVAILABLE);
    CU_ASSERT_STRING_EQUAL(err.message, "The upstream's answer is larger than 32 MiB");
}

/* Sums of counts as large as numbers get would overflow: what no model reaches is not said. */
static void counts_that_no_model_reaches_are_not_counted(void)
{
#define MOST "9223372036854775807"
    expect_summary(
        messages_over_chat, false,
        "{\"choices\":[{\"message\":{\"content\":\"a\"}}],\"usage\":{\"prompt_tokens\":" MOST
        ",\"completion_tokens\":3}}",
        "text(a) end(end_turn) usage(- 3 - -)");
    static const char chat[] = "{\"choices\":[{\"message\":{\"content\":\"a\"}}],\"usage\":{"
                               "\"prompt_tokens\":" MOST ",\"completion_tokens\":" MOST "}}";
    static const char messages[] =
        "{\"content\":[{\"type\":\"text\",\"text\":\"a\"}],\"stop_reason\":\"end_turn\",\"usage\":{"
        "\"input_"
        "tokens\":" MOST ",\"cache_read_input_tokens\":" MOST
        ",\"cache_creation_input_tokens\":" MOST ",\"output_tokens\":" MOST "}}";
#undef MOST
    static const struct {
        const struct translate_pair *pair;
        const char *bytes;
    } rows[] = {{&responses_over_chat, chat},
                {&responses_over_messages, messages},
                {&chat_over_messages, messages}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        BUF_CLEANUP struct buf out = {0};
        struct sg_error err = {0};
        CU_ASSERT_EQUAL(answer(*rows[i].pair, false, str_of(rows[i].bytes), &out, &err), SG_OK);
        CU_ASSERT_PTR_NOT_NULL(strstr(out.data, "\"a\""));
        CU_ASSERT_PTR_NULL(strstr(out.data, "_tokens\":"));
    }
}

/* Cut, it could be another tool's. */
static void a_name_of_more_than_256_bytes_fails(void)
{
    for (size_t count = 256; count <= 257; count++) {
        BUF_CLEANUP struct buf pieces = {0}, whole = {0}, name = {0};
        for (size_t i = 0; i < count; i++) {
            const char *letter = i % 2 == 0 ? "a" : "b";
            (void)buf_puts(&name, letter);
            (void)buf_printf(
                &pieces, DELTA("{\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"%s\"}}]}"),
                letter);
        }
        (void)buf_puts(&pieces, DONE);
        (void)buf_printf(&whole, DELTA("{\"tool_calls\":[{\"function\":{\"name\":\"%s\"}}]}") DONE,
                         name.data);
        const struct buf *const answers[] = {&pieces, &whole};
        for (size_t i = 0; i < COUNT_OF(answers); i++) {
            BUF_CLEANUP struct buf out = {0};
            struct sg_error err = {0};
            int code = answer(responses_over_chat, true, buf_str(answers[i]), &out, &err);
            CU_ASSERT_EQUAL(code, count == 256 ? SG_OK : SG_E_UNAVAILABLE);
            CU_ASSERT_STRING_EQUAL(
                err.message,
                count == 256 ? "" : "The upstream calls a tool by a name of more than 256 bytes");
            CU_ASSERT_EQUAL(strstr(out.data, name.data) != NULL, count == 256);
        }
    }
}

/* What is kept of an answer for its end is on somebody's account: all of it. */
static void inputs_that_wait_for_the_end_of_their_answer_count_as_kept(void)
{
    BUF_CLEANUP struct buf bytes = {0}, out = {0};
    struct sg_error err = {0};
    (void)buf_puts(&bytes, "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{"
                           "\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"f\",\"input\":\"");
    for (size_t i = 0; i < 100000; i++) {
        (void)buf_putc(&bytes, 'x');
    }
    (void)buf_puts(&bytes, "\"}}\n\n");
    struct translation *translation = translate_open(chat_over_messages, NULL);
    translation_answer_begin(translation, true);
    size_t before = translation_kept(translation);
    CU_ASSERT_EQUAL(translation_answer_feed(translation, buf_str(&bytes), &out, &err), SG_OK);
    CU_ASSERT_TRUE(before < 1000);
    CU_ASSERT_TRUE(translation_kept(translation) >= 100000);
    translation_free(translation);
}

/* ---- which translations there are ---- */

static void each_api_goes_to_chat_and_to_messages(void)
{
    static const char *const names[] = {"chat", "messages", "responses", "other"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        for (size_t k = 0; k < COUNT_OF(names); k++) {
            bool expected = i != k && i < 3 && k < 2;
            CU_ASSERT_EQUAL(translation_exists(names[i], names[k]), expected);
        }
    }
}

static const struct test tests[] = {
    TEST(a_last_event_may_lack_its_empty_line),
    TEST(white_space_in_an_answer_does_no_harm),
    TEST(logprobs_on_several_lines_go_on_in_one),
    TEST(logprobs_of_half_a_character_are_kept),
    TEST(an_event_that_is_called_error_is_one),
    TEST(texts_with_nul_and_halves_of_pairs_are_whole),
    TEST(names_and_ids_with_odd_characters_stay_within_their_strings),
    TEST(more_than_128_calls_of_a_server_of_chat_fail),
    TEST(more_than_128_calls_cannot_be_told_on_chat),
    TEST(more_than_4096_blocks_are_not_understood),
    TEST(more_than_4096_parts_cannot_be_told),
    TEST(json_that_is_too_deep_is_not_understood),
    TEST(arguments_as_a_deep_object_are_text_to_us),
    TEST(a_whole_answer_of_more_than_32_mib_fails),
    TEST(counts_that_no_model_reaches_are_not_counted),
    TEST(a_name_of_more_than_256_bytes_fails),
    TEST(inputs_that_wait_for_the_end_of_their_answer_count_as_kept),
    TEST(each_api_goes_to_chat_and_to_messages),
};

int main(int argc, char **argv)
{
    return run_tests("translate_hostile", tests, COUNT_OF(tests), argc, argv);
}
