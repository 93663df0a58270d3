/* Upstreams and clients that mean harm: bounds hold, nothing is told twice, and what comes out is still a good stream. */
#include "responses_bench.h"
#include "base/limits.h"
#include "surface/member_stream.h"

static void a_turn_has_so_many_items_and_an_item_so_many_parts(void)
{
    BENCH_CLEANUP struct bench items = bench_new(0), parts = bench_new(0);
    bench_open(&items, STREAM_BODY);
    CU_ASSERT_EQUAL(surface_responses.wants_stream(items.exchange), true);
    surface_responses.turn_begin(items.exchange, true);
    int code = SG_OK, i = 0;
    for (; code == SG_OK && i < 1000; i++) {
        BUF_CLEANUP struct buf event = {0};
        buf_printf(&event,
                   EVENT("output_item.added", "\"output_index\":%d,\"item\":{\"id\":\"m%d\","
                                              "\"type\":\"message\",\"content\":[]}"),
                   i, i);
        code = surface_responses.turn_feed(items.exchange, buf_str(&event), &items.out, &items.err);
    }
    CU_ASSERT_EQUAL(code, SG_E_UNAVAILABLE);
    CU_ASSERT_EQUAL(i, 513);
    CU_ASSERT_STRING_EQUAL(items.err.message,
                           "The upstream's answer cannot be understood: more than "
                           "512 items in one turn");
    bench_open(&parts, STREAM_BODY);
    surface_responses.turn_begin(parts.exchange, true);
    for (i = 0, code = SG_OK; code == SG_OK && i < 1000; i++) {
        BUF_CLEANUP struct buf event = {0};
        buf_printf(&event,
                   EVENT("output_text.delta", "\"output_index\":0,\"item_id\":\"m\","
                                              "\"content_index\":%d,\"delta\":\"x\""),
                   3 * i);
        code = surface_responses.turn_feed(parts.exchange, buf_str(&event), &parts.out, &parts.err);
    }
    CU_ASSERT_EQUAL(i, 513);
    CU_ASSERT_STRING_EQUAL(parts.err.message,
                           "The upstream's answer cannot be understood: more than "
                           "512 parts in an item");
}

#define ANNOTATION(more)                                                           \
    "data: {\"type\":\"response.output_text.annotation.added\",\"item_id\":\"m\"," \
    "\"output_index\":0,\"content_index\":0,\"annotation\":{\"type\":\"x\"" more "}}\n\n"

static void a_part_has_so_many_annotations_one_by_one_or_at_once(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0), plain = bench_new(0);
    bench_open(&b, STREAM_BODY);
    surface_responses.turn_begin(b.exchange, true);
    int code = SG_OK, i = 0;
    for (; code == SG_OK && i < 5000; i++) {
        code = surface_responses.turn_feed(b.exchange, STR(ANNOTATION("")), &b.out, &b.err);
    }
    CU_ASSERT_EQUAL(code, SG_E_UNAVAILABLE);
    CU_ASSERT_EQUAL(i, 4097);
    CU_ASSERT_STRING_EQUAL(b.err.message, "The upstream's answer cannot be understood: more than "
                                          "4096 annotations in a part");
    BUF_CLEANUP struct buf answer = {0};
    buf_puts(&answer, "{\"status\":\"completed\",\"output\":[{\"type\":\"message\",\"content\":"
                      "[{\"type\":\"output_text\",\"text\":\"a\",\"annotations\":[0");
    for (i = 0; i < 4096; i++) {
        buf_puts(&answer, ",0");
    }
    buf_puts(&answer, "]}]}]}");
    bench_open(&plain, PLAIN_BODY);
    CU_ASSERT_EQUAL(bench_try_turn(&plain, false, answer.data), SG_E_UNAVAILABLE);
    CU_ASSERT_STRING_EQUAL(plain.err.message, b.err.message);
}

