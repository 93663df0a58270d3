/* What a client of responses that keeps no items of ours gets back into its history: calls of ours and their results, where
 * they stood beside its own calls. The memory here is a list; the gateway's is in core/session/records.c. */
#include "responses_bench.h"

#include "memory_fixture.h"

#include "base/limits.h"

#define TOOLS "\"tools\":[" CODE_TOOL "," OWN_TOOL "]"
#define BODY "{\"model\":\"m\",\"input\":\"hi\"," TOOLS "}"
#define THOUGHT(id, seal) \
    "{\"id\":\"" id "\",\"type\":\"reasoning\",\"summary\":[],\"encrypted_content\":\"" seal "\"}"
#define OURS(call_id, text)                                                                  \
    CALL_ITEM("fc_" call_id, call_id, "code_interpreter", "{\\\"code\\\":\\\"" text "\\\"}", \
              "completed")
#define THEIRS(call_id, part) \
    CALL_ITEM("fc_" call_id, call_id, "get_stock", "{\\\"part\\\": \\\"" part "\\\"}", "completed")
/* As they go up, with digits of ours as zeros. */
#define ZEROS "00000000000000000000000000000000"
#define UP_CALL(name, text)                                                            \
    "{\"type\":\"function_call\",\"call_id\":\"call_ci_sg" ZEROS "\",\"name\":\"" name \
    "\",\"arguments\":\"{\\\"code\\\":\\\"" text "\\\"}\"}"
#define UP_RESULT(text)                                                                         \
    "{\"type\":\"function_call_output\",\"call_id\":\"call_ci_sg" ZEROS "\",\"output\":\"" text \
    "\"}"
#define THEIR_CALL(call_id, part)                                          \
    "{\"type\":\"function_call\",\"arguments\":\"{\\\"part\\\": \\\"" part \
    "\\\"}\",\"call_id\":\"" call_id "\",\"name\":\"get_stock\"}"
#define THEIR_RESULT(call_id, text) \
    "{\"type\":\"function_call_output\",\"call_id\":\"" call_id "\",\"output\":\"" text "\"}"
#define SAID(text)                                                                     \
    "{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"annotations\":[]," \
    "\"logprobs\":[]"                                                                  \
    ",\"text\":\"" text "\"}],\"role\":\"assistant\"}"
#define SEALED(seal) "{\"type\":\"reasoning\",\"summary\":[],\"encrypted_content\":\"" seal "\"}"

/* ---- the client ---- */

struct history { /* of the client's, behind its first words */
    cJSON *items;
};

static void history_clear(struct history *h)
{
    cJSON_Delete(h->items);
}
#define HISTORY_CLEANUP __attribute__((cleanup(history_clear)))

/* What it keeps of an answer, without ids. */
static struct history history_of(struct bench *b)
{
    struct history h = {cJSON_CreateArray()};
    cJSON *answer = bench_answer(b), *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(answer, "output"))
    {
        if (strstr("message reasoning function_call", json_str(item, "type")) != NULL) {
            cJSON *mine = cJSON_Duplicate(item, 1);
            cJSON_DeleteItemFromObject(mine, "id");
            cJSON_DeleteItemFromObject(mine, "status");
            cJSON_AddItemToArray(h.items, mine);
        }
    }
    cJSON_Delete(answer);
    return h;
}

/* The results of its functions: "1", "2" … */
static void history_answer(struct history *h)
{
    int count = cJSON_GetArraySize(h->items), n = 0;
    for (int i = 0; i < count; i++) {
        const cJSON *call = cJSON_GetArrayItem(h->items, i);
        if (strcmp(json_str(call, "type"), "function_call") == 0) {
            char text[16];
            (void)snprintf(text, sizeof text, "%d", ++n);
            cJSON *result = cJSON_CreateObject();
            cJSON_AddStringToObject(result, "type", "function_call_output");
            cJSON_AddStringToObject(result, "call_id", json_str(call, "call_id"));
            cJSON_AddStringToObject(result, "output", text);
            cJSON_AddItemToArray(h->items, result);
        }
    }
}

