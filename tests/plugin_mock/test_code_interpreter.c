/* code_interpreter: what the model is told, in order and within the bound; what is run and what is not; what becomes of
 * each failure. The host plays the sandbox, so every text is known exactly. */
#include "interceptor_fixture.h"

static int call_with(struct fixture *f, const char *arguments, size_t len)
{
    return call_tool(f, "code_interpreter", arguments, len);
}

static int run(struct fixture *f, const struct event *events, size_t count)
{
    static const char arguments[] = "{\"code\":\"1\"}";
    f->call->events = events;
    f->call->events_count = count;
    return call_with(f, arguments, sizeof arguments - 1);
}

/* The whole of a plain run: what the model is told. */
static void expect_model(const struct event *events, size_t count, const char *expected)
{
    struct fixture f = fixture_new(NULL);
    CU_ASSERT_EQUAL(run(&f, events, count), 0);
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_MODEL), expected);
    CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_MODEL), 1);
    /* A status says that the code raised, and nothing else is worth one. */
    bool raised = call_count(f.call, SG_OUT_EXCEPTION) > 0;
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_STATUS),
                           raised ? "{\"state\":\"completed\",\"code\":1}" : "");
    fixture_free(&f);
}

#define EXPECT_MODEL(expected, ...)                          \
    do {                                                     \
        static const struct event events_[] = {__VA_ARGS__}; \
        expect_model(events_, COUNT_OF(events_), expected);  \
    } while (0)

static void the_tool_is_declared_as_models_know_it(void)
{
    const struct sg_tool *tool = &plugin->interceptor->tools[0];
    CU_ASSERT_STRING_EQUAL(tool->hosted, "code_interpreter");
    CU_ASSERT_STRING_EQUAL(tool->name, "code_interpreter");
    CU_ASSERT_PTR_NOT_NULL(strstr(tool->parameters_json, "\"required\":[\"code\"]"));
    CU_ASSERT_PTR_NOT_NULL(strstr(tool->parameters_json, "\"additionalProperties\":false"));
    CU_ASSERT_EQUAL(plugin->flags, SG_ON_LOOP);
}

static void everything_is_told_in_the_order_in_which_it_came(void)
{
    EXPECT_MODEL("one\ntwo\n42\n[image/png, not shown]\n[file: a.csv, 12 B]\nthree",
                 {SG_OUT_LOG_OUT, "one\n", 0}, {SG_OUT_LOG_ERR, "two", 0},
                 {SG_OUT_RESULT, "{\"text/plain\": \"42\"}", 0},
                 {SG_OUT_RESULT, "{\"image/png\": \"AAAA\"}", 0},
                 {SG_OUT_FILE, "{\"path\": \"a.csv\", \"size\": 12, \"type\": \"file\"}", 0},
                 {SG_OUT_LOG_OUT, "\nthree", 0});
}

static void text_and_picture_of_one_result_are_both_told(void)
{
    EXPECT_MODEL("<Figure>\n[image/png, not shown]",
                 {SG_OUT_RESULT, "{\"image/png\": \"AA\", \"text/plain\": \"<Figure>\"}", 0});
    EXPECT_MODEL("[text/html, not shown]", {SG_OUT_RESULT, "{\"text/html\": \"<b>\"}", 0});
    EXPECT_MODEL("x", {SG_OUT_RESULT, "{\"text/html\": \"<b>\", \"text/plain\": \"x\"}", 0});
}

static void a_run_without_output_says_so(void)
{
    struct fixture f = fixture_new(NULL);
    CU_ASSERT_EQUAL(run(&f, NULL, 0), 0);
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_MODEL), "[no output]");
    fixture_free(&f);
}

static void an_exception_is_labelled_and_its_traceback_short(void)
{
    EXPECT_MODEL("before\nTraceback (most recent call last):\n  File \"<cell-1>\", line 2\n"
                 "[exception] NameError: name 'x' is not defined",
                 {SG_OUT_LOG_OUT, "before", 0},
                 {SG_OUT_EXCEPTION,
                  "{\"name\":\"NameError\",\"value\":\"name 'x' is not defined\",\"traceback\":"
                  "\"Traceback (most recent call last):\\n  File \\\"<cell-1>\\\", line 2\\n"
                  "NameError: name 'x' is not defined\\n\"}",
                  0});
    EXPECT_MODEL("[exception] SystemExit",
                 {SG_OUT_EXCEPTION, "{\"name\":\"SystemExit\",\"value\":\"\"}", 0});
    EXPECT_MODEL("at\n[exception] JSONDecodeError: bad",
                 {SG_OUT_EXCEPTION,
                  "{\"name\":\"JSONDecodeError\",\"value\":\"bad\",\"traceback\":"
                  "\"\\u001b[31mat\\u001b[0m\\njson.decoder.JSONDecodeError: bad\"}",
                  0});
}

