/* The hosted search on responses: what is asked of it, its items and their events, whole and streamed, beside code and in
 * every way that it can end; and what of it comes back. */
#include "responses_search_fixture.h"
#include "surface/responses_stored.h"

#define ITEM(status, action)                             \
    "{\"type\":\"web_search_call\",\"status\":\"" status \
    "\",\"action\":{\"type\":\"search\"," action "}}"
#define ASKED(query) "\"query\":\"" query "\",\"queries\":[\"" query "\"]"
#define FROM(url) "{\"type\":\"url\",\"url\":\"" url "\"}"

static const struct responses_include with_sources = {&STR(SOURCES), 1};

/* ---- what is asked ---- */

static void options_of_the_entry_are_those_of_each_call(void)
{
    static const struct {
        const char *entry, *options;
    } cases[] = {
        {"{\"type\":\"web_search\"}", ""},
        {"{\"type\":\"web_search_2025_08_26\",\"filters\":{\"allowed_domains\":[\"a.org\"]}}",
         "{\"allowed_domains\":[\"a.org\"]}"},
        {"{\"type\":\"web_search\",\"filters\":{\"blocked_domains\":[\"b.org\"],"
         "\"allowed_domains\":[\"a.org\"],\"new\":1},\"external_web_access\":false}",
         "{\"allowed_domains\":[\"a.org\"],\"blocked_domains\":[\"b.org\"]}"},
        {"{\"type\":\"web_search\",\"filters\":null,\"user_location\":null,"
         "\"search_context_size\":null}",
         ""},
        {"{\"type\":\"web_search_preview\",\"search_context_size\":\"low\",\"user_location\":{"
         "\"type\":\"approximate\",\"country\":\"NL\",\"city\":\"Utrecht\",\"region\":null,"
         "\"timezone\":\"Europe/Amsterdam\"},\"search_content_types\":[\"text\"]}",
         "{\"country\":\"NL\",\"city\":\"Utrecht\",\"timezone\":\"Europe/Amsterdam\","
         "\"context_size\":\"low\"}"},
        {"{\"type\":\"web_search_preview_2025_03_11\",\"search_context_size\":\"high\"},{\"type\":"
         "\"web_search\",\"search_context_size\":\"high\"}",
         "{\"context_size\":\"high\"}"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        BENCH_CLEANUP struct bench b = bench_new(0);
        bench_open(&b,
                   arena_printf(b.arena,
                                "{\"model\":\"m\",\"input\":\"x\",\"tools\":[" CODE_TOOL ",%s]}",
                                cases[i].entry));
        bench_turn(&b, UP_CREATED SEARCH("0", "1", "a") SEARCH("1", "2", "b")
                           CALL("2", "fc_3", "call_3", "code_interpreter", CODE_42) UP_END);
        CU_ASSERT_EQUAL_FATAL(b.turn.calls_count, 3);
        CU_ASSERT_TRUE(str_is(b.turn.calls[0].options, cases[i].options));
        CU_ASSERT_TRUE(str_is(b.turn.calls[1].options, cases[i].options));
        CU_ASSERT_EQUAL(b.turn.calls[2].options.len, 0);
    }
}

static void options_that_cannot_be_heeded_are_refused_by_their_path(void)
{
    static const struct {
        const char *entry, *param, *message;
    } cases[] = {
        {"\"filters\":[]", "tools[1].filters", "tools[1].filters must be an object"},
        {"\"filters\":{\"allowed_domains\":\"a.org\"}", "tools[1].filters.allowed_domains",
         "tools[1].filters.allowed_domains must be an array of domains"},
        {"\"filters\":{\"blocked_domains\":[1]}", "tools[1].filters.blocked_domains",
         "tools[1].filters.blocked_domains must hold domains alone, as in \"example.com\" or "
         "\"example.com/blog\""},
        {"\"user_location\":\"NL\"", "tools[1].user_location",
         "tools[1].user_location must be an object"},
        {"\"max_uses\":1},{\"type\":\"web_search\",\"max_uses\":2", "tools[2]",
         "tools[2] names a tool that is named before, with other options"},
        {"\"search_context_size\":\"huge\"", "tools[1].search_context_size",
         "tools[1].search_context_size must be \"low\", \"medium\" or \"high\""}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        BENCH_CLEANUP struct bench b = bench_new(0);
        int code =
            bench_try_open(&b, arena_printf(b.arena,
                                            "{\"model\":\"m\",\"input\":\"x\",\"tools\":[" OWN_TOOL
                                            ",{\"type\":\"web_search\",%s}]}",
                                            cases[i].entry));
        CU_ASSERT_EQUAL(code, SG_E_INVALID);
        CU_ASSERT_STRING_EQUAL(b.err.param, cases[i].param);
        CU_ASSERT_STRING_EQUAL(b.err.message, cases[i].message);
    }
}

static void a_choice_of_the_search_forces_its_function_in_the_first_turn(void)
{
    static const char *const choices[] = {"{\"type\":\"web_search\"}",
                                          "{\"type\":\"web_search_preview\"}",
                                          "{\"type\":\"web_search_2025_08_26\"}"};
    for (size_t i = 0; i < COUNT_OF(choices); i++) {
        BENCH_CLEANUP struct bench b = bench_new(0);
        bench_open(&b, arena_printf(b.arena, SEARCH_BODY(",\"tool_choice\":%s"), choices[i]));
        expect_part(bench_request(&b),
                    "\"tool_choice\":{\"type\":\"function\",\"name\":\"web_search\"}");
        bench_turn(&b, UP_CREATED SEARCH("0", "1", "q") UP_END);
        FOUND(&b, 0, HIT_A);
        expect_part(bench_request(&b), "\"tool_choice\":\"auto\"");
        bench_turn(&b, UP_CREATED SAY("0", "m", "ok") UP_END);
        bench_finish(&b, "");
        expect_part(b.out.data, arena_printf(b.arena, "\"tool_choice\":%s", choices[i]));
    }
}

/* ---- items and events ---- */

#define EVENTS_OF_A_SEARCH                                                                     \
    "output_item.added web_search_call.in_progress web_search_call.searching web_search_call." \
    "completed output_item.done "
#define EVENTS_OF_A_TEXT                                                                    \
    "output_item.added content_part.added output_text.delta output_text.done content_part." \
    "done output_item.done "

static void one_search(struct bench *b)
{
    bench_open(b, SEARCH_BODY(STREAM WITH_SOURCES));
    bench_turn(b, UP_CREATED SEARCH("0", "1", "musl \\\\u00e9") UP_END);
    CU_ASSERT_TRUE(str_is(b->turn.calls[0].arguments, "{\"query\":\"musl \\u00e9\"}"));
    FOUND(b, 0, HIT_A, HIT_B);
    bench_turn(b, UP_CREATED SAY("0", "msg_1", "Found.") UP_END);
    bench_finish(b, "");
    CHECKED_CLEANUP struct checked c = checked_read(&b->out);
    CU_ASSERT_STRING_EQUAL(c.order.data,
                           "created in_progress " EVENTS_OF_A_SEARCH EVENTS_OF_A_TEXT "completed ");
    CU_ASSERT_EQUAL(strncmp(c.items[0].id, "ws_sg", 5), 0);
    CU_ASSERT_EQUAL(strlen(c.items[0].id), 37);
    CU_ASSERT_EQUAL(cJSON_GetArraySize(c.items[0].added), 3); /* no action yet */
    expect_item(cJSON_GetObjectItem(c.final, "output"), 0,
                ITEM("completed", ASKED("musl é") ",\"sources\":[" FROM("https://a.org/x") "," FROM(
                                      "https://b.org/") "]"));
}

static void a_search_streams_its_steps_and_ends_with_its_query_and_sources(void)
{
    in_any_pieces(one_search);
}

static void sources_are_there_only_for_who_asks_for_them(void)
{
    static const struct {
        const char *more, *action;
        bool is_stream;
    } cases[] = {
        {"", ASKED("q"), false},
        {STREAM, ASKED("q"), true},
        {",\"include\":[\"web_search_call.results\",\"code_interpreter_call.outputs\"]", ASKED("q"),
         false},
        {WITH_SOURCES, ASKED("q") ",\"sources\":[" FROM("https://a.org/x") "]", false},
        {STREAM WITH_SOURCES, ASKED("q") ",\"sources\":[" FROM("https://a.org/x") "]", true}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        BENCH_CLEANUP struct bench b = bench_new(0);
        bench_open(&b, arena_printf(b.arena, SEARCH_BODY("%s"), cases[i].more));
        bench_plain_turn(&b, PLAIN(SEARCH_ITEM("1", "q")));
        FOUND(&b, 0, HIT_A);
        expect_no_part(bench_request(&b), "web_search_call"); /* only we answer it */
        bench_plain_turn(&b, PLAIN(MESSAGE("m", "ok")));
        bench_finish(&b, "");
        cJSON *output = bench_output(&b, cases[i].is_stream);
        CU_ASSERT_EQUAL(cJSON_GetArraySize(output), 2);
        expect_item(output, 0, arena_printf(b.arena, ITEM("completed", "%s"), cases[i].action));
        cJSON_Delete(output);
    }
}

static void several_in_a_turn(struct bench *b)
{
    bench_open(b, SEARCH_BODY(STREAM WITH_SOURCES));
    bench_turn(b, UP_CREATED SEARCH("0", "1", "one") SEARCH("1", "2", "two")
                      SEARCH("2", "3", "three") UP_END);
    CU_ASSERT_EQUAL_FATAL(b->turn.calls_count, 3);
    for (size_t i = 0; i < 3; i++) { /* side by side */
        surface_responses.call_begin(b->exchange, i, STR(""), &b->out);
    }
    struct surface_output hit = {SG_OUT_HIT, STR(HIT_B)};
    struct surface_result results[] = {
        {.status = SURFACE_CALL_COMPLETED, .model_text = STR("none")},
        {.status = SURFACE_CALL_FAILED, .model_text = STR("no")},
        {.model_text = STR("one"), .outputs = &hit, .outputs_count = 1}};
    for (size_t i = 0; i < 3; i++) {
        surface_responses.call_end(b->exchange, i, &results[i], &b->out);
    }
    expect_part(bench_request(b),
                "{\"type\":\"function_call_output\",\"call_id\":\"call_1\",\"output\":\"none\"},"
                "{\"type\":\"function_call_output\",\"call_id\":\"call_2\",\"output\":\"no\"},{"
                "\"type\":\"function_call_output\",\"call_id\":\"call_3\",\"output\":\"one\"}");
    bench_turn(b, UP_CREATED SAY("0", "msg_1", "ok") UP_END);
    bench_finish(b, "");
    CHECKED_CLEANUP struct checked c = checked_read(&b->out);
    const cJSON *output = cJSON_GetObjectItem(c.final, "output");
    CU_ASSERT_EQUAL_FATAL(c.items_count, 4);
    expect_item(output, 0, ITEM("completed", ASKED("one") ",\"sources\":[]"));
    expect_item(output, 1, ITEM("failed", ASKED("two") ",\"sources\":[]"));
    expect_item(output, 2,
                ITEM("completed", ASKED("three") ",\"sources\":[" FROM("https://b.org/") "]"));
}

static void several_searches_of_a_turn_are_an_item_each(void)
{
    in_any_pieces(several_in_a_turn);
}

static void code_between_searches(struct bench *b)
{
    bench_open(b, SEARCH_BODY(STREAM WITH_SOURCES));
    bench_turn(b, UP_CREATED SEARCH("0", "1", "one") CALL("1", "fc_2", "call_2", "code_interpreter",
                                                          CODE_42) SEARCH("2", "3", "two") UP_END);
    CU_ASSERT_EQUAL_FATAL(b->turn.calls_count, 3);
    CU_ASSERT_EQUAL(b->turn.calls[1].offer, 0);
    FOUND(b, 0, HIT_A);
    bench_result(b, 1, "42\n");
    FOUND(b, 2, HIT_B);
    bench_turn(b, UP_CREATED CALL("0", "fc_1", "call_1", "code_interpreter", CODE_42) UP_END);
    bench_result(b, 0, "42\n");
    bench_turn(b, UP_CREATED SEARCH("0", "1", "three") UP_END);
    FOUND(b, 0, HIT_A);
    bench_turn(b, UP_CREATED SAY("0", "msg_1", "Done.") UP_END);
    bench_finish(b, "");
    CHECKED_CLEANUP struct checked c = checked_read(&b->out);
    static const char *const types[] = {"web_search_call", "code_interpreter_call",
                                        "web_search_call", "code_interpreter_call",
                                        "web_search_call", "message"};
    CU_ASSERT_EQUAL_FATAL(c.items_count, (int)COUNT_OF(types));
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        CU_ASSERT_STRING_EQUAL(c.items[i].type, types[i]);
    }
}