static const char *body_of(struct bench *b, const struct history *h, const char *tools)
{
    char *items = cJSON_PrintUnformatted(h->items);
    const char *body = arena_printf(b->arena,
                                    "{\"model\":\"m\",\"input\":[{\"role\":\"user\",\"content\":"
                                    "\"hi\"},%s%s}",
                                    items + 1, tools);
    free(items);
    return body;
}

/* What goes up of the client's history, with digits of ours as zeros. */
static char *input_of(struct bench *b, const struct history *h, const char *tools)
{
    bench_open(b, body_of(b, h, tools));
    bench_request(b);
    bench_plain_ids(b->request.data);
    char *start = strstr(b->request.data, "\"content\":\"hi\"},");
    CU_ASSERT_PTR_NOT_NULL_FATAL(start);
    start += strlen("\"content\":\"hi\"},");
    char *end = strstr(start, "}],\"tools\"");
    CU_ASSERT_PTR_NOT_NULL_FATAL(end);
    return arena_printf(b->arena, "%.*s", (int)(end + 1 - start), start);
}

static void expect_input(struct bench *b, const struct history *h, const char *wanted)
{
    const char *got = input_of(b, h, "," TOOLS);
    CU_ASSERT_STRING_EQUAL(got, wanted);
    if (strcmp(got, wanted) != 0) {
        fprintf(stderr, "got    %s\nwanted %s\n", got, wanted);
    }
}

/* ---- the first answer ---- */

/* A turn of ours, then one with two of ours and two of the client's. */
static struct history first_answer(struct memory *m, struct bench *b)
{
    (void)m;
    bench_open(b, BODY);
    bench_plain_turn(
        b, PLAIN(THOUGHT("rs_1", "s1") "," MESSAGE("m_1", "First.") "," OURS("c0", "x=1")));
    bench_result(b, 0, "ran");
    bench_plain_turn(
        b, PLAIN(THOUGHT("rs_2", "s2") "," MESSAGE("m_2", "Both.") "," OURS("c0", "5") "," THEIRS(
               "c1", "A") "," OURS("c2", "6") "," THEIRS("c3", "B")));
    CU_ASSERT_EQUAL_FATAL(b->turn.calls_count, 2);
    CU_ASSERT_TRUE(b->turn.has_client_calls);
    bench_result(b, 0, "5!");
    bench_result(b, 1, "6!");
    bench_finish(b, "");
    return history_of(b);
}

#define FRONT                                                                                  \
    SEALED("s1")                                                                               \
    "," SAID("First.") "," UP_CALL("code_interpreter", "x=1") "," UP_RESULT("ran") "," SEALED( \
        "s2") "," SAID("Both.") ","
#define CALLS                        \
    UP_CALL("code_interpreter", "5") \
    "," THEIR_CALL("c1", "A") "," UP_CALL("code_interpreter", "6") "," THEIR_CALL("c3", "B") ","
#define RESULTS \
    UP_RESULT("5!") "," THEIR_RESULT("c1", "1") "," UP_RESULT("6!") "," THEIR_RESULT("c3", "2")
#define AS_IT_IS                                                                                \
    SEALED("s1")                                                                                \
    "," SAID("First.") "," SEALED("s2") "," SAID("Both.") "," THEIR_CALL(                       \
        "c1", "A") "," THEIR_CALL("c3", "B") "," THEIR_RESULT("c1", "1") "," THEIR_RESULT("c3", \
                                                                                          "2")

static void an_answer_is_put_together_again_when_the_results_come(void)
{
    MEMORY_CLEANUP struct memory m;
    memory_open(&m);
    BENCH_CLEANUP struct bench first = bench_with(&m), next = bench_with(&m), last = bench_with(&m);
    HISTORY_CLEANUP struct history h = first_answer(&m, &first);
    CU_ASSERT_EQUAL(m.count, 2); /* one record, under each of the client's ids */
    CU_ASSERT_EQUAL(cJSON_GetArraySize(h.items), 6);
    history_answer(&h);
    CU_ASSERT_TRUE(bench_looks_for(&next, body_of(&next, &h, "")));
    expect_input(&next, &h, FRONT CALLS RESULTS);
    CU_ASSERT_TRUE(str_is(surface_responses.container(next.exchange).id, "cntr_1"));
    cJSON_AddItemToArray(h.items, cJSON_Parse(SAID("Done.")));
    expect_input(&last, &h, FRONT CALLS RESULTS "," SAID("Done."));
}

