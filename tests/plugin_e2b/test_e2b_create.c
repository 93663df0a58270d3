/* Making a sandbox when something goes wrong: answers that cannot be used, lost ones, callers that leave, limits. Whatever
 * happens, no sandbox is left that nobody knows of. */
#include "life_fixture.h"

/* ---- answers that cannot be used ---- */

static void a_sandbox_that_cannot_be_used_is_ended_at_once(void)
{
    static const struct {
        const char *answer, *problem;
        bool has_id; /* else it is looked for by its label */
    } cases[] = {
        {"", "it is no JSON object", false},
        {"[]", "it is no JSON object", false},
        {"{}", "its 'sandboxID' is none", false},
        {"{\"sandboxID\": 7}", "its 'sandboxID' is none", false},
        {"{\"sandboxID\": \"../etc\"}", "its 'sandboxID' is none", false},
        {"{\"sandboxID\": \"\"}", "its 'sandboxID' is none", false},
        {"{\"sandboxID\": \"ABC\"}", "its 'sandboxID' is none", false},
        {"{\"sandboxID\": \"" ID ID ID "abcd\"}", "its 'sandboxID' is none", false},
        {"{\"sandboxID\": \"" ID "\"}", "its 'envdVersion' is no version", true},
        {"{\"sandboxID\": \"" ID "\", \"envdVersion\": \"new\"}", "its 'envdVersion' is no version",
         true},
        {"{\"sandboxID\": \"" ID "\", \"envdVersion\": \"0.0.9\"}",
         "its template is older than envd 0.1.0; build it anew", true},
        {"{\"sandboxID\": \"" ID "\", \"envdVersion\": \"0.5.0\", \"domain\": \"a/b\"}",
         "its domain is none", true},
        {"{\"sandboxID\": \"" ID "\", \"envdVersion\": \"0.5.0\", \"domain\": \"a@b.example\"}",
         "its domain is none", true},
        {"{\"sandboxID\": \"" ID "\", \"envdVersion\": \"0.5.0\", \"envdAccessToken\": \"a\\nb\"}",
         "its access token is no printable text of at most 507 bytes", true},
        {"{\"sandboxID\": \"" ID "\", \"envdVersion\": \"0.5.0\", \"trafficAccessToken\": {}}",
         "its access token is no printable text of at most 507 bytes", true},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fixture f;
        char message[256];
        fixture_init(&f);
        fixture_open(&f);
        reply(&f, 201, cases[i].answer);
        reply(&f, cases[i].has_id ? 204 : 200, cases[i].has_id ? "" : "[]");
        CU_ASSERT_EQUAL(create(&f, "sg-first"), SG_E_UNAVAILABLE);
        snprintf(message, sizeof message, "cannot make a sandbox: E2B's answer cannot be used: %s",
                 cases[i].problem);
        expect_message(&f, message);
        CU_ASSERT_EQUAL(f.call->requests_count, 2);
        expect_request(&f, 1, cases[i].has_id ? "DELETE" : "GET",
                       cases[i].has_id
                           ? "https://api.e2b.app/sandboxes/" ID
                           : "https://api.e2b.app/v2/sandboxes?metadata=sandgate%3Dsg-first"
                             "&state=running%2Cpaused&limit=100");
        CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_HANDLE), 0);
        CU_ASSERT_EQUAL(f.e2b->count, 0);
        orphans_clear(f.e2b);
        fixture_free(&f);
    }
}

static void a_door_that_stays_open_is_warned_of(void)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    reply(&f, 201,
          "{\"sandboxID\": \"" ID "\", \"envdVersion\": \"0.5.0\", "
          "\"envdAccessToken\": \"t\"}");
    CU_ASSERT_EQUAL(create(&f, "sg-first"), 0);
    CU_ASSERT_STRING_EQUAL(f.call->logged,
                           "E2B gave no traffic access token though 'public_traffic' is off: who "
                           "knows a sandbox's id can reach its servers");
    next_call(&f);
    reply(&f, 201,
          "{\"sandboxID\": \"" OTHER "\", \"envdVersion\": \"0.5.0\", "
          "\"trafficAccessToken\": \"t\"}");
    CU_ASSERT_EQUAL(create(&f, "sg-second"), 0);
    CU_ASSERT_STRING_EQUAL(f.call->logged,
                           "E2B gave no access token: who knows a sandbox's id can use its files");
    fixture_free(&f);
}