static void code_and_searches_stand_in_their_order_in_a_turn_and_alternating(void)
{
    in_any_pieces(code_between_searches);
}

/* ---- other ends ---- */

static void searches_that_find_nothing_for_a_reason_are_failed(void)
{
    static const struct {
        const char *arguments; /* inner */
        enum surface_call_status status;
        const char *action, *order;
    } cases[] = {
        {QUERY("q"), SURFACE_CALL_FAILED, ASKED("q"),
         "output_item.added web_search_call.in_progress web_search_call.searching "
         "output_item.done "},
        {QUERY("q"), SURFACE_CALL_NOT_RUN, ASKED("q"), /* over a limit of the gateway's */
         "output_item.added web_search_call.in_progress output_item.done "},
        {"{\\\"q\\\":1}", SURFACE_CALL_FAILED, "\"query\":\"\",\"queries\":[]", "searching "},
        {"{\\\"query\\\":7}", SURFACE_CALL_FAILED, "\"query\":\"\",\"queries\":[]", "searching "},
        {"nonsense", SURFACE_CALL_FAILED, "\"query\":\"\",\"queries\":[]", "searching "}};
    for (size_t i = 0; i < 2 * COUNT_OF(cases); i++) {
        bool is_stream = i % 2 == 1;
        BENCH_CLEANUP struct bench b = bench_new(0);
        bench_open(&b, is_stream ? SEARCH_BODY(STREAM) : SEARCH_BODY(""));
        bench_plain_turn(
            &b, arena_printf(b.arena,
                             PLAIN(CALL_ITEM("fc_1", "call_1", "web_search", "%s", "completed")),
                             cases[i / 2].arguments));
        bench_not_found(&b, 0, cases[i / 2].status);
        bench_plain_turn(&b, PLAIN(MESSAGE("m", "No.")));
        bench_finish(&b, "");
        cJSON *output = bench_output(&b, is_stream);
        expect_item(output, 0, arena_printf(b.arena, ITEM("failed", "%s"), cases[i / 2].action));
        cJSON_Delete(output);
        if (is_stream) {
            CHECKED_CLEANUP struct checked c = checked_read(&b.out);
            expect_part(c.order.data, cases[i / 2].order);
            expect_no_part(c.order.data, "web_search_call.completed");
        }
    }
}