static void in_a_stream_calls_may_come_first(void)
{
    static const size_t pieces[] = {0, 1, 64};
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        MEMORY_CLEANUP struct memory m;
        memory_open(&m);
        BENCH_CLEANUP struct bench first = bench_with(&m), next = bench_with(&m);
        first.piece = pieces[i];
        bench_open(&first, STREAM_BODY);
        bench_turn(&first,
                   UP_CREATED CALL("0", "fc_1", "c1", "get_stock", "{\\\"part\\\": \\\"A\\\"}")
                       CALL("1", "fc_2", "c2", "code_interpreter", CODE_42) UP_END);
        bench_result(&first, 0, "42");
        bench_finish(&first, "");
        CHECKED_CLEANUP struct checked c = checked_read(&first.out);
        HISTORY_CLEANUP struct history h = {cJSON_CreateArray()};
        cJSON *call = cJSON_Duplicate(c.items[0].done, 1);
        cJSON_DeleteItemFromObject(call, "id");
        cJSON_DeleteItemFromObject(call, "status");
        cJSON_AddItemToArray(h.items, call);
        history_answer(&h);
        expect_input(
            &next, &h,
            THEIR_CALL("c1", "A") "," UP_CALL("code_interpreter", "print(40+2)") "," THEIR_RESULT(
                "c1", "1") "," UP_RESULT("42"));
    }
}

static void an_answer_that_stands_twice_is_put_back_once(void)
{
    MEMORY_CLEANUP struct memory m;
    memory_open(&m);
    BENCH_CLEANUP struct bench first = bench_with(&m), next = bench_with(&m);
    HISTORY_CLEANUP struct history h = first_answer(&m, &first);
    history_answer(&h);
    int count = cJSON_GetArraySize(h.items);
    for (int i = 0; i < count; i++) {
        cJSON_AddItemToArray(h.items, cJSON_Duplicate(cJSON_GetArrayItem(h.items, i), 1));
    }
    expect_input(&next, &h, FRONT CALLS RESULTS "," AS_IT_IS);
}

static void two_answers_are_both_put_back(void)
{
    MEMORY_CLEANUP struct memory m;
    memory_open(&m);
    BENCH_CLEANUP struct bench first = bench_with(&m), other = bench_with(&m),
                               next = bench_with(&m);
    HISTORY_CLEANUP struct history h = first_answer(&m, &first), more = first_answer(&m, &other);
    history_answer(&h);
    history_answer(&more);
    while (cJSON_GetArraySize(more.items) > 0) {
        cJSON_AddItemToArray(h.items, cJSON_DetachItemFromArray(more.items, 0));
    }
    expect_input(&next, &h, FRONT CALLS RESULTS "," FRONT CALLS RESULTS);
}

static void what_was_changed_goes_up_as_the_client_has_it(void)
{
    MEMORY_CLEANUP struct memory m;
    memory_open(&m);
    BENCH_CLEANUP struct bench first = bench_with(&m), next = bench_with(&m), good = bench_with(&m);
    HISTORY_CLEANUP struct history h = first_answer(&m, &first);
    history_answer(&h);
    cJSON *arguments = cJSON_GetObjectItem(cJSON_GetArrayItem(h.items, 4), "arguments");
    cJSON_SetValuestring(arguments, "{\"part\": \"C\"}");
    expect_input(
        &next, &h,
        SEALED("s1") "," SAID("First.") "," SEALED("s2") "," SAID("Both.") "," THEIR_CALL(
            "c1", "C") "," THEIR_CALL("c3", "B") "," THEIR_RESULT("c1", "1") "," THEIR_RESULT("c3",
                                                                                              "2"));
    cJSON_SetValuestring(arguments, "{\"part\":\"A\"}"); /* which means the same */
    CU_ASSERT_PTR_NOT_NULL(strstr(input_of(&good, &h, "," TOOLS), UP_RESULT("5!")));
}