static void what_a_new_annotation_costs_does_not_grow_with_those_before(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, STREAM_BODY);
    char *big = arena_alloc(b.arena, 4 * MIB + 1);
    memset(big, 'x', 4 * MIB);
    big[4 * MIB] = '\0';
    BUF_CLEANUP struct buf event = {0};
    buf_printf(&event, ANNOTATION(",\"title\":\"%s\""), big);
    surface_responses.turn_begin(b.exchange, true);
    CU_ASSERT_EQUAL(surface_responses.turn_feed(b.exchange, buf_str(&event), &b.out, &b.err),
                    SG_OK);
    for (int i = 0; i < 4000; i++) { /* 16 GB to walk, if those before were */
        CU_ASSERT_EQUAL_FATAL(
            surface_responses.turn_feed(b.exchange, STR(ANNOTATION("")), &b.out, &b.err), SG_OK);
    }
    CU_ASSERT_PTR_NOT_NULL(strstr(b.out.data, "\"annotation_index\":4000,"));
}

static void what_a_turn_keeps_is_bounded(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, "{\"model\":\"m\",\"input\":\"hi\",\"tools\":[" CODE_TOOL "]}");
    char *big = arena_alloc(b.arena, MIB + 1);
    memset(big, 'x', MIB);
    BUF_CLEANUP struct buf event = {0};
    buf_printf(&event, EVENT("output_text.delta", "\"output_index\":0,\"delta\":\"%s\""), big);
    surface_responses.turn_begin(b.exchange, true);
    int code = SG_OK, i = 0;
    for (; code == SG_OK && i < 64; i++) {
        code = surface_responses.turn_feed(b.exchange, buf_str(&event), &b.out, &b.err);
        CU_ASSERT_TRUE(surface_responses.turn_bytes(b.exchange) >= (size_t)i * MIB);
    }
    CU_ASSERT_EQUAL(code, SG_E_UNAVAILABLE);
    CU_ASSERT_EQUAL(i, 33);
    CU_ASSERT_STRING_EQUAL(b.err.message, "The upstream's answer is larger than 32 MiB");
}

static void ends_that_are_told_again_cost_little(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, "{\"model\":\"m\",\"input\":\"hi\",\"tools\":[" CODE_TOOL "]}");
    char *big = arena_alloc(b.arena, 4 * MIB + 1);
    memset(big, 'x', 4 * MIB);
    BUF_CLEANUP struct buf event = {0};
    buf_printf(&event, CALL_OPEN("0", "f", "c", "code_interpreter") PIECE("0", "f", "%s"), big);
    surface_responses.turn_begin(b.exchange, true);
    CU_ASSERT_EQUAL(surface_responses.turn_feed(b.exchange, buf_str(&event), &b.out, &b.err),
                    SG_OK);
    for (int i = 0; i < 20000; i++) { /* 80 GB to decode, if each were looked at */
        CU_ASSERT_EQUAL_FATAL(
            surface_responses.turn_feed(b.exchange,
                                        STR(EVENT("function_call_arguments.done",
                                                  "\"output_index\":0,\"arguments\":\"{}\"")),
                                        &b.out, &b.err),
            SG_OK);
    }
}

static void members_told_twice_are_not_understood(void)
{
    static const char *const turns[] = {
        "data: {\"type\":\"response.created\",\"type\":\"x\"}\n\n",
        EVENT("output_item.added", "\"item\":{\"type\":\"message\",\"type\":\"function_call\"}"),
        EVENT("output_item.done",
              "\"item\":{\"type\":\"message\",\"content\":[{\"type\":\"output_text\","
              "\"text\":\"a\",\"text\":\"b\"}]}"),
        EVENT("completed", "\"response\":{\"output\":[],\"output\":[]}")};
    for (size_t i = 0; i < COUNT_OF(turns); i++) {
        BENCH_CLEANUP struct bench b = bench_new(0);
        bench_open(&b, PLAIN_BODY);
        CU_ASSERT_EQUAL(bench_try_turn(&b, true, turns[i]), SG_E_UNAVAILABLE);
    }
}

