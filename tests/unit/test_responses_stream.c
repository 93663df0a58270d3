/* The client's stream on responses, fed by streams of every kind. Each scenario is run with whole events, single bytes and
 * odd pieces, and the client's bytes must be the same; the strict checker reads them. */
#include "responses_bench.h"

/* ---- text and runs ---- */

static void plain_text(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b, UP_CREATED EVENT("in_progress", "\"response\":{\"model\":\"m-1\"}")
                      MESSAGE_OPEN("0", "msg_1")
                          EVENT("output_text.delta",
                                "\"sequence_number\":4,\"item_id\":\"msg_1\",\"output_index\":0,"
                                "\"content_index\":0,\"delta\":\"caf\\u00e9 \",\"logprobs\":"
                                "[{\"token\":\"x\",\"logprob\":-1.0}],\"obfuscation\":\"zzz\"")
                              TEXT("0", "msg_1", "😀") MESSAGE_CLOSE("0", "msg_1", "café 😀") UP_END);
    CU_ASSERT_EQUAL(b->turn.calls_count, 0);
    CU_ASSERT_TRUE(b->turn.has_text);
    CU_ASSERT_EQUAL(b->turn.usage.output_tokens, 4);
    bench_finish(b, "unused");
    expect_stream(b, "café 😀", "completed", 1);
    /* The upstream's event, but for what is ours. */
    CU_ASSERT_PTR_NOT_NULL(strstr(
        b->out.data, "event: response.output_text.delta\ndata: {\"type\":\"response.output_text."
                     "delta\",\"sequence_number\":4,\"item_id\":\"msg_1\",\"output_index\":0,"
                     "\"content_index\":0,\"delta\":\"caf\\u00e9 \",\"logprobs\":[{\"token\":\"x\","
                     "\"logprob\":-1.0}],\"obfuscation\":\"zzz\"}\n\n"));
}

static void b16_plain_text_goes_through_with_its_bytes(void)
{
    in_any_pieces(plain_text);
}

static void run_then_text(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    CU_ASSERT_TRUE(surface_responses.wants_stream(b->exchange));
    bench_turn(b, RUN_42);
    CU_ASSERT_EQUAL_FATAL(b->turn.calls_count, 1);
    bench_result(b, 0, "42\n");
    bench_turn(b, UP_CREATED SAY("0", "msg_1", "It is 42.") UP_END);
    bench_finish(b, "");
    CHECKED_CLEANUP struct checked c = checked_read(&b->out);
    CU_ASSERT_STRING_EQUAL(
        c.order.data,
        "created in_progress output_item.added code_interpreter_call.in_progress "
        "code_interpreter_call_code.delta code_interpreter_call_code.done "
        "code_interpreter_call.interpreting code_interpreter_call.completed output_item.done "
        "output_item.added content_part.added output_text.delta output_text.done "
        "content_part.done output_item.done completed ");
    CU_ASSERT_STRING_EQUAL(c.text.data, "It is 42.");
    CU_ASSERT_STRING_EQUAL(c.items[0].code.data, "print(40+2)");
    expect_printed(cJSON_GetObjectItem(c.items[0].added, "outputs"), "[]");
    expect_printed(cJSON_GetObjectItem(c.items[0].done, "outputs"),
                   "[{\"type\":\"logs\",\"logs\":\"42\\n\"}]");
    CU_ASSERT_PTR_NULL(strstr(b->out.data, "function_call"));
    CU_ASSERT_PTR_NULL(strstr(b->out.data, "fc_1"));
}

static void b15_b17_a_run_and_then_a_message_come_in_the_hosted_order(void)
{
    in_any_pieces(run_then_text);
}

