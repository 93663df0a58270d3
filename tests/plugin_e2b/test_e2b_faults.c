/* What failed exchanges mean: a table of statuses and bodies, of the API and of a sandbox's server, with the code and the
 * message that each comes to; how far an exchange came that had no answer; and what must not stand in a message. */
#include "life_fixture.h"

struct fault {
    int status;
    const char *body;
    int code;
    const char *message;
};

#define TOO_LONG "the quick brown fox jumps over the lazy dog and then "
#define SIX(text) text text text text text text
#define GONE_BODY \
    "{\"sandboxId\": \"" ID "\", \"message\": \"The sandbox was not found\", \"code\": 502}"
#define CLOSED_BODY                                                                              \
    "{\"sandboxId\": \"" ID "\", \"message\": \"The sandbox is running but port is not open\", " \
    "\"port\": 49999, \"code\": 502}"

/* ---- the API ---- */

static const struct fault api_faults[] = {
    {400, "{\"code\": 400, \"message\": \"Timeout cannot be greater than 1 hours\"}", SG_E_INVALID,
     "cannot try: E2B refuses the request (400): Timeout cannot be greater than 1 hours"},
    {400, "", SG_E_INVALID, "cannot try: E2B refuses the request (400), without a reason"},
    {413, "too large\n", SG_E_INVALID, "cannot try: E2B refuses the request (413): too large"},
    {422, "{\"detail\": [1]}", SG_E_INVALID,
     "cannot try: E2B refuses the request (422): {\"detail\": [1]}"},
    {401, "{\"code\": 401, \"message\": \"Invalid API key " KEY "\"}", SG_E_DENIED,
     "cannot try: E2B refuses the API key (401); check 'api_key'"},
    {401, "", SG_E_DENIED, "cannot try: E2B refuses the API key (401); check 'api_key'"},
    {403, "{\"code\": 403, \"message\": \"team is blocked\"}", SG_E_DENIED,
     "cannot try: E2B does not allow it (403): team is blocked"},
    {403, " \n<!DOCTYPE html>", SG_E_DENIED,
     "cannot try: E2B does not allow it (403), with a page of HTML, so perhaps something in "
     "between "
     "did"},
    {404, "{\"code\": 404, \"message\": \"template 'code-interpreter-v1' not found\"}",
     SG_E_NOT_FOUND,
     "cannot try: E2B does not know it (404): template 'code-interpreter-v1' not found"},
    {404, "{\"message\": \"no code\"}", SG_E_UNAVAILABLE,
     "cannot try: what answers is not E2B's API (404); check 'domain' and 'api_url'"},
    {404, "", SG_E_UNAVAILABLE,
     "cannot try: what answers is not E2B's API (404); check 'domain' and 'api_url'"},
    {204, "", SG_E_UNAVAILABLE,
     "cannot try: what answers is not E2B's API (204); check 'domain' and 'api_url'"},
    {301, "", SG_E_UNAVAILABLE,
     "cannot try: E2B's API sends elsewhere (301), which is not followed; check 'domain' and "
     "'api_url'"},
    {405, "no", SG_E_UNAVAILABLE, "cannot try: E2B's API answers with status 405: no"},
    {409, "{\"code\": 409, \"message\": \"killing\"}", SG_E_UNAVAILABLE,
     "cannot try: the sandbox is being paused, resumed or ended (409); try again: killing"},
    {429, "{\"code\": 429, \"message\": \"20 at most\"}", SG_E_LIMIT,
     "cannot try: a limit of the account at E2B is reached (429); end sandboxes, or try again "
     "later: 20 at most"},
    {429, "", SG_E_LIMIT,
     "cannot try: a limit of the account at E2B is reached (429); end sandboxes, or try again "
     "later, without a reason"},
    {500, "{\"code\": 500, \"message\": \"x\", \"error_code\": \"sandbox_create_failed\"}",
     SG_E_UNAVAILABLE, "cannot try: E2B's API failed (500): x"},
    {502, "<html>bad gateway</html>", SG_E_UNAVAILABLE,
     "cannot try: E2B's API failed (502), with a page of HTML, so perhaps something in between "
     "did"},
    {503, "{\"code\": 503, \"message\": \"\"}", SG_E_UNAVAILABLE,
     "cannot try: E2B's API failed (503): {\"code\": 503, \"message\": \"\"}"},
    {504, "", SG_E_UNAVAILABLE, "cannot try: E2B's API failed (504), without a reason"},
    {599, "{\"code\": 404", SG_E_UNAVAILABLE, "cannot try: E2B's API failed (599): {\"code\": 404"},
    /* what must not be seen, and what would break a line of the log */
    {500, "of " KEY ", i9f8e7d6c5b4a3f2e1d0c\r\n\tand\x01\xFF more", SG_E_UNAVAILABLE,
     "cannot try: E2B's API failed (500): of ***, ***   and   more"},
    {500, "{\"code\": 500, \"message\": \"a\\u0000b \\ud800 \\u00e9\"}", SG_E_UNAVAILABLE,
     "cannot try: E2B's API failed (500): a b \xEF\xBF\xBD \xC3\xA9"},
    {500, SIX(TOO_LONG), SG_E_UNAVAILABLE,
     "cannot try: E2B's API failed (500): " TOO_LONG TOO_LONG TOO_LONG TOO_LONG
     "the quick brown fox jumps ov"},
};