static void without_a_record_the_ids_are_the_upstreams_own(void)
{
    MEMORY_CLEANUP struct memory m;
    memory_open(&m);
    BENCH_CLEANUP struct bench first = bench_with(&m), next = bench_with(&m), alone = bench_new(0);
    HISTORY_CLEANUP struct history h = first_answer(&m, &first);
    history_answer(&h);
    m.count = 0;
    CU_ASSERT_FALSE(bench_looks_for(&next, body_of(&next, &h, "")));
    expect_input(&next, &h, AS_IT_IS);
    expect_input(&alone, &h, AS_IT_IS); /* nor without a memory */
}

static void ids_that_are_long_or_odd_are_not_carried(void)
{
    static const char *const odd[] = {"call_of_more_than_24_bytes", "c\\u00e9", "c d", "c\\\"", ""};
    for (size_t i = 0; i < COUNT_OF(odd); i++) {
        MEMORY_CLEANUP struct memory m;
        memory_open(&m);
        BENCH_CLEANUP struct bench first = bench_with(&m), next = bench_with(&m);
        bench_open(&first, BODY);
        bench_plain_turn(&first,
                         arena_printf(first.arena, PLAIN(OURS("c0", "5") "," THEIRS("%s", "A")),
                                      odd[i], odd[i]));
        bench_result(&first, 0, "5!");
        bench_finish(&first, "");
        HISTORY_CLEANUP struct history h = history_of(&first);
        history_answer(&h);
        expect_input(
            &next, &h,
            UP_CALL("code_interpreter", "5") "," THEIR_CALL("call_sg" ZEROS, "A") "," UP_RESULT(
                "5!") "," THEIR_RESULT("call_sg" ZEROS, "1"));
    }
}

static void ids_stay_where_nothing_is_to_be_found_again(void)
{
    static const char *const bodies[] = {
        BODY, "{\"model\":\"m\",\"input\":\"hi\",\"tools\":[" OWN_TOOL "]}",
        "{\"model\":\"m\",\"input\":\"hi\",\"tool_choice\":\"none\"," TOOLS "}",
        "{\"model\":\"m\",\"input\":\"hi\",\"parallel_tool_calls\":false," TOOLS "}"};
    for (size_t i = 0; i < COUNT_OF(bodies); i++) {
        MEMORY_CLEANUP struct memory m;
        memory_open(&m);
        BENCH_CLEANUP struct bench first = bench_with(&m);
        bench_open(&first, bodies[i]);
        bench_plain_turn(&first, PLAIN(THEIRS("c1", "A")));
        bench_finish(&first, "");
        expect_part(first.out.data, "\"call_id\":\"c1\"");
        CU_ASSERT_EQUAL(m.count, 0);
    }
}

static void calls_of_tools_that_are_never_shown_are_put_back_too(void)
{
    MEMORY_CLEANUP struct memory m;
    memory_open(&m);
    BENCH_CLEANUP struct bench first = bench_with(&m), next = bench_with(&m);
    first.offers[1] = next.offers[1] =
        (struct surface_offer){.name = STR("probe"), .parameters = STR("{}"), .always = true};
    bench_open(&first, BODY);
    bench_plain_turn(
        &first, PLAIN(CALL_ITEM("fc_p", "p", "probe", "{}", "completed") "," THEIRS("c1", "A")));
    bench_result(&first, 0, "seen");
    bench_finish(&first, "");
    CU_ASSERT_PTR_NULL(strstr(first.out.data, "probe\",\"arguments\""));
    HISTORY_CLEANUP struct history h = history_of(&first);
    history_answer(&h);
    expect_input(
        &next, &h,
        "{\"type\":\"function_call\",\"call_id\":\"call_sg" ZEROS
        "\",\"name\":\"probe\",\"arguments\":\"{}\"}," THEIR_CALL("c1", "A") "," THEIR_RESULT(
            "call_sg" ZEROS, "seen") "," THEIR_RESULT("c1", "1"));
}