static void code_as_it_comes(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    surface_responses.turn_begin(b->exchange, true);
    CU_ASSERT_EQUAL(surface_responses.turn_feed(
                        b->exchange,
                        STR(UP_CREATED CALL_OPEN("0", "fc_1", "call_1", "code_interpreter")
                                PIECE("0", "fc_1", "{\\\"code\\\": \\\"a = 1\\\\")),
                        &b->out, &b->err),
                    SG_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(b->out.data, "\"delta\":\"a = 1\""));
    CU_ASSERT_EQUAL(surface_responses.turn_feed(b->exchange,
                                                STR(PIECE("0", "fc_1", "nprint(a)\\\\ud83d")),
                                                &b->out, &b->err),
                    SG_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(b->out.data, "\"delta\":\"\\nprint(a)\""));
    CU_ASSERT_EQUAL(
        surface_responses.turn_feed(
            b->exchange,
            STR(PIECE("0", "fc_1", "\\\\ude00\\\", \\\"x\\\": {\\\"code\\\": \\\"no\\\"}}")
                    CALL_CLOSE("0", "fc_1", "call_1", "code_interpreter",
                               "{\\\"code\\\": \\\"a = 1\\\\nprint(a)\\\\ud83d\\\\ude00\\\", "
                               "\\\"x\\\": {\\\"code\\\": \\\"no\\\"}}") UP_END),
            &b->out, &b->err),
        SG_OK);
    CU_ASSERT_EQUAL(surface_responses.turn_end(b->exchange, &b->out, &b->turn, &b->err), SG_OK);
    bench_result(b, 0, "1");
    bench_turn(b, UP_CREATED SAY("0", "msg_1", "1.") UP_END);
    bench_finish(b, "");
    CHECKED_CLEANUP struct checked c = checked_read(&b->out);
    CU_ASSERT_STRING_EQUAL(c.items[0].code.data, "a = 1\nprint(a)😀");
}

static void code_is_shown_as_it_comes_whatever_splits_its_escapes(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    code_as_it_comes(&b);
}

static void two_runs(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b, UP_CREATED SAY("0", "msg_1", "Let me see.")
                      CALL("1", "fc_1", "call_1", "code_interpreter", "{\\\"code\\\":\\\"1\\\"}")
                          CALL("2", "fc_2", "call_2", "code_interpreter",
                               "{\\\"code\\\":\\\"2\\\"}") UP_END);
    CU_ASSERT_EQUAL_FATAL(b->turn.calls_count, 2);
    bench_result(b, 0, "one");
    bench_result(b, 1, "two");
    const char *sent = bench_request_with(b, (struct surface_turn_options){.stream = true});
    CU_ASSERT_PTR_NOT_NULL(strstr(sent, "\"call_id\":\"call_1\",\"output\":\"one\"},{\"type\":"
                                        "\"function_call_output\",\"call_id\":\"call_2\","
                                        "\"output\":\"two\"}]"));
    bench_turn(b, UP_CREATED CALL("0", "fc_1", "call_1", "code_interpreter",
                                  "{\\\"code\\\":\\\"3\\\"}") UP_END);
    bench_result(b, 0, "three");
    bench_turn(b, UP_CREATED SAY("0", "msg_1", "Done.") UP_END);
    bench_finish(b, "");
    CHECKED_CLEANUP struct checked c = checked_read(&b->out);
    CU_ASSERT_EQUAL(c.items_count, 5);
    CU_ASSERT_STRING_EQUAL(c.text.data, "Let me see.|Done.");
    CU_ASSERT_STRING_EQUAL(json_str(c.items[1].done, "code"), "1");
    CU_ASSERT_STRING_EQUAL(json_str(c.items[2].done, "code"), "2");
    CU_ASSERT_STRING_EQUAL(json_str(c.items[3].done, "code"), "3");
    CU_ASSERT_STRING_EQUAL(c.items[0].id, "msg_1");
    CU_ASSERT_EQUAL(strncmp(c.items[4].id, "msg_sg", 6), 0); /* msg_1 was there before */
    CU_ASSERT_EQUAL(json_num(cJSON_GetObjectItem(c.final, "usage"), "input_tokens"), 15);
}

static void c008_indexes_and_ids_are_valid_over_all_turns(void)
{
    in_any_pieces(two_runs);
}