static void each_answer_of_the_api_has_its_code_and_message(void)
{
    for (size_t i = 0; i < COUNT_OF(api_faults); i++) {
        struct fixture f;
        struct exchange x = {.path = "/sandboxes"};
        fixture_init(&f);
        fixture_open(&f);
        reply(&f, api_faults[i].status, api_faults[i].body);
        CU_ASSERT_EQUAL(exchange_api(f.e2b, f.call, &x, call_error(f.call)), 0);
        CU_ASSERT_EQUAL(fault_api(f.e2b, f.call, &x, "cannot try", call_error(f.call)),
                        api_faults[i].code);
        expect_message(&f, api_faults[i].message);
        CU_ASSERT_EQUAL(f.call->requests_count, 1);
        CU_ASSERT_EQUAL(f.call->sleeps, 0);
        fixture_free(&f);
    }
}

/* ---- a sandbox's server ---- */

static const struct fault sandbox_faults[] = {
    {502, GONE_BODY, SG_E_GONE_BEFORE,
     "cannot try: the sandbox is not there any more: it was ended, or its time was up"},
    {502, CLOSED_BODY, SG_E_UNAVAILABLE,
     "cannot try: the sandbox runs, but its server does not (502); is 'template' one with E2B's "
     "code "
     "interpreter?"},
    {502, "{\"message\": \"other\", \"code\": 502}", SG_E_UNAVAILABLE,
     "cannot try: the sandbox answers with status 502: other"},
    {401, "{\"code\": 401, \"message\": \"unauthorized\"}", SG_E_DENIED,
     "cannot try: the sandbox refuses its access token (401); end it and begin anew"},
    {403,
     "{\"message\": \"Sandbox is secured with traffic access token. Token header is "
     "missing\", \"code\": 403}",
     SG_E_DENIED,
     "cannot try: the sandbox does not let us in (403): Sandbox is secured with traffic access "
     "token. Token header is missing"},
    {404, "no route", SG_E_UNAVAILABLE,
     "cannot try: the sandbox's server does not know what it was asked for (404); is 'template' "
     "one "
     "with E2B's code interpreter?"},
    {409, "", SG_E_UNAVAILABLE,
     "cannot try: the sandbox is being paused or resumed (409); try again"},
    {429, "{\"message\": \"too many concurrent\", \"code\": 429, \"connectionLimit\": 9}",
     SG_E_LIMIT, "cannot try: the sandbox has too many connections (429); try again later"},
    {507, "", SG_E_LIMIT, "cannot try: the sandbox's disk is full (507); delete files"},
    {400, "Invalid host", SG_E_UNAVAILABLE,
     "cannot try: the sandbox answers with status 400: Invalid host"},
    {500, "token " ENVD_TOKEN ", " TRAFFIC_TOKEN " of " ID " at 49999-" ID ".e2b.app:443: x",
     SG_E_UNAVAILABLE,
     "cannot try: the sandbox answers with status 500: token ***, *** of *** at its host: x"},
    {302, "<html>", SG_E_UNAVAILABLE,
     "cannot try: the sandbox answers with status 302, with a page of HTML, so perhaps something "
     "in "
     "between did"},
    {503, "", SG_E_UNAVAILABLE,
     "cannot try: the sandbox answers with status 503, without a reason"},
};