static void a_function_that_is_called_otherwise_now_is_put_back_under_that_name(void)
{
    MEMORY_CLEANUP struct memory m;
    memory_open(&m);
    BENCH_CLEANUP struct bench first = bench_with(&m), next = bench_with(&m);
    HISTORY_CLEANUP struct history h = first_answer(&m, &first);
    history_answer(&h);
    next.offers[0].name = STR("python");
    const char *input = input_of(&next, &h, "," TOOLS);
    expect_part(input, UP_CALL("python", "x=1"));
    expect_part(input, UP_CALL("python", "6"));
}

static void broken_arguments_are_put_back_as_an_object(void)
{
    MEMORY_CLEANUP struct memory m;
    memory_open(&m);
    BENCH_CLEANUP struct bench first = bench_with(&m), next = bench_with(&m);
    bench_open(&first, BODY);
    bench_plain_turn(&first, PLAIN(CALL_ITEM("fc_0", "c0", "code_interpreter", "{\\\"code",
                                             "completed") "," THEIRS("c1", "A")));
    bench_result(&first, 0, "no");
    bench_finish(&first, "");
    HISTORY_CLEANUP struct history h = history_of(&first);
    history_answer(&h);
    expect_part(input_of(&next, &h, "," TOOLS),
                "\"name\":\"code_interpreter\",\"arguments\":\"{}\"}");
}

static void a_record_that_is_too_large_is_none(void)
{
    MEMORY_CLEANUP struct memory m;
    memory_open(&m);
    BENCH_CLEANUP struct bench first = bench_with(&m), next = bench_with(&m);
    char *large = arena_alloc(first.arena, LIMIT_RECORD_BYTES + 1);
    memset(large, 'x', LIMIT_RECORD_BYTES);
    large[LIMIT_RECORD_BYTES] = '\0';
    bench_open(&first, BODY);
    bench_plain_turn(&first, PLAIN(OURS("c0", "5")));
    bench_result(&first, 0, large);
    bench_plain_turn(&first, PLAIN(THEIRS("c1", "A")));
    bench_finish(&first, "");
    CU_ASSERT_EQUAL(m.count, 0);
    HISTORY_CLEANUP struct history h = history_of(&first);
    history_answer(&h);
    expect_input(&next, &h, THEIR_CALL("c1", "A") "," THEIR_RESULT("c1", "1"));
}

static void a_call_that_was_not_run_is_not_put_back(void)
{
    MEMORY_CLEANUP struct memory m;
    memory_open(&m);
    BENCH_CLEANUP struct bench first = bench_with(&m);
    bench_open(&first, BODY);
    bench_plain_turn(&first, PLAIN(OURS("c0", "5") "," THEIRS("c1", "A")));
    bench_finish(&first, ""); /* a last turn */
    CU_ASSERT_EQUAL(m.count, 0);
}

static void reasoning_of_which_only_the_seal_says_something_stays(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(
        &b, "{\"model\":\"m\",\"input\":[{\"type\":\"reasoning\",\"content\":\"\",\"summary\":[],"
            "\"encrypted_content\":\"s\"}]," TOOLS "}");
    expect_part(bench_request(&b), "\"encrypted_content\":\"s\"");
}

#define SEARCHED(query)                                                            \
    "{\"type\":\"web_search_call\",\"status\":\"completed\",\"action\":{\"type\":" \
    "\"search\",\"query\":\"" query "\"}}"

/* Two answers that searched for the same: the items of the first are gone, those of the second have lost their ids. Each of
 * these stands for one call, and for none of another answer. */