static void an_answer_that_breaks_off_closes_its_search_as_failed(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    struct sg_error err = {0};
    error_set(&err, SG_E_UNAVAILABLE, "It broke.");
    bench_open(&b, SEARCH_BODY(STREAM));
    bench_turn(&b, UP_CREATED SEARCH("0", "1", "q") UP_END);
    surface_responses.call_begin(b.exchange, 0, STR(""), &b.out);
    surface_responses.fail(b.exchange, &err, &b.out);
    CHECKED_CLEANUP struct checked c = checked_read(&b.out);
    CU_ASSERT_STRING_EQUAL(c.terminal, "failed");
    CU_ASSERT_EQUAL_FATAL(c.items_count, 1);
    expect_item(cJSON_GetObjectItem(c.final, "output"), 0, ITEM("failed", ASKED("q")));
}

static void a_search_that_the_token_limit_cuts_is_failed(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, SEARCH_BODY(STREAM));
    bench_turn(&b, UP_CREATED CALL_OPEN("0", "fc_1", "call_1", "web_search")
                       PIECE("0", "fc_1", "{\\\"query\\\":\\\"how hi")
                           EVENT("incomplete", "\"response\":{\"status\":\"incomplete\","
                                               "\"incomplete_details\":{\"reason\":\"max_output_"
                                               "tokens\"},\"output\":[]}"));
    CU_ASSERT_TRUE(b.turn.length);
    bench_finish(&b, "");
    CHECKED_CLEANUP struct checked c = checked_read(&b.out);
    CU_ASSERT_STRING_EQUAL(c.terminal, "incomplete");
    expect_item(cJSON_GetObjectItem(c.final, "output"), 0, ITEM("failed", ASKED("how hi")));
}

