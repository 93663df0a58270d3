/* What goes wrong at a service, or between, and what each provider says of it: an error with a message of its own, never "no
 * hits". */
#include "search_fixture.h"

static const char page[] = "\n<!DOCTYPE html><html><body>Hello</body></html>";
static const char captcha[] = "<html><head><title>Just a moment...</title></head></html>";

struct fault {
    struct fake_reply reply;
    int code;
    const char *message; /* behind the service's name */
};

static const char *const seconds_7[] = {"retry-after", "7", NULL};
static const char *const a_date[] = {"retry-after", "Wed, 21 Oct 2026 07:28:00 GMT", NULL};

static const struct fault faults[] = {
    /* no answer */
    {{.code = SG_E_UNAVAILABLE, .failed_at = SG_HTTP_UNRESOLVED, .message = "m"},
     SG_E_UNAVAILABLE,
     " has no address (check 'base_url' and the name server): m"},
    {{.code = SG_E_UNAVAILABLE, .failed_at = SG_HTTP_UNCONNECTED, .message = "m"},
     SG_E_UNAVAILABLE,
     " cannot be reached: m"},
    {{.code = SG_E_UNAVAILABLE, .failed_at = SG_HTTP_NO_TLS, .message = "m"},
     SG_E_UNAVAILABLE,
     " cannot be trusted (for a certificate of one's own set 'ca_file'): m"},
    {{.code = SG_E_TIMEOUT, .failed_at = SG_HTTP_UNANSWERED, .message = "m"},
     SG_E_TIMEOUT,
     " did not answer in time: m"},
    {{.code = SG_E_UNAVAILABLE, .failed_at = SG_HTTP_UNANSWERED, .message = "m"},
     SG_E_UNAVAILABLE,
     " broke off before it answered: m"},
    {{.code = SG_E_TIMEOUT, .failed_at = SG_HTTP_CUT, .message = "m"},
     SG_E_TIMEOUT,
     " did not end its answer in time: m"},
    {{.code = SG_E_UNAVAILABLE, .failed_at = SG_HTTP_CUT, .message = "m"},
     SG_E_UNAVAILABLE,
     " broke off amid its answer: m"},
    {{.code = SG_E_LIMIT, .failed_at = SG_HTTP_CUT, .message = "m"},
     SG_E_UNAVAILABLE,
     " answered with too much: m"},
    /* by status */
    {{.status = 400, .body = "{\"detail\":{\"error\":\"bad \\u001b date\"}}"},
     SG_E_UNAVAILABLE,
     " refuses the query (400): bad date"},
    {{.status = 422, .body = "{\"error\":{\"code\":1,\"message\":\"no such thing\"}}"},
     SG_E_UNAVAILABLE,
     " refuses the query (422): no such thing"},
    {{.status = 400, .body = "{\"message\":\"wrong key key-0123456789\"}"},
     SG_E_UNAVAILABLE,
     " refuses the query (400)"},
    {{.status = 400, .body = "{\"message\":\"cannot search for my query\"}"},
     SG_E_UNAVAILABLE,
     " refuses the query (400)"},
    {{.status = 404, .body = page},
     SG_E_UNAVAILABLE,
     "what answers is not %s (404); check 'base_url'"},
    {{.status = 402, .body = ""},
     SG_E_LIMIT,
     "the searches of the account at %s are used up (402); look at its plan"},
    {{.status = 432, .body = "{\"detail\":{\"error\":\"plan limit\"}}"},
     SG_E_LIMIT,
     "the searches of the account at %s are used up (432); look at its plan: plan limit"},
    {{.status = 429, .headers = seconds_7, .body = "{}"},
     SG_E_LIMIT,
     " limits how often it is asked (429); it wants rest for 7 s"},
    {{.status = 429, .headers = a_date, .body = "Too many"},
     SG_E_LIMIT,
     " limits how often it is asked (429); try again later, or ask for a higher limit"},
    {{.status = 503, .headers = seconds_7, .body = "{\"message\":\"busy\"}"},
     SG_E_UNAVAILABLE,
     " failed (503): busy"},
    {{.status = 301, .body = page},
     SG_E_UNAVAILABLE,
     " sends elsewhere (301), which is not followed; check 'base_url'"},
    {{.status = 403, .body = captcha},
     SG_E_UNAVAILABLE,
     " answers with a page that asks for a human (a CAPTCHA, status 403): it takes the gateway for "
     "a robot; search less often, or from another address"},
    /* with a success that is none */
    {{.status = 200, .body = captcha},
     SG_E_UNAVAILABLE,
     " answers with a page that asks for a human (a CAPTCHA, status 200): it takes the gateway for "
     "a robot; search less often, or from another address"},
    {{.status = 200, .body = page},
     SG_E_UNAVAILABLE,
     " answers with a page of HTML instead of JSON; check 'base_url'"},
    {{.status = 200, .body = ""}, SG_E_UNAVAILABLE, " answers with nothing (200)"},
    {{.status = 204, .body = " \n"}, SG_E_UNAVAILABLE, " answers with nothing (204)"},
    {{.status = 200, .body = "{\"results\":[{\"url\":\"https://a.example\"},{\"ur"},
     SG_E_UNAVAILABLE,
     "'s answer ends too early: the text ends within a string"},
    {{.status = 200, .body = "{\"results\":[{\"url\":\"https://a.example\"}"},
     SG_E_UNAVAILABLE,
     "'s answer ends too early: expected a comma or the end of an array"},
    {{.status = 200, .body = "[]"}, SG_E_UNAVAILABLE, "'s answer cannot be used: not an object"},
    {{.status = 200, .body = "hello"}, SG_E_UNAVAILABLE, "'s answer cannot be used: not an object"},
    {{.status = 200, .body = "{}"},
     SG_E_UNAVAILABLE,
     "'s answer cannot be used: it holds no hits, not even an empty list of them"},
    {{.status = 200, .body = "{\"error\":\"out of order\"}"},
     SG_E_UNAVAILABLE,
     "'s answer cannot be used: it holds no hits, not even an empty list of them: out of order"},
    {{.status = 200,
      .body = "{\"results\":null,\"organic\":null,\"web\":{\"results\":null},\"query\":1,"
              "\"searchParameters\":1}"},
     SG_E_UNAVAILABLE,
     "'s answer cannot be used: its hits are no list"},
    {{.status = 200,
      .body =
          "{\"results\":[{\"title\":\"x\"},7],\"organic\":[{},7],\"web\":{\"results\":[{},{}]}}"},
     SG_E_UNAVAILABLE,
     "'s answer holds 2 hits, none with an address that can be used; is 'base_url' right?"},
};