static struct sandbox *fixture_sandbox(struct fixture *f)
{
    struct sandbox *sandbox = NULL;
    fixture_init(f);
    fixture_open(f);
    make(f, CREATED(ID));
    CU_ASSERT_EQUAL_FATAL(sandbox_get(f->e2b, f->call, ID, &sandbox, call_error(f->call)), 0);
    return sandbox;
}

/* Asks the interpreter, is answered so, and says what that means. */
static int fail_sandbox(struct fixture *f, struct sandbox *sandbox, int status, const char *body)
{
    struct exchange x = {.path = "/execute"};
    call_reply(f->call, (struct fake_reply){.status = status, .body = body, .piece_len = 7});
    CU_ASSERT_EQUAL(
        exchange_sandbox(f->e2b, f->call, sandbox, PORT_INTERPRETER, &x, call_error(f->call)), 0);
    CU_ASSERT_EQUAL(fault_is_port_closed(&x), strcmp(body, CLOSED_BODY) == 0);
    return fault_sandbox(f->e2b, f->call, sandbox, &x, "cannot try", call_error(f->call));
}

static void each_answer_of_a_sandbox_has_its_code_and_message(void)
{
    for (size_t i = 0; i < COUNT_OF(sandbox_faults); i++) {
        const struct fault *fault = &sandbox_faults[i];
        struct fixture f;
        struct sandbox *sandbox = fixture_sandbox(&f);
        CU_ASSERT_EQUAL(fail_sandbox(&f, sandbox, fault->status, fault->body), fault->code);
        expect_message(&f, fault->message);
        CU_ASSERT_EQUAL(f.call->requests_count, 1);
        CU_ASSERT_EQUAL(sandbox->is_gone, fault->code == SG_E_GONE_BEFORE);
        CU_ASSERT_EQUAL(f.e2b->count, fault->code == SG_E_GONE_BEFORE ? 0 : 1);
        sandbox_unref(f.e2b, sandbox);
        fixture_free(&f);
    }
}

/* A 502 in whatever form: the API knows. */
static void what_in_between_answers_502_the_api_is_asked_about(void)
{
    static const char *const bodies[] = {"", "<html>bad gateway</html>", "bad gateway"};
    for (size_t i = 0; i < COUNT_OF(bodies); i++) {
        struct fixture f;
        struct sandbox *sandbox = fixture_sandbox(&f);
        call_reply(f.call, (struct fake_reply){.status = 502, .body = bodies[i]});
        struct exchange x = {.path = "/execute"};
        CU_ASSERT_EQUAL(
            exchange_sandbox(f.e2b, f.call, sandbox, PORT_INTERPRETER, &x, call_error(f.call)), 0);
        reply(&f, 200, "{\"state\": \"running\"}");
        CU_ASSERT_EQUAL(fault_sandbox(f.e2b, f.call, sandbox, &x, "cannot try", call_error(f.call)),
                        SG_E_UNAVAILABLE);
        expect_request(&f, 1, "GET", "https://api.e2b.app/sandboxes/" ID);
        reply(&f, 404, MISSING);
        CU_ASSERT_EQUAL(fault_sandbox(f.e2b, f.call, sandbox, &x, "cannot try", call_error(f.call)),
                        SG_E_GONE_BEFORE);
        sandbox_unref(f.e2b, sandbox);
        fixture_free(&f);
    }
}

static int lose(struct fixture *f, struct sandbox *sandbox)
{
    return fault_lost(f->e2b, f->call, sandbox, "the run was cut off", call_error(f->call));
}

