/* core/plugin/host_http.c: an HTTP exchange of a plugin, against a scripted fetch. */
#include "call_fixture.h"

#include <pthread.h>

static const struct fetch_field answer_fields[] = {
    {{"Content-Type", 12}, {"text/plain", 10}},
    {{"X-Two", 5}, {"", 0}},
};
static const char *const answer_pieces[] = {"hello ", "wor", "ld", NULL};

static void script(void)
{
    fetch_script = (struct fetch_script){.status = 404,
                                         .fields = answer_fields,
                                         .fields_count = COUNT_OF(answer_fields),
                                         .pieces = answer_pieces};
}

static const char *const keys[] = {"X-API-Key"};
static const char *const values[] = {"k"};

static int ask(const struct instance *i, struct sg_call *call, void *arguments,
               struct sg_error *err)
{
    struct sg_http_reply reply = {0};
    (void)i;
    int code = host->http(call, arguments, &reply, NULL, err);
    if (code == 0) {
        CU_ASSERT_EQUAL(reply.status, 404);
        CU_ASSERT_EQUAL(reply.headers.count, 2);
        CU_ASSERT_STRING_EQUAL(reply.headers.keys[0], "content-type");
        CU_ASSERT_STRING_EQUAL(reply.headers.values[0], "text/plain");
        CU_ASSERT_STRING_EQUAL(reply.headers.keys[1], "x-two");
        CU_ASSERT_STRING_EQUAL(reply.body, "hello world");
        CU_ASSERT_EQUAL(reply.body_len, 11);
    } else {
        CU_ASSERT_EQUAL(reply.status, 0);
    }
    return code;
}

static int run_ask(struct sg_http_request *request, struct sg_error *err)
{
    script();
    return call_run(call_of("call"), ask, request, NULL, err);
}

static void ask_fiber(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    struct sg_http_request request = {.method = "PUT",
                                      .url = "http://h/x",
                                      .headers = {keys, values, 1},
                                      .body = "in",
                                      .body_len = 2,
                                      .timeout_ms = 100000,
                                      .silence_ms = 5};
    CU_ASSERT_EQUAL(run_ask(&request, &err), 0);
    CU_ASSERT_STRING_EQUAL(fetch_script.url, "http://h/x");
    CU_ASSERT_STRING_EQUAL(fetch_script.method, "PUT");
    CU_ASSERT_STRING_EQUAL(fetch_script.header, "X-API-Key=k");
    CU_ASSERT_STRING_EQUAL(fetch_script.body, "in");
    CU_ASSERT_TRUE(fetch_script.has_body);
    CU_ASSERT_EQUAL(fetch_script.first_byte_ms, 60000);
    CU_ASSERT_EQUAL(fetch_script.silence_ms, 5);
    CU_ASSERT(fetch_script.deadline <= deadline_in(100000) && fetch_script.deadline > clock_ms());
    CU_ASSERT_EQUAL(fetch_script.ended, 1);
    struct sg_http_request plain = {.url = "https://h/"};
    CU_ASSERT_EQUAL(run_ask(&plain, &err), 0);
    CU_ASSERT_STRING_EQUAL(fetch_script.method, "-");
    CU_ASSERT_FALSE(fetch_script.has_body);
    CU_ASSERT_EQUAL(fetch_script.deadline, DEADLINE_NONE);
}

static void an_answer_is_collected_with_its_headers(void)
{
    run_both(ask_fiber);
}

static void limit_fiber(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    struct sg_http_request request = {.url = "http://h/", .body_bytes_max = 11};
    CU_ASSERT_EQUAL(run_ask(&request, &err), 0);
    request.body_bytes_max = 10;
    CU_ASSERT_EQUAL(run_ask(&request, &err), SG_E_LIMIT);
    CU_ASSERT_STRING_EQUAL(
        err.message, "fake (one): http(): the answer is larger than 10 bytes (body_bytes_max)");
    CU_ASSERT_EQUAL(fetch_script.ended, 1);
    request.url = NULL;
    CU_ASSERT_EQUAL(run_ask(&request, &err), SG_E_INVALID);
    CU_ASSERT_STRING_EQUAL(err.message, "fake (one): http(): a request needs a url");
}

static void an_answer_over_its_limit_is_refused(void)
{
    run_both(limit_fiber);
}