static void plain_answers_that_are_none_are_not_understood(void)
{
    static const char *const answers[] = {"",
                                          "[]",
                                          "{}",
                                          "{\"output\":{}}",
                                          "nonsense",
                                          "{\"status\":\"in_progress\",\"output\":[]}",
                                          "{\"error\":{\"message\":\"no\"},\"output\":[]}"};
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        BENCH_CLEANUP struct bench b = bench_new(0);
        bench_open(&b, PLAIN_BODY);
        CU_ASSERT_EQUAL(bench_try_turn(&b, false, answers[i]), SG_E_UNAVAILABLE);
        CU_ASSERT_NOT_EQUAL(b.err.message[0], '\0');
    }
}

static void text_with_line_ends_in_it_stays_one_line(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_plain_turn(
        b, "{\"output\": [\n {\"type\": \"message\",\n\"id\": \"m\", \"extra\": {\n\"a\":\r\n1},"
           "\"content\":[\n{\"type\":\"output_text\",\n\"text\":\"x\\ny\"}]}\n]\n}");
    bench_finish(b, "");
    CHECKED_CLEANUP struct checked c = checked_read(&b->out);
    CU_ASSERT_STRING_EQUAL(c.text.data, "x\ny");
}

static void what_upstreams_write_over_lines_goes_to_the_client_in_one(void)
{
    in_any_pieces(text_with_line_ends_in_it_stays_one_line);
}

static void no_event_is_smuggled_into_the_clients_stream(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(
        b,
        UP_CREATED EVENT(
            "output_item.added",
            "\"output_index\":0,\"item\":{\"id\":\"i\","
            "\"type\":\"mcp_call\"}") "data: {\"type\":\"response.mcp_call.in_progress\\n\\ndata: "
                                      "{}\\n\\n\",\"output_index\":0}\n\n"
                                      "data: "
                                      "{\"type\":\"response.mcp_call.other\",\"output_index\":0}"
                                      "\n\n"
                                      "data: "
                                      "{\"type\":\"response.mcp_call.in_progress\",\"output_"
                                      "index\":0}\n\n"
                                      "event: response.output_text.delta\\n\ndata: "
                                      "{\"delta\":\"x\"}\n\n" UP_END);
    bench_finish(b, "");
    CHECKED_CLEANUP struct checked c = checked_read(&b->out);
    CU_ASSERT_STRING_EQUAL(c.order.data,
                           "created in_progress output_item.added mcp_call.in_progress "
                           "output_item.done completed ");
}

static void only_events_that_clients_know_go_on(void)
{
    in_any_pieces(no_event_is_smuggled_into_the_clients_stream);
}

static void more_references_than_can_be_looked_up_are_refused(void)
{
    STORE_CLEANUP struct bench_store store;
    bench_store_init(&store);
    BENCH_CLEANUP struct bench first = bench_new(0), b = bench_new(0);
    first.store = b.store = &store.store;
    bench_open(&first, PLAIN_BODY);
    bench_turn(&first, UP_CREATED SAY("0", "msg_long_enough", "x") UP_END);
    bench_finish(&first, "");
    BUF_CLEANUP struct buf body = {0};
    buf_puts(&body, "{\"model\":\"m\",\"input\":[");
    for (int i = 0; i < 257; i++) {
        buf_printf(&body, "%s{\"id\":\"msg_long_enough\"}", i == 0 ? "" : ",");
    }
    buf_puts(&body, "]}");
    CU_ASSERT_EQUAL(bench_try_open(&b, body.data), SG_E_INVALID);
    CU_ASSERT_STRING_EQUAL(b.err.message, "More than 256 references to items");
}