static void a_lost_connection_is_a_lost_sandbox_only_if_e2b_says_so(void)
{
    struct fixture f;
    struct sandbox *sandbox = fixture_sandbox(&f);
    const char *gone = "the run was cut off: the sandbox is not there any more: it was ended, or "
                       "its time was up";
    reply(&f, 204, "");
    CU_ASSERT_EQUAL(lose(&f, sandbox), SG_E_UNAVAILABLE);
    expect_message(&f, "the run was cut off: the connection to the sandbox was lost");
    expect_request(&f, 0, "GET", "https://49983-" ID ".e2b.app/health");
    CU_ASSERT_EQUAL(f.call->requests[0].timeout_ms, 5000);
    call_reply(f.call,
               (struct fake_reply){.code = SG_E_UNAVAILABLE, .failed_at = SG_HTTP_UNCONNECTED});
    reply(&f, 200, "{}"); /* the API knows it: it is only out of reach */
    CU_ASSERT_EQUAL(lose(&f, sandbox), SG_E_UNAVAILABLE);
    CU_ASSERT_FALSE(sandbox->is_gone);
    reply(&f, 502, GONE_BODY);
    CU_ASSERT_EQUAL(lose(&f, sandbox), SG_E_GONE);
    expect_message(&f, gone);
    CU_ASSERT_TRUE(sandbox->is_gone);
    CU_ASSERT_EQUAL(f.e2b->count, 0);
    CU_ASSERT_EQUAL(lose(&f, sandbox), SG_E_GONE); /* nobody is asked again */
    CU_ASSERT_EQUAL(f.call->requests_count, 4);
    sandbox_unref(f.e2b, sandbox);
    fixture_free(&f);

    sandbox = fixture_sandbox(&f);
    reply(&f, 502, "");
    reply(&f, 404, MISSING);
    CU_ASSERT_EQUAL(lose(&f, sandbox), SG_E_GONE);
    expect_message(&f, gone);
    sandbox_unref(f.e2b, sandbox);
    fixture_free(&f);
}

/* ---- no answer ---- */

static const struct {
    uint32_t stage;
    int code, told;
    const char *cause, *api, *sandbox; /* in `cause` HOST stands for the host that was asked */
} silences[] = {
    {SG_HTTP_UNRESOLVED, SG_E_UNAVAILABLE, SG_E_UNAVAILABLE, "cannot resolve 'HOST': unknown",
     "has no address (check 'domain', 'api_url' and 'sandbox_url', and the name server): cannot "
     "resolve 'HOST': unknown",
     "has no address (check 'domain', 'api_url' and 'sandbox_url', and the name server): cannot "
     "resolve 'its host': unknown"},
    {SG_HTTP_UNCONNECTED, SG_E_TIMEOUT, SG_E_TIMEOUT, "no connection to HOST:443 within 10 ms",
     "cannot be reached", "cannot be reached"},
    {SG_HTTP_NO_TLS, SG_E_UNAVAILABLE, SG_E_UNAVAILABLE,
     "cannot set up TLS with HOST:443: no alternative name matches 'HOST'",
     "cannot be trusted (for a certificate of one's own set 'ca_file'): cannot set up TLS with "
     "HOST:443: no alternative name matches 'HOST'",
     "cannot be trusted (for a certificate of one's own set 'ca_file'): cannot set up TLS with its "
     "host: no alternative name matches 'its host'"},
    {SG_HTTP_UNANSWERED, SG_E_TIMEOUT, SG_E_TIMEOUT, "no answer from HOST:443 within 9 ms",
     "did not answer in time", "did not answer in time"},
    {SG_HTTP_UNANSWERED, SG_E_LIMIT, SG_E_LIMIT, "HOST:443 has too many headers",
     "broke off before it answered", "broke off before it answered"},
    {SG_HTTP_UNANSWERED, SG_E_UNAVAILABLE, SG_E_UNAVAILABLE, "HOST:443 closed",
     "broke off before it answered: HOST:443 closed",
     "broke off before it answered: its host closed"},
    {SG_HTTP_UNANSWERED, SG_E_INVALID, SG_E_INTERNAL, "the header is wrong",
     "broke off before it answered: the header is wrong",
     "broke off before it answered: the header is wrong"},
    {SG_HTTP_CUT, SG_E_UNAVAILABLE, SG_E_UNAVAILABLE, "cut answer of HOST:443: reset",
     "broke off amid its answer: cut answer of HOST:443: reset",
     "broke off amid its answer: cut answer of its host: reset"},
    {SG_HTTP_CUT, SG_E_TIMEOUT, SG_E_TIMEOUT, "HOST:443 sent nothing",
     "did not end its answer in time", "did not end its answer in time"},
    {SG_HTTP_CUT, SG_E_CANCELLED, SG_E_CANCELLED, "nobody waits for HOST:443",
     "broke off amid its answer: nobody waits for HOST:443",
     "broke off amid its answer: nobody waits for its host"},
};