static void searches_count_as_calls_of_the_clients_limit(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, SEARCH_BODY(STREAM ",\"max_tool_calls\":1"));
    CU_ASSERT_EQUAL(surface_responses.calls_max(b.exchange), 1);
    bench_turn(&b, UP_CREATED SEARCH("0", "1", "one") SEARCH("1", "2", "two") UP_END);
    FOUND(&b, 0, HIT_A);
    bench_not_found(&b, 1, SURFACE_CALL_NOT_RUN);
    bench_turn(&b, UP_CREATED SAY("0", "msg_1", "ok") UP_END);
    bench_finish(&b, "");
    CHECKED_CLEANUP struct checked c = checked_read(&b.out);
    CU_ASSERT_EQUAL(c.items_count, 2); /* the second is not shown */
}

/* ---- what comes back ---- */

#define PAST(id, status, action) \
    "{\"id\":\"" id "\",\"type\":\"web_search_call\",\"status\":\"" status "\"" action "}"
#define PAST_BODY(item) "{\"model\":\"m\",\"input\":[" item "],\"tools\":[" SEARCH_TOOL "]}"
#define PAST_CALL                                                                        \
    "\"input\":[{\"type\":\"function_call\",\"call_id\":\"call_ws_sg1\",\"name\":\"web_" \
    "search\",\"arguments\":\"{\\\"query\\\":\\\"q\\\"}\"},{\"type\":\"function_call_"   \
    "output\",\"call_id\":\"call_ws_sg1\",\"output\":\""