static void without_include(struct bench *b)
{
    bench_open(b, "{\"model\":\"m\",\"stream\":true,\"input\":\"hi\",\"tools\":[" CODE_TOOL "]}");
    bench_turn(b, RUN_42);
    bench_result(b, 0, "42\n");
    bench_turn(b, UP_CREATED SAY("0", "msg_1", "It is 42.") UP_END);
    bench_finish(b, "");
    CHECKED_CLEANUP struct checked c = checked_read(&b->out);
    expect_printed(cJSON_GetObjectItem(c.items[0].added, "outputs"), "null");
    expect_printed(cJSON_GetObjectItem(c.items[0].done, "outputs"), "null");
}

static void c088_without_include_outputs_are_null(void)
{
    in_any_pieces(without_include);
}

static void silent_run(struct bench *b)
{
    struct surface_result nothing = {.status = SURFACE_CALL_COMPLETED, .model_text = STR("ok")};
    bench_open(b, STREAM_BODY);
    bench_turn(b, RUN_42);
    surface_responses.call_begin(b->exchange, 0, STR("cntr_1"), &b->out);
    surface_responses.call_end(b->exchange, 0, &nothing, &b->out);
    bench_turn(b, UP_CREATED SAY("0", "msg_1", "Done.") UP_END);
    bench_finish(b, "");
    CHECKED_CLEANUP struct checked c = checked_read(&b->out);
    expect_printed(cJSON_GetObjectItem(c.items[0].done, "outputs"), "[]");
}

static void b14_no_output_is_an_empty_list(void)
{
    in_any_pieces(silent_run);
}

static void all_outputs(struct bench *b)
{
    const struct surface_output outputs[] = {
        {SG_OUT_LOG_OUT, STR("one\n")},
        {SG_OUT_LOG_ERR, STR("warning\n")},
        {SG_OUT_RESULT, STR("{\"text/plain\":\"<Figure>\",\"image/png\":\"iVBO\\nRw==\"}")},
        {SG_OUT_FILE, STR("{\"path\":\"a\"}")},
        {SG_OUT_RESULT, STR("{\"text/plain\":\"(1, 2)\"}")},
        {SG_OUT_RESULT, STR("{\"image/svg+xml\":\"<svg a=\\\"1\\\"/>\"}")},
        {SG_OUT_EXCEPTION, STR("{\"name\":\"E\",\"traceback\":\"Traceback: E\"}")}};
    struct surface_result ran = {.status = SURFACE_CALL_COMPLETED,
                                 .model_text = STR("told"),
                                 .outputs = outputs,
                                 .outputs_count = COUNT_OF(outputs)};
    bench_open(b, STREAM_BODY);
    bench_turn(b, RUN_42);
    surface_responses.call_begin(b->exchange, 0, STR("cntr_1"), &b->out);
    surface_responses.call_end(b->exchange, 0, &ran, &b->out);
    bench_turn(b, UP_CREATED SAY("0", "msg_1", "Done.") UP_END);
    bench_finish(b, "");
    CHECKED_CLEANUP struct checked c = checked_read(&b->out);
    expect_printed(
        cJSON_GetObjectItem(c.items[0].done, "outputs"),
        "[{\"type\":\"logs\",\"logs\":\"one\\nwarning\\n\"},{\"type\":\"image\",\"url\":"
        "\"data:image/png;base64,iVBORw==\"},{\"type\":\"logs\",\"logs\":\"(1, 2)\\n\"},{\"type\":"
        "\"image\",\"url\":\"data:image/svg+xml;utf8,%3Csvg a=%221%22/%3E\"},{\"type\":\"logs\","
        "\"logs\":\"Traceback: E\\n\"}]");
}

static void c088_logs_and_images_stand_in_the_order_in_which_they_were_shown(void)
{
    in_any_pieces(all_outputs);
}