static const char *const services[] = {"SearXNG", "Brave", "Tavily", "Exa", "Serper", "Perplexity"};

static void put_expected(const char *service, const char *message, char *out, size_t size)
{
    const char *place = strstr(message, "%s");
    if (place == NULL) {
        snprintf(out, size, "%s%s", service, message);
    } else {
        snprintf(out, size, "%.*s%s%s", (int)(place - message), message, service, place + 2);
    }
}

static void every_fault_is_an_error_with_its_own_message(void)
{
    for (size_t p = 0; p < COUNT_OF(providers); p++) {
        for (size_t i = 0; i < COUNT_OF(faults); i++) {
            struct search_fixture f;
            char expected[512];
            fixture_begin(&f, providers[p]);
            call_reply(f.call, faults[i].reply);
            int code = fixture_search(&f, (struct sg_query){.text = "my query"});
            put_expected(services[p], faults[i].message, expected, sizeof expected);
            CU_ASSERT_EQUAL(code, faults[i].code);
            CU_ASSERT_STRING_EQUAL(f.call->error.message, expected);
            CU_ASSERT_EQUAL(f.call->requests_count, 1);
            CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_HIT), 0);
            CU_ASSERT_PTR_NULL(strstr(f.call->error.message, KEY));
            fixture_end(&f);
        }
    }
}