static void a_chain_that_goes_in_a_circle_ends(void)
{
    STORE_CLEANUP struct bench_store store;
    bench_store_init(&store);
    static const char record[] = "{\"v\":1,\"response\":{\"id\":\"resp_sg1\",\"output\":[]},"
                                 "\"previous\":\"resp_sg1\",\"input\":[],"
                                 "\"input_ids\":[],\"calls\":{}}";
    struct str id = STR("resp_sg1");
    store.store.keep(&store, &id, 1, str_of(record));
    BENCH_CLEANUP struct bench b = bench_new(0);
    b.store = &store.store;
    CU_ASSERT_EQUAL(bench_try_open(&b, "{\"model\":\"m\",\"input\":\"x\",\"previous_response_id\":"
                                       "\"resp_sg1\"}"),
                    SG_E_INVALID);
    CU_ASSERT_STRING_EQUAL(b.err.message, "More than 256 responses before this one");
}

/* ---- the text of a member, as it comes ---- */

static void expect_text(const char *object, const char *text)
{
    for (size_t piece = 1; piece < 9; piece++) {
        struct member_stream stream;
        member_stream_init(&stream, "code");
        struct str rest = str_of(object);
        while (rest.len > 0) {
            size_t len = piece < rest.len ? piece : rest.len;
            member_stream_feed(&stream, (struct str){rest.data, len});
            rest = (struct str){rest.data + len, rest.len - len};
        }
        member_stream_end(&stream);
        if (!str_is(buf_str(&stream.text), text)) {
            fprintf(stderr, "%s: got '%.*s'\n", object, (int)stream.text.len, stream.text.data);
        }
        CU_ASSERT_TRUE(str_is(buf_str(&stream.text), text));
        member_stream_clear(&stream);
    }
}

static void the_text_of_a_member_is_decoded_in_any_pieces(void)
{
    expect_text("{\"code\":\"a\\n\\\"b\\\\\\u0041\\ud83d\\ude00é\"}", "a\n\"b\\A😀é");
    expect_text(
        " {\"x\" : [\"code\", {\"code\":\"no\"}], \"y\":\"code\",\"z\":1.5e3,\"code\" : \"yes\"}",
        "yes");
    expect_text("{\"code\":\"one\",\"code\":\"two\"}", "one");
    expect_text("{\"code\":5,\"other\":\"\\\"}\"}", "");
    expect_text("{\"codes\":\"a\",\"cod\":\"b\"}", "");
    expect_text("{\"code\":\"\\ud83dx\\ude00\\ud83d\"}", "�x��");
    expect_text("{\"code\":\"\\q\\u00g1\"}", "\\q�g1");
    expect_text("{\"code\":\"unfinished \\", "unfinished ");
    expect_text("```json\n{\"code\":\"fenced\"}\n```", "fenced");
    expect_text("[]}}]{\"code\":\"late\"}", "late");
    expect_text("\"code\"", "");
    expect_text("", "");
}

static const struct test tests[] = {
    TEST(a_turn_has_so_many_items_and_an_item_so_many_parts),
    TEST(a_part_has_so_many_annotations_one_by_one_or_at_once),
    TEST(what_a_new_annotation_costs_does_not_grow_with_those_before),
    TEST(what_a_turn_keeps_is_bounded),
    TEST(ends_that_are_told_again_cost_little),
    TEST(members_told_twice_are_not_understood),
    TEST(plain_answers_that_are_none_are_not_understood),
    TEST(what_upstreams_write_over_lines_goes_to_the_client_in_one),
    TEST(only_events_that_clients_know_go_on),
    TEST(more_references_than_can_be_looked_up_are_refused),
    TEST(a_chain_that_goes_in_a_circle_ends),
    TEST(the_text_of_a_member_is_decoded_in_any_pieces),
};

int main(int argc, char **argv)
{
    return run_tests("responses_hostile", tests, COUNT_OF(tests), argc, argv);
}