static void failed_run(struct bench *b)
{
    struct surface_result broken = {.status = SURFACE_CALL_FAILED,
                                    .model_text = STR("[sandbox unavailable]")};
    struct surface_result refused = {.status = SURFACE_CALL_NOT_RUN,
                                     .model_text = STR("[limit reached]")};
    bench_open(b, STREAM_BODY);
    bench_turn(b, UP_CREATED CALL("0", "fc_1", "call_1", "code_interpreter", CODE_42)
                      CALL("1", "fc_2", "call_2", "code_interpreter", CODE_42) UP_END);
    surface_responses.call_begin(b->exchange, 0, STR("cntr_1"), &b->out);
    surface_responses.call_end(b->exchange, 0, &broken, &b->out);
    surface_responses.call_end(b->exchange, 1, &refused, &b->out);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench_request(b), "\"output\":\"[limit reached]\""));
    bench_turn(b, UP_CREATED SAY("0", "msg_1", "Sorry.") UP_END);
    bench_finish(b, "");
    CHECKED_CLEANUP struct checked c = checked_read(&b->out);
    CU_ASSERT_STRING_EQUAL(json_str(c.items[0].done, "status"), "failed");
    CU_ASSERT_STRING_EQUAL(json_str(c.items[1].done, "status"), "incomplete");
}

static void a_broken_sandbox_shows_as_failed_and_a_refused_call_as_incomplete(void)
{
    in_any_pieces(failed_run);
}

static void bad_arguments(struct bench *b)
{
    static const char *const turns[] = {
        UP_CREATED CALL("0", "f", "call_1", "code_interpreter", "print(1)") UP_END,
        UP_CREATED CALL("0", "f", "call_1", "code_interpreter",
                        "```json\\n{\\\"code\\\":\\\"1\\\"}\\n```") UP_END,
        UP_CREATED CALL("0", "f", "call_1", "code_interpreter", "{\\\"code\\\":\\\"x = ") UP_END,
        UP_CREATED CALL("0", "f", "call_1", "code_interpreter", "{\\\"cod\\\":[\\\"code\\\"]}")
            UP_END,
        UP_CREATED CALL("0", "f", "call_1", "code_interpreter", "") UP_END,
    };
    static const char *const codes[] = {"", "1", "x = ", "", ""};
    static const char *const told[] = {"print(1)", "{\"code\":\"1\"}",
                                       "{\"code\":\"x = ", "{\"cod\":[\"code\"]}", ""};
    bench_open(b, STREAM_BODY);
    for (size_t i = 0; i < COUNT_OF(turns); i++) {
        bench_turn(b, turns[i]);
        CU_ASSERT_EQUAL_FATAL(b->turn.calls_count, 1);
        CU_ASSERT_TRUE(str_is(b->turn.calls[0].arguments, told[i]));
        bench_result(b, 0, "[invalid call]");
        bench_request(b);
    }
    bench_turn(b, UP_CREATED SAY("0", "msg_1", "Hm.") UP_END);
    bench_finish(b, "");
    CHECKED_CLEANUP struct checked c = checked_read(&b->out);
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        CU_ASSERT_STRING_EQUAL(c.items[i].code.data, codes[i]);
    }
}

static void arguments_may_be_anything_and_code_is_what_could_be_read(void)
{
    in_any_pieces(bad_arguments);
}

/* ---- reasoning, refusals, annotations, other items ---- */

#define REASON                                                                                  \
    EVENT("output_item.added", "\"output_index\":0,\"item\":{\"id\":\"rs_1\",\"type\":"         \
                               "\"reasoning\",\"summary\":[],\"encrypted_content\":\"abc\"}")   \
    EVENT("reasoning_summary_part.added", "\"item_id\":\"rs_1\",\"output_index\":0,"            \
                                          "\"summary_index\":0,\"part\":{\"type\":"             \
                                          "\"summary_text\",\"text\":\"\"}")                    \
    EVENT("reasoning_summary_text.delta", "\"item_id\":\"rs_1\",\"output_index\":0,"            \
                                          "\"summary_index\":0,\"delta\":\"Think\"")            \
    EVENT("reasoning_summary_text.delta", "\"item_id\":\"rs_1\",\"output_index\":0,"            \
                                          "\"summary_index\":0,\"delta\":\"ing.\"")             \
    EVENT("reasoning_summary_text.done", "\"item_id\":\"rs_1\",\"output_index\":0,"             \
                                         "\"summary_index\":0,\"text\":\"Thinking.\"")          \
    EVENT("reasoning_summary_part.done", "\"item_id\":\"rs_1\",\"output_index\":0,"             \
                                         "\"summary_index\":0,\"part\":{\"type\":"              \
                                         "\"summary_text\",\"text\":\"Thinking.\"}")            \
    EVENT("output_item.done", "\"output_index\":0,\"item\":{\"id\":\"rs_1\",\"type\":"          \
                              "\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":" \
                              "\"Thinking.\"}],\"encrypted_content\":\"abcdef\"}")