static void a_refused_key_says_what_to_look_at(void)
{
    for (size_t p = 0; p < COUNT_OF(providers); p++) {
        for (int status = 401; status <= 403; status += 2) {
            struct search_fixture f;
            char expected[512];
            fixture_begin(&f, providers[p]);
            call_reply(f.call, (struct fake_reply){.status = status, .body = "{}"});
            CU_ASSERT_EQUAL(fixture_search(&f, (struct sg_query){.text = "x"}), SG_E_DENIED);
            snprintf(expected, sizeof expected, "%s does not let us in (%d); %s", services[p],
                     status,
                     p == 0 ? "add 'json' to search.formats in its settings.yml, and check "
                              "'api_key' if something in front of it asks for one"
                            : "check 'api_key'");
            CU_ASSERT_STRING_EQUAL(f.call->error.message, expected);
            fixture_end(&f);
        }
    }
}

static void engines_that_failed_are_not_no_hits(void)
{
    struct search_fixture f;
    fixture_begin(&f, "searxng");
    call_reply(f.call,
               (struct fake_reply){.status = 200,
                                   .body = "{\"results\": [], \"unresponsive_engines\": "
                                           "[[\"google\", \"Suspended: CAPTCHA\"], [\"brave\", "
                                           "\"too many requests\"]]}"});
    CU_ASSERT_EQUAL(fixture_search(&f, (struct sg_query){.text = "x"}), SG_E_UNAVAILABLE);
    CU_ASSERT_STRING_EQUAL(f.call->error.message,
                           "SearXNG found nothing because what it asks failed: google, Suspended: "
                           "CAPTCHA, brave, too many requests; look at its engines");
    fixture_end(&f);
    fixture_begin(&f, "searxng");
    call_reply(f.call, (struct fake_reply){.status = 200,
                                           .body = "{\"results\": [], \"unresponsive_engines\": "
                                                   "[[\"google\", \"of the query a [b] c\"]]}"});
    CU_ASSERT_EQUAL(fixture_search(&f, (struct sg_query){.text = "a [b] c"}), SG_E_UNAVAILABLE);
    CU_ASSERT_STRING_EQUAL(
        f.call->error.message,
        "SearXNG found nothing because what it asks failed; look at its engines");
    fixture_end(&f);
}

static void a_busy_service_is_asked_once_more(void)
{
    static const char *const one[] = {"retry-after", "1", NULL};
    static const char *const two[] = {"retry-after", "2", NULL};
    static const struct {
        int status;
        const char *const *headers;
        int64_t slept_ms;
    } cases[] = {{429, NULL, 500}, {429, one, 1000}, {503, two, 2000}, {500, NULL, 500}};
    for (size_t p = 0; p < COUNT_OF(providers); p++) {
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
            struct search_fixture f;
            fixture_begin(&f, providers[p]);
            call_reply(f.call, (struct fake_reply){.status = cases[i].status,
                                                   .headers = cases[i].headers,
                                                   .body = "busy"});
            call_reply(f.call, (struct fake_reply){.status = 200, .body = answer_of(providers[p])});
            CU_ASSERT_EQUAL(fixture_search(&f, (struct sg_query){.text = "x"}), 0);
            CU_ASSERT_EQUAL(f.call->slept_ms, cases[i].slept_ms);
            CU_ASSERT_EQUAL_FATAL(f.call->requests_count, 2);
            CU_ASSERT_STRING_EQUAL(f.call->requests[0].url, f.call->requests[1].url);
            CU_ASSERT_STRING_EQUAL(f.call->requests[0].body, f.call->requests[1].body);
            CU_ASSERT_STRING_EQUAL(f.call->requests[0].headers, f.call->requests[1].headers);
            CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_HIT), ONE_HIT);
            fixture_end(&f);
        }
    }
}