static void a_long_traceback_keeps_its_end(void)
{
    static char json[20000] = "{\"name\":\"RecursionError\",\"value\":\"deep\",\"traceback\":\"";
    size_t len = strlen(json);
    for (int i = 0; i < 500; i++) {
        len += (size_t)snprintf(json + len, sizeof json - len, "line %d of the calls\\n", i);
    }
    snprintf(json + len, sizeof json - len, "RecursionError: deep\"}");
    struct event event = {SG_OUT_EXCEPTION, json, 0};
    struct fixture f = fixture_new(NULL);
    CU_ASSERT_EQUAL(run(&f, &event, 1), 0);
    const char *text = call_text(f.call, SG_OUT_MODEL);
    CU_ASSERT_EQUAL(strncmp(text, "[earlier lines of the traceback cut]\nline ", 42), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "line 499 of the calls\n[exception] RecursionError: deep"));
    CU_ASSERT_TRUE(strlen(text) < 2200);
    fixture_free(&f);
}

static void the_loss_of_earlier_state_stands_first(void)
{
    EXPECT_MODEL("[earlier variables are gone]\nhi", {SG_OUT_LOG_OUT, "hi", 0},
                 {SG_OUT_STATUS, "{\"state\":\"lost\",\"note\":\"earlier variables are gone\"}", 0},
                 {SG_OUT_STATUS, "{\"state\":\"other\",\"note\":\"not for the model\"}", 0});
    EXPECT_MODEL("[gone]\n[no output]",
                 {SG_OUT_STATUS, "{\"state\":\"lost\",\"note\":\"gone\"}", 0});
}

static void the_client_is_shown_the_loss_before_everything_and_once(void)
{
    static const struct event events[] = {
        {SG_OUT_STATUS, "{\"state\":\"lost\",\"note\":\"gone\"}", 0},
        {SG_OUT_STATUS, "{\"state\":\"lost\",\"note\":\"again\"}", 0},
        {SG_OUT_LOG_ERR, "own", 0}};
    struct fixture f = fixture_new(NULL);
    CU_ASSERT_EQUAL(run(&f, events, COUNT_OF(events)), 0);
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_LOG_ERR), "[gone]\nown");
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_MODEL), "[gone]\nown");
    fixture_free(&f);
}

static void what_was_killed_for_its_memory_is_told_where_it_came(void)
{
    EXPECT_MODEL("-9\n[processes were killed]\nlater", {SG_OUT_LOG_OUT, "-9", 0},
                 {SG_OUT_STATUS, "{\"state\":\"memory\",\"note\":\"processes were killed\"}", 0},
                 {SG_OUT_LOG_OUT, "\nlater", 0});
    EXPECT_MODEL("[gone]\n[a?[b]]",
                 {SG_OUT_STATUS, "{\"state\":\"memory\",\"note\":\"a\\n[b]\"}", 0},
                 {SG_OUT_STATUS, "{\"state\":\"lost\",\"note\":\"gone\"}", 0});
    EXPECT_MODEL("[no output]", {SG_OUT_STATUS, "{\"state\":\"memory\",\"note\":7}", 0});
}