static void reasoning(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b,
               UP_CREATED REASON CALL("1", "fc_1", "call_1", "code_interpreter", CODE_42) UP_END);
    bench_result(b, 0, "42");
    CU_ASSERT_PTR_NOT_NULL(
        strstr(bench_request(b),
               "{\"id\":\"rs_1\",\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\","
               "\"text\":\"Thinking.\"}],\"encrypted_content\":\"abcdef\"},{\"id\":\"fc_1\""));
    bench_turn(b, UP_CREATED SAY("0", "msg_1", "42.") UP_END);
    bench_finish(b, "");
    CHECKED_CLEANUP struct checked c = checked_read(&b->out);
    CU_ASSERT_STRING_EQUAL(c.items[0].type, "reasoning");
    CU_ASSERT_STRING_EQUAL(json_str(c.items[0].done, "encrypted_content"), "abcdef");
    CU_ASSERT_STRING_EQUAL(c.items[0].parts[0].text.data, "Thinking.");
    CU_ASSERT_STRING_EQUAL(c.items[1].type, "code_interpreter_call");
}

static void reasoning_comes_live_and_goes_up_before_its_call(void)
{
    in_any_pieces(reasoning);
}

static void empty_reasoning(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b, UP_CREATED EVENT("output_item.added", "\"output_index\":0,\"item\":{\"id\":"
                                                        "\"rs_1\",\"type\":\"reasoning\"}")
                      EVENT("output_item.done", "\"output_index\":0,\"item\":{\"id\":\"rs_1\","
                                                "\"type\":\"reasoning\",\"summary\":[]}")
                          CALL("1", "fc_1", "call_1", "code_interpreter", CODE_42) UP_END);
    bench_result(b, 0, "42");
    CU_ASSERT_PTR_NULL(strstr(bench_request(b), "rs_1"));
    bench_turn(b, UP_CREATED SAY("0", "msg_1", "42.") UP_END);
    bench_finish(b, "");
    expect_stream(b, "42.", "completed", 3);
}

static void reasoning_that_carries_nothing_does_not_go_up(void)
{
    in_any_pieces(empty_reasoning);
}

static void reasoning_text(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    /* No item, no part: only deltas, as some servers have it. */
    bench_turn(b, UP_CREATED EVENT("reasoning_text.delta", "\"item_id\":\"rs_1\",\"output_index\":"
                                                           "0,\"content_index\":0,\"delta\":\"Hm\"")
                      EVENT("reasoning_text.delta", "\"item_id\":\"rs_1\",\"output_index\":0,"
                                                    "\"content_index\":0,\"delta\":\"m\"")
                          SAY("1", "msg_1", "Yes.") UP_END);
    bench_finish(b, "");
    CHECKED_CLEANUP struct checked c = checked_read(&b->out);
    CU_ASSERT_STRING_EQUAL(c.items[0].type, "reasoning");
    expect_printed(cJSON_GetObjectItem(c.items[0].done, "content"),
                   "[{\"type\":\"reasoning_text\",\"text\":\"Hmm\"}]");
}

static void c008_reasoning_that_was_never_opened_is_opened(void)
{
    in_any_pieces(reasoning_text);
}