static void a_search_in_the_history_becomes_a_call_and_what_is_known_of_its_result(void)
{
    static const struct {
        const char *input, *up;
    } cases[] = {
        {PAST_BODY(PAST("ws_sg1", "completed",
                        ",\"action\":{\"type\":\"search\",\"query\":\"q\",\"queries\":[\"q\"]}")),
         PAST_CALL "The results of this search are no longer available.\"}]"},
        {PAST_BODY(PAST("ws_sg1", "completed",
                        ",\"action\":{\"type\":\"search\",\"query\":\"q\",\"sources\":[" FROM(
                            "https://a.org/x") ",1,{}," FROM("https://b.org/") "]}")),
         PAST_CALL "The search found these pages; what they say is no longer available.\\nhttps:"
                   "//a.org/x\\nhttps://b.org/\"}]"},
        {PAST_BODY(PAST("ws_sg1", "failed", ",\"action\":{\"type\":\"search\",\"query\":\"q\"}")),
         PAST_CALL "The search failed. Whether there are results is not known.\"}]"},
        {PAST_BODY(PAST("ws_sg1", "completed", "")),
         "\"arguments\":\"{\\\"query\\\":\\\"\\\"}\"},"},
        {PAST_BODY(
             PAST("ws_68", "completed", ",\"action\":{\"type\":\"open_page\",\"url\":\"u\"}")),
         "\"input\":[" PAST("ws_68", "completed",
                            ",\"action\":{\"type\":\"open_page\",\"url\":\"u\"}") "]"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        BENCH_CLEANUP struct bench b = bench_new(0);
        bench_open(&b, cases[i].input);
        expect_part(bench_request(&b), cases[i].up);
        struct surface_container none = surface_responses.container(b.exchange);
        CU_ASSERT_EQUAL(none.id.len, 0);
    }
}

static void where_the_search_is_not_offered_it_becomes_text(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    const char *body = "{\"model\":\"m\",\"input\":[" PAST(
        "ws_sg1", "completed", ",\"action\":{\"type\":\"search\",\"query\":\"q\"}") "]}";
    CU_ASSERT_TRUE(bench_looks_for(&b, body));
    bench_open(&b, body);
    expect_part(bench_request(&b),
                "\"text\":\"[web_search was called with {\\\"query\\\":\\\"q\\\"} and returned:]"
                "\\nThe results of this search are no longer available.\"");
}

/* However the client comes back to it, the model gets what it was told then, once. */
static void what_the_model_was_told_of_a_search_is_found_again(void)
{
    static const char *const inputs[] = {
        "\"input\":\"and?\",\"previous_response_id\":\"resp_sg" ID_A "\"",
        "\"input\":[{\"type\":\"item_reference\",\"id\":\"%s\"}]",
        "\"input\":[" PAST("%s", "completed",
                           ",\"action\":{\"type\":\"search\",\"query\":\"q\",\"queries\":[\"q\"],"
                           "\"sources\":[" FROM("https://a.org/x") "]}") "]"};
    STORE_CLEANUP struct bench_store store;
    bench_store_init(&store);
    BENCH_CLEANUP struct bench first = bench_new(0);
    const char *id = answer_searched(&first, &store, SEARCH_BODY(STREAM));
    for (size_t i = 0; i < COUNT_OF(inputs); i++) {
        BENCH_CLEANUP struct bench b = bench_new(0);
        BUF_CLEANUP struct buf input = {0};
        const char *place = strstr(inputs[i], "%s");
        buf_append(&input, inputs[i],
                   place == NULL ? strlen(inputs[i]) : (size_t)(place - inputs[i]));
        buf_puts(&input, place == NULL ? "" : id);
        buf_puts(&input, place == NULL ? "" : place + 2);
        b.store = &store.store;
        bench_open(&b, arena_printf(b.arena, "{\"model\":\"m\",%s,\"tools\":[" SEARCH_TOOL "]}",
                                    input.data));
        const char *body = bench_request(&b);
        expect_part(body, arena_printf(b.arena,
                                       "{\"type\":\"function_call\",\"call_id\":\"call_%s\",\"name"
                                       "\":\"web_search\",\"arguments\":\"{\\\"query\\\":\\\"q\\\""
                                       "}\"},{\"type\":\"function_call_output\",\"call_id\":"
                                       "\"call_%s\",\"output\":\"" TOLD "\"}",
                                       id, id));
        expect_no_part(body, "no longer available");
    }
}

static void a_kept_search_shows_its_sources_to_who_asks_later(void)
{
    STORE_CLEANUP struct bench_store store;
    bench_store_init(&store);
    BENCH_CLEANUP struct bench b = bench_new(0);
    BUF_CLEANUP struct buf whole = {0}, less = {0}, replay = {0};
    struct responses_record record;
    struct str data;
    answer_searched(&b, &store, SEARCH_BODY(""));
    CU_ASSERT_TRUE_FATAL(bench_store_find(&store, STR("resp_sg" ID_A), &data));
    CU_ASSERT_TRUE_FATAL(responses_record_read(data, b.arena, &record));
    responses_stored_put(&record, NULL, &less);
    CU_ASSERT_TRUE(str_eq(buf_str(&less), buf_str(&b.out)));
    responses_stored_put(&record, &with_sources, &whole);
    expect_part(whole.data, ",\"action\":{\"type\":\"search\"," ASKED("q") ",\"sources\":[" FROM(
                                "https://a.org/x") "," FROM("https://b.org/") "]}}");
    responses_stored_replay(&record, &with_sources, -1, &replay);
    CHECKED_CLEANUP struct checked c = checked_read(&replay);
    expect_part(c.order.data, "created in_progress " EVENTS_OF_A_SEARCH "output_item.added content_"
                              "part.added output_text.delta output_text.annotation.added "
                              "output_text.done ");
    ANSWER_CLEANUP cJSON *kept = cJSON_Parse(whole.data);
    CU_ASSERT_TRUE(cJSON_Compare(cJSON_GetObjectItem(c.final, "output"),
                                 cJSON_GetObjectItem(kept, "output"), true));
}

static void a_kept_search_that_failed_is_replayed_as_failed(void)
{
    STORE_CLEANUP struct bench_store store;
    bench_store_init(&store);
    BENCH_CLEANUP struct bench b = bench_new(0);
    BUF_CLEANUP struct buf replay = {0};
    struct responses_record record;
    b.store = &store.store;
    bench_open(&b, SEARCH_BODY(""));
    bench_turn(&b, UP_CREATED SEARCH("0", "1", "q") UP_END);
    bench_not_found(&b, 0, SURFACE_CALL_NOT_RUN);
    bench_turn(&b, UP_CREATED SAY("0", "m", "No.") UP_END);
    bench_finish(&b, "");
    CU_ASSERT_TRUE_FATAL(responses_record_read(buf_str(&store.records[0].data), b.arena, &record));
    responses_stored_replay(&record, NULL, -1, &replay);
    CHECKED_CLEANUP struct checked c = checked_read(&replay);
    expect_item(cJSON_GetObjectItem(c.final, "output"), 0, ITEM("failed", ASKED("q")));
}

/* ---- hostile ---- */

static void a_thousand_hits_and_urls_of_any_text_stay_good_json(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    const char *hits[1000];
    for (size_t i = 0; i < COUNT_OF(hits); i++) {
        hits[i] = arena_printf(b.arena, HIT("https://a.org/%zu?\\\"}]\\\\<\\u0001", "\\\"T"), i);
    }
    bench_open(&b, SEARCH_BODY(STREAM WITH_SOURCES));
    bench_turn(&b, UP_CREATED SEARCH("0", "1", "\\\\\\\"}] ") UP_END);
    bench_found(&b, 0, hits, COUNT_OF(hits));
    bench_turn(&b, UP_CREATED SAY("0", "m", "[1] [999]") UP_END);
    bench_finish(&b, "");
    CHECKED_CLEANUP struct checked c = checked_read(&b.out);
    const cJSON *action = cJSON_GetObjectItem(c.items[0].done, "action");
    const cJSON *sources = cJSON_GetObjectItem(action, "sources");
    CU_ASSERT_STRING_EQUAL(json_str(action, "query"), "\"}] ");
    CU_ASSERT_EQUAL(cJSON_GetArraySize(sources), 1000);
    CU_ASSERT_STRING_EQUAL(json_str(cJSON_GetArrayItem(sources, 998), "url"),
                           "https://a.org/998?\"}]\\<\x01");
    const cJSON *part = cJSON_GetArrayItem(cJSON_GetObjectItem(c.items[1].done, "content"), 0);
    const cJSON *cited = cJSON_GetArrayItem(cJSON_GetObjectItem(part, "annotations"), 1);
    CU_ASSERT_STRING_EQUAL(json_str(cited, "url"), "https://a.org/998?\"}]\\<\x01");
}

static void sources_beyond_what_an_answer_can_hold_are_left_out(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    char *path = arena_alloc(b.arena, 9 * 1024 * 1024 + 1);
    memset(path, 'a', 9 * 1024 * 1024);
    const char *hit = arena_printf(b.arena, HIT("https://a.org/%s", "T"), path);
    bench_open(&b, SEARCH_BODY(WITH_SOURCES));
    for (int i = 0; i < 2; i++) {
        bench_turn(&b, UP_CREATED SEARCH("0", "1", "q") UP_END);
        bench_found(&b, 0, &hit, 1);
    }
    bench_turn(&b, UP_CREATED SAY("0", "m", "ok") UP_END);
    bench_finish(&b, "");
    cJSON *output = bench_output(&b, false);
    const cJSON *action = cJSON_GetObjectItem(cJSON_GetArrayItem(output, 0), "action");
    CU_ASSERT_EQUAL(cJSON_GetArraySize(cJSON_GetObjectItem(action, "sources")), 1);
    expect_item(output, 1, ITEM("completed", ASKED("q") ",\"sources\":[]"));
    cJSON_Delete(output);
}

static const struct test tests[] = {
    TEST(options_of_the_entry_are_those_of_each_call),
    TEST(options_that_cannot_be_heeded_are_refused_by_their_path),
    TEST(a_choice_of_the_search_forces_its_function_in_the_first_turn),
    TEST(a_search_streams_its_steps_and_ends_with_its_query_and_sources),
    TEST(sources_are_there_only_for_who_asks_for_them),
    TEST(several_searches_of_a_turn_are_an_item_each),
    TEST(code_and_searches_stand_in_their_order_in_a_turn_and_alternating),
    TEST(searches_that_find_nothing_for_a_reason_are_failed),
    TEST(an_answer_that_breaks_off_closes_its_search_as_failed),
    TEST(a_search_that_the_token_limit_cuts_is_failed),
    TEST(searches_count_as_calls_of_the_clients_limit),
    TEST(a_search_in_the_history_becomes_a_call_and_what_is_known_of_its_result),
    TEST(where_the_search_is_not_offered_it_becomes_text),
    TEST(what_the_model_was_told_of_a_search_is_found_again),
    TEST(a_kept_search_shows_its_sources_to_who_asks_later),
    TEST(a_kept_search_that_failed_is_replayed_as_failed),
    TEST(a_thousand_hits_and_urls_of_any_text_stay_good_json),
    TEST(sources_beyond_what_an_answer_can_hold_are_left_out),
};

int main(int argc, char **argv)
{
    return run_tests("responses_search", tests, COUNT_OF(tests), argc, argv);
}
