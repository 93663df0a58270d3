/* Making a sandbox when something goes wrong: answers that cannot be used, lost ones, callers that leave. Whatever
 * happens, no sandbox is left that nobody knows of. */
#include "life_fixture.h"

#define LIST(label)                                               \
    "https://api.e2b.app/v2/sandboxes?metadata=sandgate%3D" label \
    "&state=running%2Cpaused&limit=100"

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

/* Its answer is wrong, and says so of one that is in use: another is looked for by the label. */
static void a_sandbox_in_use_is_not_ended_for_a_wrong_answer(void)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    make(&f, CREATED(ID));
    reply(&f, 201, "{\"sandboxID\": \"" ID "\", \"envdVersion\": \"none\"}");
    reply(&f, 200,
          "[{\"sandboxID\": \"" ID "\", \"metadata\": {\"sandgate\": \"sg-other\"}},"
          "{\"sandboxID\": \"" OTHER "\", \"metadata\": {\"sandgate\": \"sg-other\"}}]");
    reply(&f, 204, "");
    CU_ASSERT_EQUAL(create(&f, "sg-other"), SG_E_UNAVAILABLE);
    CU_ASSERT_EQUAL(f.call->requests_count, 3);
    expect_request(&f, 1, "GET", LIST("sg-other"));
    expect_request(&f, 2, "DELETE", "https://api.e2b.app/sandboxes/" OTHER);
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
    expect_request(&f, 1, "GET", LIST("sg-first"));
    expect_request(&f, 2, "GET", LIST("sg-first") "&nextToken=Zm9v%2B%2F%3D");
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
    expect_request(&f, 0, "GET", LIST("sg-first"));
    CU_ASSERT_STRING_EQUAL(f.call->logged,
                           "sandboxes whose making was not confirmed may be left at E2B until "
                           "their time is up: 1");
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

static void a_create_looks_for_one_at_most_and_not_for_long(void)
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
    for (size_t left = 7; left > 0; left--) {
        next_call(&f);
        reply(&f, 200, "[]");
        reply(&f, 201, CREATED(ID));
        CU_ASSERT_EQUAL(create(&f, "sg-next"), 0);
        CU_ASSERT_EQUAL(f.call->requests_count, 2);
        CU_ASSERT_EQUAL(f.call->requests[0].timeout_ms, 3000);
        CU_ASSERT_EQUAL(f.call->requests[1].timeout_ms, 30000);
        sandboxes_clear(f.e2b);
    }
    CU_ASSERT_PTR_NULL(f.e2b->orphans);
    fixture_free(&f);
}

/* Without an end of pages, and with a hundred of one label: a service that would keep us busy. */
static void looking_for_one_ends_after_ten_pages_and_ends_four_at_most(void)
{
    static const char *const next[] = {"x-next-token", "n", NULL};
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    lose_answer(&f);
    for (int i = 0; i < 12; i++) {
        call_reply(f.call, (struct fake_reply){.status = 200, .headers = next, .body = "[]"});
    }
    CU_ASSERT_EQUAL(create(&f, "sg-first"), SG_E_UNAVAILABLE);
    CU_ASSERT_EQUAL(f.call->requests_count, 11);
    CU_ASSERT_PTR_NOT_NULL_FATAL(f.e2b->orphans);

    char page[8192] = "[";
    for (int i = 0; i < 100; i++) {
        size_t at = strlen(page);
        snprintf(page + at, sizeof page - at,
                 "%s{\"sandboxID\": \"i%d\", \"metadata\": {\"sandgate\": \"sg-first\"}}",
                 i > 0 ? "," : "", i);
    }
    strncat(page, "]", 2);
    f.e2b->orphans->again_at = 0;
    next_call(&f);
    call_reply(f.call, (struct fake_reply){.status = 200, .headers = next, .body = page});
    for (int i = 0; i < 4; i++) {
        reply(&f, 204, "");
    }
    reply(&f, 201, CREATED(ID));
    CU_ASSERT_EQUAL(create(&f, "sg-second"), 0);
    CU_ASSERT_EQUAL(f.call->requests_count, 6);
    expect_request(&f, 4, "DELETE", "https://api.e2b.app/sandboxes/i3");
    CU_ASSERT_EQUAL(f.call->requests[4].timeout_ms, 3000);
    CU_ASSERT_PTR_NULL(f.e2b->orphans);
    fixture_free(&f);
}

static void looking_does_not_wait_for_an_api_that_wants_rest(void)
{
    static const char *const in_seven[] = {"retry-after", "7", NULL};
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    lose_answer(&f);
    call_reply(f.call, (struct fake_reply){.status = 429,
                                           .headers = in_seven,
                                           .body = "{\"code\": 429, \"message\": \"Rate\"}"});
    CU_ASSERT_EQUAL(create(&f, "sg-first"), SG_E_UNAVAILABLE);
    CU_ASSERT_EQUAL(f.call->requests_count, 2);
    CU_ASSERT_EQUAL(f.call->sleeps, 0);
    orphans_clear(f.e2b);
    fixture_free(&f);
}

static void looking_is_not_repeated_where_the_api_cannot_be_reached(void)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    lose_answer(&f);
    call_reply(f.call, (struct fake_reply){.code = SG_E_UNAVAILABLE,
                                           .failed_at = SG_HTTP_UNCONNECTED,
                                           .message = "refused"});
    CU_ASSERT_EQUAL(create(&f, "sg-first"), SG_E_UNAVAILABLE);
    CU_ASSERT_EQUAL(f.call->requests_count, 2);
    CU_ASSERT_EQUAL(f.call->sleeps, 0);
    orphans_clear(f.e2b);
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

static const struct test tests[] = {
    TEST(a_sandbox_that_cannot_be_used_is_ended_at_once),
    TEST(a_door_that_stays_open_is_warned_of),
    TEST(the_id_of_another_sandbox_is_refused_and_gives_its_place_back),
    TEST(a_sandbox_in_use_is_not_ended_for_a_wrong_answer),
    TEST(ids_with_dashes_of_their_own_are_not_cut),
    TEST(a_lost_answer_is_found_by_its_label_on_any_page_and_deleted),
    TEST(what_is_not_listed_yet_is_looked_for_again_until_it_cannot_come_any_more),
    TEST(a_create_looks_for_one_at_most_and_not_for_long),
    TEST(looking_for_one_ends_after_ten_pages_and_ends_four_at_most),
    TEST(looking_does_not_wait_for_an_api_that_wants_rest),
    TEST(looking_is_not_repeated_where_the_api_cannot_be_reached),
    TEST(closing_looks_for_what_was_lost_once_more),
    TEST(an_answer_of_something_in_between_counts_as_lost_and_one_of_e2b_does_not),
    TEST(a_create_that_nobody_waits_for_leaves_nothing),
    TEST(what_never_reached_the_api_leaves_nothing_and_is_tried_once_more),
    TEST(damaged_answers_do_no_harm),
};

int main(int argc, char **argv)
{
    return run_tests("e2b_create", tests, COUNT_OF(tests), argc, argv);
}