static void refusal_and_annotations(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b,
               UP_CREATED MESSAGE_OPEN("0", "msg_1") TEXT("0", "msg_1", "See x.")
                   EVENT("output_text.annotation.added",
                         "\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,"
                         "\"annotation_index\":0,\"annotation\":{\"type\":\"url_citation\",\"url\":"
                         "\"https://x\",\"title\":\"x\",\"start_index\":4,\"end_index\":5}")
                       EVENT("output_text.done", "\"item_id\":\"msg_1\",\"output_index\":0,"
                                                 "\"content_index\":0,\"text\":\"See x.\"")
                           EVENT("content_part.added",
                                 "\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":1,"
                                 "\"part\":{\"type\":\"refusal\",\"refusal\":\"\"}")
                               EVENT("refusal.delta", "\"item_id\":\"msg_1\",\"output_index\":0,"
                                                      "\"content_index\":1,\"delta\":\"No.\"")
                                   EVENT("refusal.done", "\"item_id\":\"msg_1\",\"output_index\":0,"
                                                         "\"content_index\":1,\"refusal\":\"No.\"")
                                       UP_END);
    bench_finish(b, "");
    CHECKED_CLEANUP struct checked c = checked_read(&b->out);
    CU_ASSERT_STRING_EQUAL(c.text.data, "See x.No.");
    expect_printed(cJSON_GetObjectItem(c.items[0].done, "content"),
                   "[{\"type\":\"output_text\",\"annotations\":[{\"type\":\"url_citation\",\"url\":"
                   "\"https://x\",\"title\":\"x\",\"start_index\":4,\"end_index\":5}],\"logprobs\":"
                   "[],\"text\":\"See x.\"},{\"type\":\"refusal\",\"refusal\":\"No.\"}]");
}

static void refusals_and_annotations_come_live(void)
{
    in_any_pieces(refusal_and_annotations);
}

#define SEARCH_ITEM                                                                                \
    "{\"id\":\"ws_1\",\"type\":\"web_search_call\",\"status\":\"completed\",\"action\":{\"type\":" \
    "\"search\",\"query\":\"q\"},\"big\":12345678901234567890}"

static void other_items(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b,
               UP_CREATED EVENT("output_item.added", "\"output_index\":0,\"item\":{\"id\":\"ws_1\","
                                                     "\"type\":\"web_search_call\",\"status\":"
                                                     "\"in_progress\"}")
                   EVENT("web_search_call.searching", "\"item_id\":\"ws_1\",\"output_index\":0")
                       EVENT("brand_new.event", "\"item_id\":\"ws_1\",\"output_index\":0")
                           EVENT("output_item.done", "\"output_index\":0,\"item\":" SEARCH_ITEM)
                               CALL("1", "fc_1", "call_1", "code_interpreter", CODE_42) UP_END);
    CU_ASSERT_EQUAL_FATAL(b->turn.calls_count, 1);
    bench_result(b, 0, "42");
    CU_ASSERT_PTR_NOT_NULL(strstr(bench_request(b), SEARCH_ITEM ",{\"id\":\"fc_1\""));
    bench_turn(b, UP_CREATED SAY("0", "msg_1", "42.") UP_END);
    bench_finish(b, "");
    CHECKED_CLEANUP struct checked c = checked_read(&b->out);
    CU_ASSERT_STRING_EQUAL(c.items[0].id, "ws_1");
    CU_ASSERT_PTR_NOT_NULL(strstr(b->out.data, "12345678901234567890"));
    CU_ASSERT_PTR_NOT_NULL(strstr(c.order.data, "web_search_call.searching"));
    CU_ASSERT_PTR_NULL(strstr(b->out.data, "brand_new"));
}

static void b46_unknown_items_pass_whole_and_unknown_events_do_not(void)
{
    in_any_pieces(other_items);
}

/* ---- streams of a hosted service ---- */

static void read_file(const char *file, struct buf *to)
{
    char path[512], piece[4096];
    (void)snprintf(path, sizeof path, "%s/responses/%s", TEST_DATA, file); /* fits */
    FILE *f = fopen(path, "rb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    for (size_t n; (n = fread(piece, 1, sizeof piece, f)) > 0;) {
        buf_append(to, piece, n);
    }
    (void)fclose(f);
}