/* `pattern` with each HOST replaced. */
static const char *with_host(const char *pattern, const char *who, const char *host, char *ret,
                             size_t size)
{
    size_t at = (size_t)snprintf(ret, size, "%s", who);
    for (const char *found; (found = strstr(pattern, "HOST")) != NULL; pattern = found + 4) {
        at +=
            (size_t)snprintf(ret + at, size - at, "%.*s%s", (int)(found - pattern), pattern, host);
    }
    snprintf(ret + at, size - at, "%s", pattern);
    return ret;
}

static void how_far_an_exchange_came_is_told_without_a_sandboxs_host(void)
{
    for (size_t i = 0; i < COUNT_OF(silences); i++) {
        char cause[256], want[512];
        struct fixture f;
        struct sandbox *sandbox = fixture_sandbox(&f);
        struct exchange x = {.path = "/x"};
        const struct fake_reply silent = {.code = silences[i].code,
                                          .failed_at = silences[i].stage,
                                          .status = 200,
                                          .body = "half",
                                          .message = cause};
        with_host(silences[i].cause, "", "api.e2b.app", cause, sizeof cause);
        call_reply(f.call, silent);
        CU_ASSERT_EQUAL(exchange_api(f.e2b, f.call, &x, call_error(f.call)), silences[i].told);
        with_host(silences[i].api, "E2B's API ", "api.e2b.app", want, sizeof want);
        expect_message(&f, want);
        with_host(silences[i].cause, "", "49983-" ID ".e2b.app", cause, sizeof cause);
        call_reply(f.call, silent);
        CU_ASSERT_EQUAL(exchange_sandbox(f.e2b, f.call, sandbox, PORT_ENVD, &x, call_error(f.call)),
                        silences[i].told);
        CU_ASSERT_EQUAL(x.reply.failed_at, silences[i].stage);
        with_host(silences[i].sandbox, "the sandbox ", "", want, sizeof want);
        expect_message(&f, want);
        CU_ASSERT_EQUAL(f.call->requests_count, 2);
        sandbox_unref(f.e2b, sandbox);
        fixture_free(&f);
    }
}

/* ---- bodies and sinks ---- */

struct seen {
    char text[64];
    size_t len, ticks;
    int code; /* returned once so many bytes came */
    size_t code_at;
};

static int see(void *context, enum sg_out kind, const void *data, size_t len, struct sg_error *err)
{
    struct seen *seen = context;
    CU_ASSERT_EQUAL(kind, SG_OUT_DATA);
    seen->ticks += len == 0;
    memcpy(seen->text + seen->len, data, len);
    seen->len += len;
    return seen->code != 0 && seen->len >= seen->code_at
               ? host_table()->fail(err, (enum sg_code)seen->code, "the sink's own words")
               : 0;
}

static void a_sink_gets_what_succeeds_and_its_own_failure_back(void)
{
    static const char *const pieces[] = {"ab", "", "cd", NULL};
    struct fixture f;
    struct sandbox *sandbox = fixture_sandbox(&f);
    struct seen seen = {.code = 0};
    const struct sg_sink sink = {see, &seen};
    struct exchange x = {.path = "/x", .sink = &sink, .tick_ms = 200};
    call_reply(f.call, (struct fake_reply){.status = 200, .pieces = pieces, .ticks = 2});
    CU_ASSERT_EQUAL(exchange_sandbox(f.e2b, f.call, sandbox, PORT_ENVD, &x, call_error(f.call)), 0);
    CU_ASSERT_STRING_EQUAL(seen.text, "abcd");
    CU_ASSERT_EQUAL(seen.ticks, 3);
    CU_ASSERT_STRING_EQUAL(x.body_kept, "");
    CU_ASSERT_EQUAL(f.call->requests[0].tick_ms, 200);

    seen = (struct seen){.code = SG_E_LIMIT, .code_at = 2};
    call_reply(f.call, (struct fake_reply){.status = 200, .pieces = pieces});
    CU_ASSERT_EQUAL(exchange_sandbox(f.e2b, f.call, sandbox, PORT_ENVD, &x, call_error(f.call)),
                    SG_E_LIMIT);
    expect_message(&f, "the sink's own words");
    CU_ASSERT_EQUAL(x.reply.failed_at, SG_HTTP_CUT);

    seen = (struct seen){.code = 0};
    call_reply(f.call, (struct fake_reply){.status = 404, .pieces = pieces});
    CU_ASSERT_EQUAL(exchange_sandbox(f.e2b, f.call, sandbox, PORT_ENVD, &x, call_error(f.call)), 0);
    CU_ASSERT_STRING_EQUAL(seen.text, "");
    CU_ASSERT_STRING_EQUAL(x.body_kept, "abcd");
    CU_ASSERT_EQUAL(x.reply.status, 404);
    sandbox_unref(f.e2b, sandbox);
    fixture_free(&f);
}