static void it_is_asked_no_third_time(void)
{
    struct search_fixture f;
    fixture_begin(&f, "brave");
    call_reply(f.call, (struct fake_reply){.status = 429, .body = "{}"});
    call_reply(f.call, (struct fake_reply){.status = 429, .body = "{\"message\":\"slower\"}"});
    CU_ASSERT_EQUAL(fixture_search(&f, (struct sg_query){.text = "x"}), SG_E_LIMIT);
    CU_ASSERT_STRING_EQUAL(f.call->error.message,
                           "Brave limits how often it is asked (429); try again later, or ask for "
                           "a higher limit: slower");
    CU_ASSERT_EQUAL(f.call->requests_count, 2);
    fixture_end(&f);
}

static void it_is_not_asked_again_where_there_is_no_time(void)
{
    static const char *const two[] = {"retry-after", "2", NULL};
    struct search_fixture f;
    fixture_begin(&f, "exa");
    f.call->time_left_ms = 1500;
    call_reply(f.call, (struct fake_reply){.status = 503, .headers = two, .body = "{}"});
    CU_ASSERT_EQUAL(fixture_search(&f, (struct sg_query){.text = "x"}), SG_E_UNAVAILABLE);
    CU_ASSERT_STRING_EQUAL(f.call->error.message, "Exa failed (503)");
    CU_ASSERT_EQUAL(f.call->requests_count, 1);
    fixture_end(&f);
}

static void a_call_that_is_cancelled_is_handed_back_as_it_is(void)
{
    struct search_fixture f;
    fixture_begin(&f, "exa");
    call_reply(f.call, (struct fake_reply){.code = SG_E_CANCELLED,
                                           .failed_at = SG_HTTP_UNANSWERED,
                                           .message = "nobody waits"});
    CU_ASSERT_EQUAL(fixture_search(&f, (struct sg_query){.text = "x"}), SG_E_CANCELLED);
    CU_ASSERT_STRING_EQUAL(f.call->error.message, "nobody waits");
    fixture_end(&f);
    fixture_begin(&f, "exa");
    f.call->sleeps_max = 1;
    f.call->sleeps = 1; /* so the first of them fails */
    call_reply(f.call, (struct fake_reply){.status = 503, .body = "{}"});
    CU_ASSERT_EQUAL(fixture_search(&f, (struct sg_query){.text = "x"}), SG_E_CANCELLED);
    CU_ASSERT_STRING_EQUAL(f.call->error.message, "the call was ended");
    fixture_end(&f);
}

static void an_answer_of_more_than_4_mib_is_refused(void)
{
    struct search_fixture f;
    size_t len = ((size_t)4 << 20) + 1;
    char *body = malloc(len + 1);
    memset(body, ' ', len);
    body[len] = '\0';
    fixture_begin(&f, "tavily");
    call_reply(f.call, (struct fake_reply){.status = 200, .body = body});
    CU_ASSERT_EQUAL(fixture_search(&f, (struct sg_query){.text = "x"}), SG_E_UNAVAILABLE);
    CU_ASSERT_STRING_EQUAL(
        f.call->error.message,
        "Tavily answered with too much: the answer is larger than 4194304 bytes");
    free(body);
    fixture_end(&f);
}

static const struct test tests[] = {
    TEST(every_fault_is_an_error_with_its_own_message),
    TEST(a_refused_key_says_what_to_look_at),
    TEST(engines_that_failed_are_not_no_hits),
    TEST(a_busy_service_is_asked_once_more),
    TEST(it_is_asked_no_third_time),
    TEST(it_is_not_asked_again_where_there_is_no_time),
    TEST(a_call_that_is_cancelled_is_handed_back_as_it_is),
    TEST(an_answer_of_more_than_4_mib_is_refused),
};

int main(int argc, char **argv)
{
    return run_tests("search_faults", tests, COUNT_OF(tests), argc, argv);
}