static int ask_unheard(const struct instance *i, struct sg_call *call, void *arguments,
                       struct sg_error *err)
{
    (void)err;
    int code = ask(i, call, arguments, NULL);
    CU_ASSERT_EQUAL(code, SG_E_LIMIT);
    return 0;
}

static void unheard_fiber(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    struct sg_http_request request = {.url = "http://h/", .body_bytes_max = 10};
    script();
    CU_ASSERT_EQUAL(call_run(call_of("close"), ask_unheard, &request, NULL, &err), 0);
}

/* As in close(), which has no error to fill. */
static void an_exchange_may_fail_with_nobody_to_tell(void)
{
    run_both(unheard_fiber);
}

static void failing_fiber(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    struct sg_http_request request = {.url = "http://h/"};
    script();
    fetch_script.start_code = SG_E_UNAVAILABLE;
    CU_ASSERT_EQUAL(call_run(call_of("call"), ask, &request, NULL, &err), SG_E_UNAVAILABLE);
    CU_ASSERT_STRING_EQUAL(err.message, "fake (one): nobody there");
    CU_ASSERT_EQUAL(fetch_script.ended, 0);
    script();
    fetch_script.end_code = SG_E_UNAVAILABLE;
    CU_ASSERT_EQUAL(call_run(call_of("call"), ask, &request, NULL, &err), SG_E_UNAVAILABLE);
    CU_ASSERT_STRING_EQUAL(err.message, "fake (one): the answer was cut");
    CU_ASSERT_EQUAL(fetch_script.ended, 1);
}

static void a_failed_exchange_is_the_plugins_error(void)
{
    run_both(failing_fiber);
}

static pthread_t plugin_thread;
static char pieces_seen[64];
static int refuse_after;

static int take_piece(void *ctx, enum sg_out kind, const void *data, size_t len,
                      struct sg_error *err)
{
    struct sg_http_reply *reply = ctx;
    CU_ASSERT(pthread_equal(pthread_self(), plugin_thread));
    CU_ASSERT_EQUAL(kind, SG_OUT_DATA);
    CU_ASSERT_EQUAL(reply->status, 404); /* known before the first piece */
    size_t at = strlen(pieces_seen);
    (void)snprintf(pieces_seen + at, sizeof pieces_seen - at, "%.*s|", (int)len,
                   (const char *)data);
    return --refuse_after == 0 ? host->fail(err, SG_E_DENIED, "enough") : 0;
}

static int stream(const struct instance *i, struct sg_call *call, void *arguments,
                  struct sg_error *err)
{
    (void)i, (void)arguments;
    struct sg_http_request request = {.url = "http://h/"};
    struct sg_http_reply reply = {0};
    struct sg_sink sink = {take_piece, &reply};
    plugin_thread = pthread_self();
    pieces_seen[0] = '\0';
    int code = host->http(call, &request, &reply, &sink, err);
    CU_ASSERT_PTR_NULL(reply.body);
    return code;
}

static void stream_fiber(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    script();
    refuse_after = 0;
    CU_ASSERT_EQUAL(call_run(call_of("call"), stream, NULL, NULL, &err), 0);
    CU_ASSERT_STRING_EQUAL(pieces_seen, "hello |wor|ld|");
    CU_ASSERT_EQUAL(fetch_script.ended, 1);
    script();
    refuse_after = 2;
    CU_ASSERT_EQUAL(call_run(call_of("call"), stream, NULL, NULL, &err), SG_E_DENIED);
    CU_ASSERT_STRING_EQUAL(pieces_seen, "hello |wor|");
    CU_ASSERT_STRING_EQUAL(err.message, "fake (one): enough");
    CU_ASSERT_EQUAL(fetch_script.ended, 1);
}

static void a_sink_gets_the_pieces_and_may_end_the_exchange(void)
{
    run_both(stream_fiber);
}

/* ---- how far it came, and ticks ---- */

static int ask_failing(const struct instance *i, struct sg_call *call, void *arguments,
                       struct sg_error *err)
{
    (void)i;
    struct sg_http_request request = {.url = "http://h/", .ca_file = "/ca.pem"};
    struct sg_http_reply reply = {0};
    int code = host->http(call, &request, &reply, NULL, err);
    *(uint32_t *)arguments = reply.failed_at;
    return code;
}