static void a_flood_is_cut_and_the_status_of_a_failure_is_known_all_the_same(void)
{
    static char flood[200000];
    memset(flood, 'x', sizeof flood);
    struct fixture f;
    struct sandbox *sandbox = fixture_sandbox(&f);
    struct exchange x = {.path = "/x", .bytes_max = 1000};
    const struct fake_reply floods = {
        .status = 200, .body = flood, .body_len = sizeof flood, .piece_len = 900};
    call_reply(f.call, floods);
    CU_ASSERT_EQUAL(exchange_sandbox(f.e2b, f.call, sandbox, PORT_ENVD, &x, call_error(f.call)),
                    SG_E_LIMIT);
    expect_message(&f, "the sandbox answered with too much");
    x = (struct exchange){.path = "/x", .bytes_max = 1000};
    call_reply(f.call, floods);
    CU_ASSERT_EQUAL(exchange_api(f.e2b, f.call, &x, call_error(f.call)), SG_E_UNAVAILABLE);
    expect_message(&f, "E2B's API answered with too much");
    x = (struct exchange){.path = "/x", .bytes_max = 1000};
    struct fake_reply fails = floods;
    fails.status = 500;
    call_reply(f.call, fails);
    CU_ASSERT_EQUAL(exchange_sandbox(f.e2b, f.call, sandbox, PORT_ENVD, &x, call_error(f.call)), 0);
    CU_ASSERT_EQUAL(x.reply.status, 500);
    CU_ASSERT_EQUAL(x.body_kept_len, 65536);
    CU_ASSERT_EQUAL(x.reply.failed_at, 0);
    sandbox_unref(f.e2b, sandbox);
    fixture_free(&f);
}

static void a_retry_after_that_is_no_number_of_seconds_is_none(void)
{
    static const struct {
        const char *value;
        int64_t seconds;
    } cases[] = {{"7", 7}, {"0", 1},  {"999999", 120}, {"Wed, 21 Oct 2026 07:28:00 GMT", 0},
                 {"", 0},  {"-1", 0}, {"1.5", 0},      {"99999999999999999999", 120}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *keys[] = {"date", "retry-after"}, *values[] = {"1", cases[i].value};
        const struct exchange x = {.reply = {.status = 429, .headers = {keys, values, 2}}};
        CU_ASSERT_EQUAL(exchange_retry_after(&x), cases[i].seconds);
    }
}

static const struct test tests[] = {
    TEST(each_answer_of_the_api_has_its_code_and_message),
    TEST(each_answer_of_a_sandbox_has_its_code_and_message),
    TEST(what_in_between_answers_502_the_api_is_asked_about),
    TEST(a_lost_connection_is_a_lost_sandbox_only_if_e2b_says_so),
    TEST(how_far_an_exchange_came_is_told_without_a_sandboxs_host),
    TEST(a_sink_gets_what_succeeds_and_its_own_failure_back),
    TEST(a_flood_is_cut_and_the_status_of_a_failure_is_known_all_the_same),
    TEST(a_retry_after_that_is_no_number_of_seconds_is_none),
};

int main(int argc, char **argv)
{
    return run_tests("e2b_faults", tests, COUNT_OF(tests), argc, argv);
}