static void the_note_of_a_restart_stands_on_a_line_of_its_own(void)
{
    EXPECT_MODEL("[variables are gone]\n7",
                 {SG_OUT_STATUS, "{\"state\":\"restarted\",\"note\":\"variables are gone\"}", 0},
                 {SG_OUT_LOG_OUT, "7", 0});
    EXPECT_MODEL("so far\n[variables are gone]\n7", {SG_OUT_LOG_OUT, "so far", 0},
                 {SG_OUT_STATUS, "{\"state\":\"restarted\",\"note\":\"variables are gone\"}", 0},
                 {SG_OUT_RESULT, "{\"text/plain\": \"7\"}", 0});
    EXPECT_MODEL("[variables are gone]\n[exception] NameError",
                 {SG_OUT_STATUS, "{\"state\":\"restarted\",\"note\":\"variables are gone\"}", 0},
                 {SG_OUT_EXCEPTION, "{\"name\":\"NameError\",\"value\":\"\"}", 0});
    EXPECT_MODEL("[gone]\n[a?[b]]\nx", /* the loss of all stands first, and no note makes lines */
                 {SG_OUT_STATUS, "{\"state\":\"restarted\",\"note\":\"a\\n[b]\"}", 0},
                 {SG_OUT_LOG_ERR, "x", 0},
                 {SG_OUT_STATUS, "{\"state\":\"lost\",\"note\":\"gone\"}", 0});
    EXPECT_MODEL("[variables are gone]\n[no output]",
                 {SG_OUT_STATUS, "{\"state\":\"restarted\",\"note\":\"variables are gone\"}", 0});
    EXPECT_MODEL("[no output]", {SG_OUT_STATUS, "{\"state\":\"restarted\",\"note\":7}", 0});
}

static void what_was_killed_is_told_however_much_came_before(void)
{
    static char flood[40000];
    memset(flood, 'x', sizeof flood - 1);
    const struct event events[] = {
        {SG_OUT_LOG_OUT, flood, 0},
        {SG_OUT_STATUS, "{\"state\":\"memory\",\"note\":\"processes were killed\"}", 0}};
    struct fixture f = fixture_new("1KiB");
    CU_ASSERT_EQUAL(run(&f, events, COUNT_OF(events)), 0);
    const char *text = call_text(f.call, SG_OUT_MODEL);
    static const char end[] = "x\n[processes were killed]";
    CU_ASSERT_STRING_EQUAL(text + strlen(text) - (sizeof end - 1), end);
    fixture_free(&f);
}

/* Clients' pictures and files depend on the API form, and on chat none reach the user: the description must not say so. */
static void the_description_promises_no_display_and_no_network(void)
{
    const char *text = plugin->interceptor->tools[0].description;
    CU_ASSERT_PTR_NULL(strstr(text, "displayed"));
    CU_ASSERT_PTR_NULL(strstr(text, "set up"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "The user sees only what you write"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "Expect no network access"));
}

static void the_client_sees_all_events_as_they_came(void)
{
    static const struct event events[] = {
        {SG_OUT_LOG_OUT, "out", 0},
        {SG_OUT_LOG_ERR, "err", 0},
        {SG_OUT_RESULT, "{\"text/plain\": \"1\"}", 0},
        {SG_OUT_FILE, "{\"path\": \"f\", \"size\": 1, \"type\": \"file\"}", 0},
        {SG_OUT_EXCEPTION, "{\"name\": \"E\", \"value\": \"v\"}", 0},
    };
    struct fixture f = fixture_new(NULL);
    CU_ASSERT_EQUAL(run(&f, events, COUNT_OF(events)), 0);
    CU_ASSERT_EQUAL(f.call->outputs_count,
                    COUNT_OF(events) + 2); /* the status, what the model is told */
    for (size_t i = 0; i < COUNT_OF(events); i++) {
        CU_ASSERT_EQUAL(f.call->outputs[i].kind, events[i].kind);
        CU_ASSERT_STRING_EQUAL(f.call->outputs[i].data, events[i].data);
    }
    fixture_free(&f);
}

static void events_that_are_no_json_reach_no_client(void)
{
    static const struct event events[] = {
        {SG_OUT_RESULT, "{\"text/plain\": ", 0},
        {SG_OUT_FILE, "{\"size\": 1}", 0},
        {SG_OUT_EXCEPTION, "null", 0},
        {SG_OUT_DATA, "what is this", 0},
    };
    struct fixture f = fixture_new(NULL);
    CU_ASSERT_EQUAL(run(&f, events, COUNT_OF(events)), 0);
    CU_ASSERT_EQUAL(f.call->outputs_count, 2);
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_STATUS),
                           "{\"state\":\"completed\",\"code\":1}");
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_MODEL),
                           "[a result that cannot be read]\n[a file whose name cannot be read]\n"
                           "[exception] (without details)");
    fixture_free(&f);
}