/* Two tenants would share it. What was made is looked for, but never what another has. */
static void the_id_of_another_sandbox_is_refused_and_gives_its_place_back(void)
{
    struct fixture f;
    fixture_init(&f);
    config_set(plugin, f.config, "concurrency", "2");
    fixture_open(&f);
    make(&f, CREATED(ID));
    for (int i = 0; i < 2; i++) { /* a place that was lost would end this at the second */
        next_call(&f);
        reply(&f, 201, CREATED(ID));
        reply(&f, 200, "[{\"sandboxID\": \"" ID "\", \"metadata\": {\"sandgate\": \"sg-other\"}}]");
        CU_ASSERT_EQUAL(create(&f, "sg-other"), SG_E_UNAVAILABLE);
        expect_message(&f, "cannot make a sandbox: E2B gave the id of another sandbox");
        CU_ASSERT_EQUAL(f.call->requests_count, 2);
        CU_ASSERT_EQUAL(f.e2b->count, 1);
    }
    fixture_free(&f);
}

static void ids_with_dashes_of_their_own_are_not_cut(void)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    reply(&f, 201, CREATED(ID "-6532622b"));
    CU_ASSERT_EQUAL(create(&f, "sg-old"), 0);
    next_call(&f);
    reply(&f, 201, CREATED("0b7e4c1a-93d2-4f5e-8a66-1f0e9d2c3b4a"));
    reply(&f, 200, "[]");
    CU_ASSERT_EQUAL(create(&f, "sg-new"), SG_E_UNAVAILABLE);
    expect_message(&f, "cannot make a sandbox: E2B's answer cannot be used: its 'sandboxID' is "
                       "none");
    orphans_clear(f.e2b);
    fixture_free(&f);
}

/* ---- lost answers ---- */

#define LIST                                                                                      \
    "https://api.e2b.app/v2/sandboxes?metadata=sandgate%3Dsg-first&state=running%2Cpaused&limit=" \
    "100"
#define LISTED(id, label) \
    "{\"sandboxID\": \"" id "\", \"metadata\": {\"x\": \"}]\", \"sandgate\": \"" label "\"}}"

static void lose_answer(struct fixture *f)
{
    call_reply(f->call, (struct fake_reply){.code = SG_E_UNAVAILABLE,
                                            .failed_at = SG_HTTP_UNANSWERED,
                                            .message = "api.e2b.app:443 closed the connection"});
}

static void a_lost_answer_is_found_by_its_label_on_any_page_and_deleted(void)
{
    static const char *const next[] = {"x-next-token", "Zm9v+/=", NULL};
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    lose_answer(&f);
    call_reply(f.call, (struct fake_reply){.status = 200,
                                           .headers = next,
                                           .body = "[" LISTED(OTHER, "sg-second") ", {}, 7]"});
    reply(&f, 200, "[" LISTED(ID, "sg-first") "]");
    reply(&f, 204, "");
    CU_ASSERT_EQUAL(create(&f, "sg-first"), SG_E_UNAVAILABLE);
    expect_message(&f, "cannot make a sandbox: E2B's API broke off before it answered: "
                       "api.e2b.app:443 closed the connection");
    CU_ASSERT_EQUAL(f.call->requests_count, 4);
    expect_request(&f, 1, "GET", LIST);
    expect_request(&f, 2, "GET", LIST "&nextToken=Zm9v%2B%2F%3D");
    expect_request(&f, 3, "DELETE", "https://api.e2b.app/sandboxes/" ID);
    CU_ASSERT_STRING_EQUAL(f.call->logged,
                           "a sandbox whose making was not confirmed was found and ended");
    CU_ASSERT_PTR_NULL(f.e2b->orphans);
    CU_ASSERT_EQUAL(f.e2b->count, 0);
    fixture_free(&f);
}