static void stages_fiber(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    uint32_t at = 99;
    script();
    fetch_script.start_code = SG_E_UNAVAILABLE;
    CU_ASSERT_EQUAL(call_run(call_of("call"), ask_failing, &at, NULL, &err), SG_E_UNAVAILABLE);
    CU_ASSERT_EQUAL(at, SG_HTTP_UNRESOLVED);
    script();
    fetch_script.end_code = SG_E_UNAVAILABLE;
    CU_ASSERT_EQUAL(call_run(call_of("call"), ask_failing, &at, NULL, &err), SG_E_UNAVAILABLE);
    CU_ASSERT_EQUAL(at, SG_HTTP_CUT);
    CU_ASSERT_STRING_EQUAL(fetch_script.ca_file, "/ca.pem");
    script();
    CU_ASSERT_EQUAL(call_run(call_of("call"), ask_failing, &at, NULL, &err), 0);
    CU_ASSERT_EQUAL(at, 0);
}

static void a_plugin_is_told_how_far_a_failed_exchange_had_come(void)
{
    CU_ASSERT_EQUAL((int)SG_HTTP_UNRESOLVED, (int)FETCH_RESOLVING);
    CU_ASSERT_EQUAL((int)SG_HTTP_UNCONNECTED, (int)FETCH_CONNECTING);
    CU_ASSERT_EQUAL((int)SG_HTTP_NO_TLS, (int)FETCH_SECURING);
    CU_ASSERT_EQUAL((int)SG_HTTP_UNANSWERED, (int)FETCH_SENT);
    CU_ASSERT_EQUAL((int)SG_HTTP_CUT, (int)FETCH_ANSWERED);
    run_both(stages_fiber);
}

static int take_ticking(void *ctx, enum sg_out kind, const void *data, size_t len,
                        struct sg_error *err)
{
    (void)ctx, (void)kind;
    size_t at = strlen(pieces_seen);
    (void)snprintf(pieces_seen + at, sizeof pieces_seen - at, "%.*s|", (int)len,
                   (const char *)data);
    return --refuse_after == 0 ? host->fail(err, SG_E_DENIED, "enough") : 0;
}

static int stream_ticking(const struct instance *i, struct sg_call *call, void *arguments,
                          struct sg_error *err)
{
    (void)i, (void)arguments;
    struct sg_http_request request = {.url = "http://h/", .tick_ms = 2};
    struct sg_http_reply reply = {0};
    struct sg_sink sink = {take_ticking, NULL};
    pieces_seen[0] = '\0';
    return host->http(call, &request, &reply, &sink, err);
}

static void ticks_fiber(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    script();
    fetch_script.silences = 2;
    refuse_after = 0;
    CU_ASSERT_EQUAL(call_run(call_of("call"), stream_ticking, NULL, NULL, &err), 0);
    CU_ASSERT_STRING_EQUAL(pieces_seen, "||||hello |||wor|||ld|||");
    script();
    fetch_script.silences = 2;
    refuse_after = 2; /* before there is an answer */
    CU_ASSERT_EQUAL(call_run(call_of("call"), stream_ticking, NULL, NULL, &err), SG_E_DENIED);
    CU_ASSERT_STRING_EQUAL(pieces_seen, "||");
    CU_ASSERT_EQUAL(fetch_script.ended, 1);
    script();
    fetch_script.silences = 2;
    refuse_after = 0;
    CU_ASSERT_EQUAL(run_out_of(stream_ticking, &err), SG_E_TIMEOUT); /* its own deadline counts */
}

static void a_sink_is_called_while_nothing_comes(void)
{
    run_both(ticks_fiber);
}

static const struct test tests[] = {
    TEST(an_answer_is_collected_with_its_headers),
    TEST(an_answer_over_its_limit_is_refused),
    TEST(an_exchange_may_fail_with_nobody_to_tell),
    TEST(a_failed_exchange_is_the_plugins_error),
    TEST(a_sink_gets_the_pieces_and_may_end_the_exchange),
    TEST(a_plugin_is_told_how_far_a_failed_exchange_had_come),
    TEST(a_sink_is_called_while_nothing_comes),
};

int main(int argc, char **argv)
{
    return run_tests("call_http", tests, COUNT_OF(tests), argc, argv);
}