static void what_is_not_utf8_is_replaced_and_split_characters_are_joined(void)
{
    EXPECT_MODEL("\xC3\xA4|\xEF\xBF\xBD|\xF0\x9F\x98\x80|\xEF\xBF\xBD", {SG_OUT_LOG_OUT, "\xC3", 0},
                 {SG_OUT_LOG_OUT, "\xA4|\xFF|\xF0\x9F", 0}, {SG_OUT_LOG_OUT, "\x98\x80|", 0},
                 {SG_OUT_LOG_OUT, "\xE2\x82", 0});
    EXPECT_MODEL("\xEF\xBF\xBD"
                 "a",
                 {SG_OUT_LOG_OUT, "\xC3", 0}, {SG_OUT_LOG_ERR, "a", 0});
}

static void a_file_name_cannot_forge_a_line(void)
{
    EXPECT_MODEL("[file: a]?[b, 1.5 KiB]",
                 {SG_OUT_FILE, "{\"path\": \"a]\\n[b\", \"size\": 1536, \"type\": \"file\"}", 0});
    EXPECT_MODEL("[folder: d]", {SG_OUT_FILE, "{\"path\": \"d\", \"type\": \"directory\"}", 0});
}

/* `len` letters in pieces of 100; `shown` is 1 KiB. */
static void expect_cut(size_t len)
{
    char *letters = malloc(len + 1), expected_line[80];
    for (size_t i = 0; i < len; i++) {
        letters[i] = (char)('a' + i % 26);
    }
    letters[len] = '\0';
    struct event *events = calloc(len / 100 + 1, sizeof *events);
    size_t count = 0;
    for (size_t at = 0; at < len; at += 100) {
        events[count++] =
            (struct event){SG_OUT_LOG_OUT, letters + at, len - at < 100 ? len - at : 100};
    }
    struct fixture f = fixture_new("1KiB");
    CU_ASSERT_EQUAL(run(&f, events, count), 0);
    const char *text = call_text(f.call, SG_OUT_MODEL);
    CU_ASSERT_TRUE(strlen(text) <= 1024);
    if (len <= 1024) {
        CU_ASSERT_STRING_EQUAL(text, letters);
    } else {
        size_t kept = (1024 - 96) / 2;
        snprintf(expected_line, sizeof expected_line, "\n[... %zu of %zu bytes cut ...]\n",
                 len - 2 * kept, len);
        CU_ASSERT_EQUAL(strncmp(text, letters, kept), 0);
        CU_ASSERT_EQUAL(strncmp(text + kept, expected_line, strlen(expected_line)), 0);
        CU_ASSERT_STRING_EQUAL(text + kept + strlen(expected_line), letters + len - kept);
    }
    fixture_free(&f);
    free(events);
    free(letters);
}

static void head_and_tail_are_kept_and_the_cut_is_counted_exactly(void)
{
    expect_cut(1023);
    expect_cut(1024);
    expect_cut(1025);
    expect_cut(1537);
    expect_cut(100000);
}

static void one_large_piece_is_cut_like_many_small_ones(void)
{
    char letters[5000];
    memset(letters, 'x', sizeof letters);
    letters[0] = 'A';
    letters[sizeof letters - 1] = 'Z';
    struct event event = {SG_OUT_LOG_OUT, letters, sizeof letters};
    struct fixture f = fixture_new("1KiB");
    CU_ASSERT_EQUAL(run(&f, &event, 1), 0);
    const char *text = call_text(f.call, SG_OUT_MODEL);
    CU_ASSERT_EQUAL(text[0], 'A');
    CU_ASSERT_EQUAL(text[strlen(text) - 1], 'Z');
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\n[... 4072 of 5000 bytes cut ...]\n"));
    fixture_free(&f);
}

static void a_cut_halves_no_character(void)
{
    char text[6000];
    for (size_t i = 0; i < sizeof text; i += 3) {
        memcpy(text + i, "\xE2\x82\xAC", 3);
    }
    struct event event = {SG_OUT_LOG_OUT, text, sizeof text};
    struct fixture f = fixture_new("1KiB");
    CU_ASSERT_EQUAL(run(&f, &event, 1), 0);
    /* (1024 - 96) / 2 = 464: 154 characters of three bytes at each end. */
    const char *shown = call_text(f.call, SG_OUT_MODEL);
    CU_ASSERT_EQUAL(strncmp(shown + 462, "\n[... 5076 of 6000 bytes cut ...]\n\xE2", 35), 0);
    fixture_free(&f);
}