static void what_is_not_listed_yet_is_looked_for_again_until_it_cannot_come_any_more(void)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    lose_answer(&f);
    reply(&f, 200, "[]");
    CU_ASSERT_EQUAL(create(&f, "sg-first"), SG_E_UNAVAILABLE);
    CU_ASSERT_PTR_NOT_NULL_FATAL(f.e2b->orphans);
    next_call(&f);
    reply(&f, 201, CREATED(OTHER)); /* not so soon */
    CU_ASSERT_EQUAL(create(&f, "sg-second"), 0);
    CU_ASSERT_EQUAL(f.call->requests_count, 1);

    f.e2b->orphans->again_at = 0;
    next_call(&f);
    reply(&f, 500, "{\"code\": 500, \"message\": \"no\"}"); /* its failure fails nobody else */
    reply(&f, 201, CREATED("i3"));
    CU_ASSERT_EQUAL(create(&f, "sg-third"), 0);
    expect_request(&f, 0, "GET", LIST);
    CU_ASSERT_STRING_EQUAL(f.call->logged,
                           "1 sandboxes whose making was not confirmed may be left at E2B until "
                           "their time is up");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f.e2b->orphans);

    f.e2b->orphans->again_at = f.e2b->orphans->settled_at = 0;
    next_call(&f);
    reply(&f, 200, "[]");
    reply(&f, 201, CREATED("i4"));
    CU_ASSERT_EQUAL(create(&f, "sg-fourth"), 0);
    CU_ASSERT_EQUAL(f.call->requests_count, 2);
    CU_ASSERT_PTR_NULL(f.e2b->orphans);
    fixture_free(&f);
}

static void a_create_looks_for_a_few_at_most(void)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    for (int i = 0; i < 7; i++) {
        next_call(&f);
        lose_answer(&f);
        reply(&f, 200, "[]");
        CU_ASSERT_EQUAL(create(&f, "sg-first"), SG_E_UNAVAILABLE);
        CU_ASSERT_EQUAL(f.call->requests_count, 2); /* only the new one is due */
    }
    for (struct orphan *orphan = f.e2b->orphans; orphan != NULL; orphan = orphan->next) {
        orphan->again_at = orphan->settled_at = 0;
    }
    for (size_t left = 7; left > 0; left = left > 4 ? left - 4 : 0) {
        size_t looks = left < 4 ? left : 4;
        next_call(&f);
        for (size_t i = 0; i < looks; i++) {
            reply(&f, 200, "[]");
        }
        reply(&f, 201, left == 7 ? CREATED(ID) : CREATED(OTHER));
        CU_ASSERT_EQUAL(create(&f, "sg-next"), 0);
        CU_ASSERT_EQUAL(f.call->requests_count, looks + 1);
    }
    CU_ASSERT_PTR_NULL(f.e2b->orphans);
    fixture_free(&f);
}

static void closing_looks_for_what_was_lost_once_more(void)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    lose_answer(&f);
    reply(&f, 200, "[]");
    CU_ASSERT_EQUAL(create(&f, "sg-first"), SG_E_UNAVAILABLE);
    next_call(&f);
    reply(&f, 200, "[" LISTED(ID, "sg-first") "]");
    reply(&f, 204, "");
    plugin->close(f.e2b, f.call);
    f.e2b = NULL;
    CU_ASSERT_EQUAL(f.call->requests_count, 2);
    expect_request(&f, 1, "DELETE", "https://api.e2b.app/sandboxes/" ID);
    CU_ASSERT_EQUAL(f.call->requests[0].timeout_ms, 5000);
    fixture_free(&f);
}