/* What such a service sends, items of its own tools included, reaches the client event for event. */
static void hosted_streams_go_through_event_for_event(void)
{
    static const char *const files[] = {"text.sse",
                                        "incomplete.sse",
                                        "mixed-function-call.sse",
                                        "reasoning-code-interpreter.sse",
                                        "web-search.sse",
                                        "code-interpreter.sse",
                                        "two-code-interpreter-calls.sse"};
    static const size_t pieces[] = {0, 1, 7};
    for (size_t i = 0; i < COUNT_OF(files) * COUNT_OF(pieces); i++) {
        BENCH_CLEANUP struct bench b = bench_new(pieces[i % COUNT_OF(pieces)]);
        BUF_CLEANUP struct buf sent = {0};
        read_file(files[i / COUNT_OF(pieces)], &sent);
        bench_open(&b, STREAM_BODY);
        bench_turn(&b, sent.data);
        CU_ASSERT_EQUAL(b.turn.calls_count, 0);
        bench_finish(&b, "");
        CHECKED_CLEANUP struct checked up = checked_read(&sent);
        CHECKED_CLEANUP struct checked down = checked_read(&b.out);
        CU_ASSERT_STRING_EQUAL(up.order.data, down.order.data);
        CU_ASSERT_STRING_EQUAL(up.terminal, down.terminal);
        CU_ASSERT_EQUAL_FATAL(up.items_count, down.items_count);
        for (int k = 0; k < up.items_count; k++) {
            CU_ASSERT_TRUE(cJSON_Compare(up.items[k].added, down.items[k].added, true));
            CU_ASSERT_TRUE(cJSON_Compare(up.items[k].done, down.items[k].done, true));
        }
        CU_ASSERT_TRUE(cJSON_Compare(cJSON_GetObjectItem(up.final, "usage"),
                                     cJSON_GetObjectItem(down.final, "usage"), true));
    }
}

/* ---- a plain upstream, a streaming client; and the other way round ---- */

static void plain_upstream(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_plain_turn(b, PLAIN("{\"id\":\"rs_1\",\"type\":\"reasoning\",\"summary\":[{\"type\":"
                              "\"summary_text\",\"text\":\"Hm.\"}]}," CALL_ITEM(
                                  "fc_1", "call_1", "code_interpreter", CODE_42, "completed")));
    bench_result(b, 0, "42");
    bench_plain_turn(b, PLAIN("{\"type\":\"message\",\"content\":[{\"type\":\"output_text\","
                              "\"text\":\"42.\",\"annotations\":[{\"type\":\"file_path\",\"file_"
                              "id\":\"f\",\"index\":0}]}]}"));
    bench_finish(b, "");
    CHECKED_CLEANUP struct checked c = checked_read(&b->out);
    CU_ASSERT_EQUAL(c.items_count, 3);
    CU_ASSERT_STRING_EQUAL(c.text.data, "42.");
    CU_ASSERT_PTR_NOT_NULL(strstr(c.order.data, "output_text.annotation.added"));
    CU_ASSERT_PTR_NOT_NULL(strstr(c.order.data, "reasoning_summary_text.delta"));
}

static void b17_a_plain_answer_is_told_as_a_stream(void)
{
    in_any_pieces(plain_upstream);
}

static const struct test tests[] = {
    TEST(b16_plain_text_goes_through_with_its_bytes),
    TEST(b15_b17_a_run_and_then_a_message_come_in_the_hosted_order),
    TEST(code_is_shown_as_it_comes_whatever_splits_its_escapes),
    TEST(c008_indexes_and_ids_are_valid_over_all_turns),
    TEST(c088_without_include_outputs_are_null),
    TEST(b14_no_output_is_an_empty_list),
    TEST(c088_logs_and_images_stand_in_the_order_in_which_they_were_shown),
    TEST(a_broken_sandbox_shows_as_failed_and_a_refused_call_as_incomplete),
    TEST(arguments_may_be_anything_and_code_is_what_could_be_read),
    TEST(reasoning_comes_live_and_goes_up_before_its_call),
    TEST(reasoning_that_carries_nothing_does_not_go_up),
    TEST(c008_reasoning_that_was_never_opened_is_opened),
    TEST(refusals_and_annotations_come_live),
    TEST(b46_unknown_items_pass_whole_and_unknown_events_do_not),
    TEST(hosted_streams_go_through_event_for_event),
    TEST(b17_a_plain_answer_is_told_as_a_stream),
};

int main(int argc, char **argv)
{
    return run_tests("responses_stream", tests, COUNT_OF(tests), argc, argv);
}