static void an_exception_is_told_however_much_came_before(void)
{
    static char lines[4096];
    memset(lines, 'y', sizeof lines - 1);
    struct event events[] = {
        {SG_OUT_LOG_OUT, lines, 0},
        {SG_OUT_EXCEPTION, "{\"name\":\"ValueError\",\"value\":\"\",\"traceback\":\"t\"}", 0}};
    struct fixture f = fixture_new("1KiB");
    CU_ASSERT_EQUAL(run(&f, events, 2), 0);
    const char *text = call_text(f.call, SG_OUT_MODEL);
    CU_ASSERT_STRING_EQUAL(strchr(strstr(text, "cut ...]\n") + 9, '\n'),
                           "\nt\n[exception] ValueError");
    fixture_free(&f);
}

static void the_configured_time_is_asked_for(void)
{
    struct fixture f = fixture_new(NULL);
    CU_ASSERT_EQUAL(run(&f, NULL, 0), 0);
    CU_ASSERT_EQUAL(f.call->run_timeout_ms, 0);
    config_set(plugin, f.config, "timeout", "5s");
    CU_ASSERT_EQUAL(run(&f, NULL, 0), 0);
    CU_ASSERT_EQUAL(f.call->run_timeout_ms, 5000);
    fixture_free(&f);
}

/* ---- failures ---- */

static void a_failed_run_is_a_labelled_text_and_no_failure(void)
{
    static const struct event event = {SG_OUT_LOG_OUT, "so far", 0};
    static const struct {
        int code;
        const char *message, *expected, *reason;
    } cases[] = {
        {SG_E_TIMEOUT, "after 60 s", "so far\n[timed out] after 60 s", "timeout"},
        {SG_E_GONE, "it died", "so far\n[sandbox failed] it died", "unavailable"},
        {SG_E_GONE_BEFORE, "it was dead", "so far\n[sandbox failed] it was dead", "unavailable"},
        {SG_E_UNAVAILABLE, "no answer", "so far\n[sandbox failed] no answer", "unavailable"},
        {SG_E_LIMIT, "too much", "so far\n[output limit] too much",
         "limit"}, /* behind output, the run's own */
        {SG_E_INTERNAL, "a mistake", "so far\n[sandbox unavailable] a mistake", "unavailable"},
        {SG_E_INVALID, "no such language", "so far\n[sandbox unavailable] no such language",
         "unavailable"},
        {SG_E_TIMEOUT, "", "so far\n[timed out] the run was ended at its time limit", "timeout"},
        {SG_E_UNAVAILABLE, "",
         "so far\n[sandbox failed] the run broke off; it may have had effects", "unavailable"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fixture f = fixture_new(NULL);
        f.call->run_result = cases[i].code;
        f.call->run_message = cases[i].message;
        CU_ASSERT_EQUAL(run(&f, &event, 1), 0);
        CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_MODEL), cases[i].expected);
        char status[64];
        snprintf(status, sizeof status, "{\"state\":\"failed\",\"reason\":\"%s\"}",
                 cases[i].reason);
        CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_STATUS), status);
        fixture_free(&f);
    }
}

/* `status` NULL: nothing came before. */
static void fail_behind(const char *status, int code, const char *expected)
{
    struct event event = {SG_OUT_STATUS, status, 0};
    struct fixture f = fixture_new(NULL);
    f.call->run_result = code;
    f.call->run_message = "it is full";
    CU_ASSERT_EQUAL(run(&f, &event, status != NULL), 0);
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_MODEL), expected);
    fixture_free(&f);
}

static void a_limit_is_the_runs_own_where_a_status_says_so(void)
{
    fail_behind("{\"state\":\"output\"}", SG_E_LIMIT, "[output limit] it is full");
    fail_behind("{\"state\":\"waiting\"}", SG_E_LIMIT, "[sandbox unavailable] it is full");
    fail_behind(NULL, SG_E_LIMIT,
                "[sandbox unavailable] it is full"); /* it is at its limit itself */
}

static void a_run_that_had_begun_without_output_failed_and_was_not_unavailable(void)
{
    fail_behind("{\"state\":\"begun\"}", SG_E_UNAVAILABLE, "[sandbox failed] it is full");
    fail_behind("{\"state\":\"waiting\"}", SG_E_UNAVAILABLE, "[sandbox unavailable] it is full");
}

static void a_failure_without_output_is_only_its_label(void)
{
    fail_behind(NULL, SG_E_UNAVAILABLE, "[sandbox unavailable] it is full");
}