static void an_answer_of_something_in_between_counts_as_lost_and_one_of_e2b_does_not(void)
{
    static const struct {
        int status;
        const char *body;
        size_t requests;
    } cases[] = {
        {504, "<html>", 2}, {502, "", 2},
        {408, "", 2},       {500, "{\"code\": 500, \"message\": \"no\"}", 1},
        {400, "", 1},       {204, "", 2},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fixture f;
        fixture_init(&f);
        fixture_open(&f);
        reply(&f, cases[i].status, cases[i].body);
        reply(&f, 200, "[]");
        CU_ASSERT_NOT_EQUAL(create(&f, "sg-first"), 0);
        CU_ASSERT_EQUAL(f.call->requests_count, cases[i].requests);
        CU_ASSERT_EQUAL(f.e2b->orphans != NULL, cases[i].requests == 2);
        orphans_clear(f.e2b);
        fixture_free(&f);
    }
}

static void a_create_that_nobody_waits_for_leaves_nothing(void)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    f.call->emits_max = 1; /* of which there is one already */
    CU_ASSERT_EQUAL(host_table()->emit(f.call, SG_OUT_DATA, "", 0, call_error(f.call)), 0);
    f.call->emit_code = SG_E_CANCELLED;
    reply(&f, 201, CREATED(ID));
    reply(&f, 204, "");
    CU_ASSERT_EQUAL(create(&f, "sg-first"), SG_E_CANCELLED);
    expect_message(&f, "nobody listens any more");
    expect_request(&f, 1, "DELETE", "https://api.e2b.app/sandboxes/" ID);
    CU_ASSERT_EQUAL(f.e2b->count, 0);
    CU_ASSERT_PTR_NULL(f.e2b->orphans);

    next_call(&f); /* cancelled while it was asked for: nothing can be asked any more */
    call_reply(f.call, (struct fake_reply){.code = SG_E_CANCELLED,
                                           .failed_at = SG_HTTP_UNANSWERED,
                                           .message = "c"});
    call_reply(f.call, (struct fake_reply){.code = SG_E_CANCELLED,
                                           .failed_at = SG_HTTP_UNRESOLVED,
                                           .message = "c"});
    CU_ASSERT_EQUAL(create(&f, "sg-first"), SG_E_CANCELLED);
    CU_ASSERT_EQUAL(f.e2b->count, 0);
    next_call(&f);
    reply(&f, 200, "[" LISTED(ID, "sg-first") "]");
    reply(&f, 204, "");
    plugin->close(f.e2b, f.call);
    f.e2b = NULL;
    expect_request(&f, 1, "DELETE", "https://api.e2b.app/sandboxes/" ID);
    fixture_free(&f);
}

static void what_never_reached_the_api_leaves_nothing_and_is_tried_once_more(void)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    const struct fake_reply refused = {.code = SG_E_UNAVAILABLE,
                                       .failed_at = SG_HTTP_UNCONNECTED,
                                       .message = "cannot connect to api.e2b.app:443: refused"};
    call_reply(f.call, refused);
    call_reply(f.call, refused);
    CU_ASSERT_EQUAL(create(&f, "sg-first"), SG_E_UNAVAILABLE);
    expect_message(&f, "cannot make a sandbox: E2B's API cannot be reached: cannot connect to "
                       "api.e2b.app:443: refused");
    CU_ASSERT_EQUAL(f.call->requests_count, 2);
    CU_ASSERT_EQUAL(f.call->slept_ms, 500);
    CU_ASSERT_PTR_NULL(f.e2b->orphans);
    next_call(&f);
    call_reply(f.call, refused);
    reply(&f, 201, CREATED(ID));
    CU_ASSERT_EQUAL(create(&f, "sg-first"), 0);
    fixture_free(&f);
}

/* ---- answers that nobody would send ---- */

static uint32_t random_state;