static void an_item_without_its_id_gives_way_to_its_own_call_alone(void)
{
    MEMORY_CLEANUP struct memory m;
    memory_open(&m);
    BENCH_CLEANUP struct bench first = bench_with(&m), other = bench_with(&m),
                               next = bench_with(&m);
    struct bench *const answers[] = {&first, &other};
    HISTORY_CLEANUP struct history h = {cJSON_CreateArray()};
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        bench_open(
            answers[i],
            "{\"model\":\"m\",\"input\":\"hi\",\"tools\":[{\"type\":\"web_search\"}," OWN_TOOL
            "]}");
        bench_plain_turn(answers[i],
                         PLAIN(CALL_ITEM("fc_s", "s", "web_search", "{\\\"query\\\":\\\"q\\\"}",
                                         "completed") "," THEIRS("c1", "A")));
        bench_result(answers[i], 0, "found");
        bench_finish(answers[i], "");
        HISTORY_CLEANUP struct history mine = history_of(answers[i]);
        if (i == 1) {
            cJSON_AddItemToArray(h.items, cJSON_Parse(SEARCHED("q")));
            cJSON_AddItemToArray(h.items, cJSON_Parse(SEARCHED("q")));
        }
        history_answer(&mine);
        while (cJSON_GetArraySize(mine.items) > 0) {
            cJSON_AddItemToArray(h.items, cJSON_DetachItemFromArray(mine.items, 0));
        }
    }
    const char *input = input_of(&next, &h, ",\"tools\":[{\"type\":\"web_search\"}," OWN_TOOL "]");
    CU_ASSERT_STRING_EQUAL(
        input, THEIR_CALL("c1", "A") "," THEIR_RESULT("c1", "1") "," SEARCHED(
                   "q") ","
                        "{\"type\":\"function_call\",\"call_id\":\"call_ws_sg" ZEROS
                        "\",\"name\":\"web_search\",\"arguments\":"
                        "\"{\\\"query\\\":\\\"q\\\"}\"}," THEIR_CALL("c1", "A") "," THEIR_RESULT(
                            "call_ws_sg" ZEROS, "found") "," THEIR_RESULT("c1", "1"));
}

/* The same answer many times over, and one call of it many times: what goes up is bounded by what came. */
static void a_history_that_names_an_answer_often_is_read_once(void)
{
    enum { TIMES = 20000 };
    MEMORY_CLEANUP struct memory m;
    memory_open(&m);
    BENCH_CLEANUP struct bench first = bench_with(&m), next = bench_with(&m);
    HISTORY_CLEANUP struct history h = first_answer(&m, &first);
    BUF_CLEANUP struct buf body = {0};
    buf_puts(&body, "{\"model\":\"m\",\"input\":[");
    for (size_t i = 0; i < TIMES; i++) {
        buf_printf(
            &body,
            "%s{\"type\":\"function_call\",\"call_id\":\"%s\",\"name\":\"f\",\"arguments\":\"\"}",
            i == 0 ? "" : ",", json_str(cJSON_GetArrayItem(h.items, 4 + (int)(i % 2)), "call_id"));
    }
    buf_puts(&body, "]," TOOLS "}");
    bench_open(&next, body.data);
    CU_ASSERT_TRUE(strlen(bench_request(&next)) < body.len);
    CU_ASSERT_EQUAL(m.found, 1);
}

static const struct test tests[] = {
    TEST(an_answer_is_put_together_again_when_the_results_come),
    TEST(in_a_stream_calls_may_come_first),
    TEST(an_answer_that_stands_twice_is_put_back_once),
    TEST(two_answers_are_both_put_back),
    TEST(what_was_changed_goes_up_as_the_client_has_it),
    TEST(without_a_record_the_ids_are_the_upstreams_own),
    TEST(ids_that_are_long_or_odd_are_not_carried),
    TEST(ids_stay_where_nothing_is_to_be_found_again),
    TEST(calls_of_tools_that_are_never_shown_are_put_back_too),
    TEST(a_function_that_is_called_otherwise_now_is_put_back_under_that_name),
    TEST(broken_arguments_are_put_back_as_an_object),
    TEST(a_record_that_is_too_large_is_none),
    TEST(a_call_that_was_not_run_is_not_put_back),
    TEST(an_item_without_its_id_gives_way_to_its_own_call_alone),
    TEST(reasoning_of_which_only_the_seal_says_something_stays),
    TEST(a_history_that_names_an_answer_often_is_read_once),
};

int main(int argc, char **argv)
{
    return run_tests("responses_kept", tests, COUNT_OF(tests), argc, argv);
}