static void a_cancelled_run_is_handed_back_and_tells_nothing(void)
{
    struct fixture f = fixture_new(NULL);
    f.call->run_result = SG_E_CANCELLED;
    f.call->run_message = "gone";
    CU_ASSERT_EQUAL(run(&f, NULL, 0), SG_E_CANCELLED);
    CU_ASSERT_EQUAL(f.call->outputs_count, 0);
    fixture_free(&f);
}

static void a_client_that_left_ends_the_run_at_the_next_event(void)
{
    static const struct event event = {SG_OUT_LOG_OUT, "x", 0};
    struct fixture f = fixture_new(NULL);
    f.call->events_repeat = 1000;
    f.call->emits_max = 3;
    f.call->emit_code = SG_E_CANCELLED;
    CU_ASSERT_EQUAL(run(&f, &event, 1), SG_E_CANCELLED);
    CU_ASSERT_EQUAL(f.call->events_sent, 3);
    fixture_free(&f);
}

static void more_than_ten_mebibytes_end_the_run(void)
{
    static char piece[65536];
    memset(piece, 'z', sizeof piece);
    struct event event = {SG_OUT_LOG_OUT, piece, sizeof piece};
    struct fixture f = fixture_new(NULL);
    f.call->events_repeat = 100000;
    CU_ASSERT_EQUAL(run(&f, &event, 1), 0);
    CU_ASSERT_EQUAL(f.call->events_sent, 160); /* exactly 10 MiB were taken */
    CU_ASSERT_TRUE(f.call->bytes < 65536);     /* and little was kept */
    const char *text = call_text(f.call, SG_OUT_MODEL);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(text, "\n[output limit] the run gave more than 10 MiB of output and was ended; "
                     "print less"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, " of 10551296 bytes cut ...]"));
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_STATUS),
                           "{\"state\":\"failed\",\"reason\":\"limit\"}");
    fixture_free(&f);
}

static void exactly_ten_mebibytes_are_allowed(void)
{
    static char piece[65536];
    memset(piece, 'z', sizeof piece);
    struct event event = {SG_OUT_LOG_OUT, piece, sizeof piece};
    struct fixture f = fixture_new(NULL);
    f.call->events_repeat = 160;
    CU_ASSERT_EQUAL(run(&f, &event, 1), 0);
    CU_ASSERT_PTR_NULL(strstr(call_text(f.call, SG_OUT_MODEL), "[output limit]"));
    fixture_free(&f);
}

static const struct test tests[] = {
    TEST(the_tool_is_declared_as_models_know_it),
    TEST(everything_is_told_in_the_order_in_which_it_came),
    TEST(text_and_picture_of_one_result_are_both_told),
    TEST(a_run_without_output_says_so),
    TEST(an_exception_is_labelled_and_its_traceback_short),
    TEST(a_long_traceback_keeps_its_end),
    TEST(the_loss_of_earlier_state_stands_first),
    TEST(the_client_is_shown_the_loss_before_everything_and_once),
    TEST(what_was_killed_for_its_memory_is_told_where_it_came),
    TEST(the_note_of_a_restart_stands_on_a_line_of_its_own),
    TEST(what_was_killed_is_told_however_much_came_before),
    TEST(the_description_promises_no_display_and_no_network),
    TEST(the_client_sees_all_events_as_they_came),
    TEST(events_that_are_no_json_reach_no_client),
    TEST(what_is_not_utf8_is_replaced_and_split_characters_are_joined),
    TEST(a_file_name_cannot_forge_a_line),
    TEST(head_and_tail_are_kept_and_the_cut_is_counted_exactly),
    TEST(one_large_piece_is_cut_like_many_small_ones),
    TEST(a_cut_halves_no_character),
    TEST(an_exception_is_told_however_much_came_before),
    TEST(the_configured_time_is_asked_for),
    TEST(a_failed_run_is_a_labelled_text_and_no_failure),
    TEST(a_limit_is_the_runs_own_where_a_status_says_so),
    TEST(a_run_that_had_begun_without_output_failed_and_was_not_unavailable),
    TEST(a_failure_without_output_is_only_its_label),
    TEST(a_cancelled_run_is_handed_back_and_tells_nothing),
    TEST(a_client_that_left_ends_the_run_at_the_next_event),
    TEST(more_than_ten_mebibytes_end_the_run),
    TEST(exactly_ten_mebibytes_are_allowed),
};

int main(int argc, char **argv)
{
    plugin = host_load("code_interpreter")->plugins[0];
    return run_tests("code_interpreter", tests, COUNT_OF(tests), argc, argv);
}