static uint32_t next_random(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

/* A copy with some bytes changed, and perhaps cut. */
static size_t mutate(const char *text, char *ret)
{
    static const char bytes[] = "\"\\{}[],:-09az\0\n\xC3\xFF";
    size_t len = strlen(text);
    memcpy(ret, text, len);
    for (uint32_t i = next_random() % 6; i > 0; i--) {
        ret[next_random() % len] = bytes[next_random() % sizeof bytes];
    }
    return next_random() % 4 == 0 ? 1 + next_random() % len : len;
}

static bool is_label_kept(const char *page, size_t len)
{
    return memmem(page, len, "sg-first", 8) != NULL;
}

/* Whatever comes: no byte is read beyond it (the sanitizers would say), what is taken is valid, and nothing is deleted that
 * does not have the label. */
static void damaged_answers_do_no_harm(void)
{
    static const char page[] = "[" LISTED(OTHER, "sg-other") ", " LISTED(ID, "sg-first") "]";
    struct fixture f;
    random_state = 7919;
    fixture_init(&f);
    fixture_open(&f);
    size_t taken = 0, deleted = 0;
    for (int i = 0; i < 3000; i++) {
        char answer[1024], list[1024], other[1024];
        next_call(&f);
        size_t answer_len = mutate(CREATED(ID), answer), list_len = mutate(page, list);
        call_reply(f.call,
                   (struct fake_reply){.status = 201, .body = answer, .body_len = answer_len});
        call_reply(f.call, (struct fake_reply){.status = 200, .body = list, .body_len = list_len});
        reply(&f, 204, "");
        snprintf(other, sizeof other, "https://api.e2b.app/sandboxes/%s", OTHER);
        if (create(&f, "sg-first") == 0) {
            const char *handle = call_text(f.call, SG_OUT_HANDLE);
            CU_ASSERT(strspn(handle, "abcdefghijklmnopqrstuvwxyz0123456789") == strlen(handle));
            struct sandbox *made = sandbox_find(f.e2b, handle);
            sandbox_forget(f.e2b, made); /* the next may have the same id */
            sandbox_unref(f.e2b, made);
            taken++;
        } else if (f.call->requests_count == 3) {
            CU_ASSERT_TRUE(is_label_kept(list, list_len));
            CU_ASSERT_STRING_NOT_EQUAL(f.call->requests[2].url, other);
            deleted++;
        }
        orphans_clear(f.e2b);
    }
    CU_ASSERT(taken > 500 && deleted > 100);
    fixture_free(&f);
}

/* ---- limits ---- */

static const char *const in_seven[] = {"retry-after", "7", NULL};

static void rate_limit(struct fixture *f, const char *const *headers)
{
    call_reply(f->call, (struct fake_reply){.status = 429,
                                            .headers = headers,
                                            .body = "{\"code\": 429, \"message\": \"Rate\"}"});
}

static void a_rate_limit_is_waited_for_as_long_as_it_says_and_three_times_at_most(void)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    rate_limit(&f, in_seven);
    reply(&f, 201, CREATED(ID));
    CU_ASSERT_EQUAL(create(&f, "sg-first"), 0);
    CU_ASSERT_EQUAL(f.call->sleeps, 1);
    CU_ASSERT(f.call->slept_ms > 6500 && f.call->slept_ms <= 7000);

    next_call(&f); /* it holds for all, and is told to the fourth time */
    for (int i = 0; i < 4; i++) {
        rate_limit(&f, in_seven);
    }
    CU_ASSERT_EQUAL(create(&f, "sg-second"), SG_E_LIMIT);
    expect_message(&f, "cannot make a sandbox: E2B limits how often it is asked (429); try again "
                       "in 7 s");
    CU_ASSERT_EQUAL(f.call->requests_count, 4);
    CU_ASSERT_EQUAL(f.call->sleeps, 4);

    next_call(&f);
    f.call->time_left_ms = 3000; /* less than is to be waited */
    CU_ASSERT_EQUAL(create(&f, "sg-third"), SG_E_LIMIT);
    CU_ASSERT_EQUAL(f.call->requests_count, 0);
    expect_message(&f, "cannot make a sandbox: E2B's API is not asked: E2B limits how often it is "
                       "(429); it wants rest for 7 s, more than there is time; try again later");
    rate_limit(
        &f, in_seven); /* but an end is asked for, once: a sandbox costs as long as it is there */
    CU_ASSERT_EQUAL(e2b_destroy(f.e2b, f.call, ID, call_error(f.call)), SG_E_LIMIT);
    CU_ASSERT_EQUAL(f.call->requests_count, 1);
    CU_ASSERT_STRING_EQUAL(f.call->requests[0].method, "DELETE");
    f.e2b->api_closed_until = 0;
    fixture_free(&f);
}

/* An hour may be a mistake: after two minutes one call asks, and the others wait for what it hears. */
static void a_long_rest_is_kept_to_for_two_minutes_and_then_probed_by_one_call(void)
{
    static const char *const in_an_hour[] = {"retry-after", "3600", NULL};
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    rate_limit(&f, in_an_hour);
    CU_ASSERT_EQUAL(create(&f, "sg-first"), SG_E_LIMIT);
    expect_message(&f, "cannot make a sandbox: E2B limits how often it is asked (429); try again "
                       "in 120 s");
    int64_t left = f.e2b->api_closed_until - clock_ms();
    CU_ASSERT(left > 110000 && left <= 120000);

    f.e2b->api_closed_until = clock_ms() - 1; /* two minutes later: the probe hears the same */
    next_call(&f);
    rate_limit(&f, in_an_hour);
    CU_ASSERT_EQUAL(create(&f, "sg-second"), SG_E_LIMIT);
    CU_ASSERT_EQUAL(f.call->requests_count, 1);
    next_call(&f);
    CU_ASSERT_EQUAL(create(&f, "sg-third"), SG_E_LIMIT);
    CU_ASSERT_EQUAL(f.call->requests_count, 0);

    f.e2b->api_closed_until = clock_ms() - 1; /* the probe has no answer: it stays closed */
    next_call(&f);
    call_reply(f.call, (struct fake_reply){.code = SG_E_UNAVAILABLE,
                                           .failed_at = SG_HTTP_UNRESOLVED,
                                           .message = "m"});
    CU_ASSERT_EQUAL(create(&f, "sg-fourth"), SG_E_UNAVAILABLE);
    CU_ASSERT(f.e2b->api_closed_until > clock_ms());
    next_call(&f);
    f.call->time_left_ms = 1000;
    CU_ASSERT_EQUAL(create(&f, "sg-fifth"), SG_E_LIMIT);
    CU_ASSERT_EQUAL(f.call->requests_count, 0);

    f.e2b->api_closed_until = clock_ms() - 1; /* and a success opens it for all */
    next_call(&f);
    reply(&f, 201, CREATED(ID));
    CU_ASSERT_EQUAL(create(&f, "sg-sixth"), 0);
    CU_ASSERT_EQUAL(f.e2b->api_closed_until, 0);
    CU_ASSERT_FALSE(f.e2b->wants_probe);
    fixture_free(&f);
}

static void a_limit_of_the_account_fails_at_once(void)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    reply(&f, 429,
          "{\"code\": 429, \"message\": \"you have reached the maximum number of "
          "concurrent E2B sandboxes (20)\"}");
    CU_ASSERT_EQUAL(create(&f, "sg-first"), SG_E_LIMIT);
    expect_message(&f, "cannot make a sandbox: a limit of the account at E2B is reached (429); end "
                       "sandboxes, or try again later: you have reached the maximum number of "
                       "concurrent E2B sandboxes (20)");
    CU_ASSERT_EQUAL(f.call->requests_count, 1);
    CU_ASSERT_EQUAL(f.call->sleeps, 0);
    fixture_free(&f);
}

/* Sixty at one time must not ask sixty times; where one of ours is ended there is room again. */
static void a_full_account_is_not_asked_again_for_two_seconds_or_until_one_is_ended(void)
{
    static const char *const dates[] = {NULL, "Wed, 21 Oct 2026 07:28:00 GMT", "abc", "-5"};
    for (size_t i = 0; i < COUNT_OF(dates); i++) {
        const char *const headers[] = {dates[i] == NULL ? NULL : "retry-after", dates[i], NULL};
        const char *message = "cannot make a sandbox: a limit of the account at E2B is reached "
                              "(429); end sandboxes, or try again later: Rate";
        struct fixture f;
        fixture_init(&f);
        config_set(plugin, f.config, "concurrency", "3");
        fixture_open(&f);
        make(&f, CREATED(ID));
        rate_limit(&f, headers);
        CU_ASSERT_EQUAL(create(&f, "sg-second"), SG_E_LIMIT);
        expect_message(&f, message);
        int64_t left = f.e2b->full_until - clock_ms();
        CU_ASSERT(left > 1000 && left <= 2000);
        for (int again = 0; again < 5; again++) {
            next_call(&f);
            CU_ASSERT_EQUAL(create(&f, "sg-third"), SG_E_LIMIT);
            expect_message(&f, message);
            CU_ASSERT_EQUAL(f.call->requests_count, 0);
        }
        CU_ASSERT_EQUAL(f.e2b->count, 1);
        if (i % 2 == 0) {
            reply(&f, 204, "");
            CU_ASSERT_EQUAL(e2b_destroy(f.e2b, f.call, ID, call_error(f.call)), 0);
        } else {
            f.e2b->full_until = clock_ms(); /* the time is over */
        }
        next_call(&f);
        make(&f, CREATED(OTHER));
        fixture_free(&f);
    }
}

static void our_own_limit_counts_those_that_are_there(void)
{
    struct fixture f;
    fixture_init(&f);
    config_set(plugin, f.config, "concurrency", "1");
    fixture_open(&f);
    reply(&f, 403, "{\"code\": 403, \"message\": \"no\"}"); /* gives its place back */
    CU_ASSERT_EQUAL(create(&f, "sg-none"), SG_E_DENIED);
    next_call(&f);
    make(&f, CREATED(ID));
    CU_ASSERT_EQUAL(create(&f, "sg-second"), SG_E_LIMIT);
    expect_message(&f, "cannot make a sandbox: all 1 that 'concurrency' allows are in use; end "
                       "one, or try again later");
    CU_ASSERT_EQUAL(f.call->requests_count, 0);
    reply(&f, 204, "");
    CU_ASSERT_EQUAL(e2b_destroy(f.e2b, f.call, ID, call_error(f.call)), 0);
    next_call(&f);
    make(&f, CREATED(OTHER));
    fixture_free(&f);
}

static const struct test tests[] = {
    TEST(a_sandbox_that_cannot_be_used_is_ended_at_once),
    TEST(a_door_that_stays_open_is_warned_of),
    TEST(the_id_of_another_sandbox_is_refused_and_gives_its_place_back),
    TEST(ids_with_dashes_of_their_own_are_not_cut),
    TEST(a_lost_answer_is_found_by_its_label_on_any_page_and_deleted),
    TEST(what_is_not_listed_yet_is_looked_for_again_until_it_cannot_come_any_more),
    TEST(a_create_looks_for_a_few_at_most),
    TEST(closing_looks_for_what_was_lost_once_more),
    TEST(an_answer_of_something_in_between_counts_as_lost_and_one_of_e2b_does_not),
    TEST(a_create_that_nobody_waits_for_leaves_nothing),
    TEST(what_never_reached_the_api_leaves_nothing_and_is_tried_once_more),
    TEST(damaged_answers_do_no_harm),
    TEST(a_rate_limit_is_waited_for_as_long_as_it_says_and_three_times_at_most),
    TEST(a_long_rest_is_kept_to_for_two_minutes_and_then_probed_by_one_call),
    TEST(a_limit_of_the_account_fails_at_once),
    TEST(a_full_account_is_not_asked_again_for_two_seconds_or_until_one_is_ended),
    TEST(our_own_limit_counts_those_that_are_there),
};

int main(int argc, char **argv)
{
    return run_tests("e2b_create", tests, COUNT_OF(tests), argc, argv);
}
