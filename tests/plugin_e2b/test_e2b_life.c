/* A sandbox's life at E2B: making one, connecting to one of an earlier process, lengthening its life, ending it. The requests
 * are compared as they would be sent; every answer is scripted. */
#include "life_fixture.h"

#include <pthread.h>
#include <stdatomic.h>

static void a_create_asks_for_a_secured_sandbox_without_internet(void)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    reply(&f, 201, CREATED(ID));
    CU_ASSERT_EQUAL(create(&f, "sg-first"), 0);
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_HANDLE), ID);
    expect_request(&f, 0, "POST", "https://api.e2b.app/sandboxes");
    CU_ASSERT_STRING_EQUAL(request_header(f.call, 0, "X-API-Key"), KEY);
    CU_ASSERT_STRING_EQUAL(request_header(f.call, 0, "Content-Type"), "application/json");
    CU_ASSERT_STRING_EQUAL(
        f.call->requests[0].body,
        "{\"templateID\": \"code-interpreter-v1\", \"timeout\": 1020, \"secure\": true, "
        "\"metadata\": {\"sandgate\": \"sg-first\"}, \"envVars\": {}, "
        "\"allow_internet_access\": false, \"network\": {\"allowPublicTraffic\": false}}");
    CU_ASSERT_EQUAL(f.call->requests[0].timeout_ms, 30000);
    CU_ASSERT_STRING_EQUAL(f.call->logged, "");
    fixture_free(&f);
}

static void options_shape_what_is_asked_for(void)
{
    struct fixture f;
    fixture_init(&f);
    static const char *const names[] = {"LANG", "NOTE"}, *const values[] = {"C.UTF-8", "a\"b\n"};
    f.config->env = (struct sg_map){names, values, 2};
    config_set(plugin, f.config, "api_url", "http://e2b.example:3000/v0/");
    config_set(plugin, f.config, "template", "mine");
    config_set(plugin, f.config, "lifetime", "90s");
    config_set(plugin, f.config, "public_traffic", "true");
    config_set(plugin, f.config, "allow_out", "pypi.org\n*.pythonhosted.org");
    char ca_file[64];
    ca_file_new("-----BEGIN CERTIFICATE-----\n", ca_file);
    config_set(plugin, f.config, "ca_file", ca_file);
    fixture_open(&f);
    CU_ASSERT_STRING_EQUAL(f.call->logged,
                           "'api_url' is plain http: who is on the way can read the API key");
    reply(&f, 201, CREATED(ID));
    CU_ASSERT_EQUAL(create(&f, "sg-first"), 0);
    expect_request(&f, 0, "POST", "http://e2b.example:3000/v0/sandboxes");
    CU_ASSERT_STRING_EQUAL(
        f.call->requests[0].body,
        "{\"templateID\": \"mine\", \"timeout\": 90, \"secure\": true, "
        "\"metadata\": {\"sandgate\": \"sg-first\"}, \"envVars\": {\"LANG\": \"C.UTF-8\", "
        "\"NOTE\": \"a\\\"b\\n\"}, \"allow_internet_access\": false, \"network\": "
        "{\"allowPublicTraffic\": true, \"allowOut\": [\"pypi.org\", \"*.pythonhosted.org\"], "
        "\"denyOut\": [\"0.0.0.0/0\"]}}");
    CU_ASSERT_STRING_EQUAL(f.call->requests[0].ca_file, ca_file);
    unlink(ca_file);
    CU_ASSERT_STRING_EQUAL(f.call->logged,
                           "sandboxes are to live for 1020 s without use, longer than 'lifetime' "
                           "(90 s): some will end early");
    fixture_free(&f);
}

static void with_the_internet_open_networks_can_be_denied_and_a_template_be_asked_for(void)
{
    struct fixture f;
    fixture_init(&f);
    config_set(plugin, f.config, "internet", "true");
    config_set(plugin, f.config, "deny_out", "10.0.0.0/8\n192.0.2.1");
    config_set(plugin, f.config, "allow_out", "10.1.2.3");
    fixture_open(&f);
    reply(&f, 201, CREATED(ID));
    struct sg_sandbox_spec spec = {.template_name = "big", .label = "sg-x", .life_ms = 61500};
    CU_ASSERT_EQUAL(e2b_create(f.e2b, f.call, &spec, call_error(f.call)), 0);
    CU_ASSERT_STRING_EQUAL(
        f.call->requests[0].body,
        "{\"templateID\": \"big\", \"timeout\": 62, \"secure\": true, "
        "\"metadata\": {\"sandgate\": \"sg-x\"}, \"envVars\": {}, "
        "\"allow_internet_access\": true, \"network\": {\"allowPublicTraffic\": false, "
        "\"allowOut\": [\"10.1.2.3\"], \"denyOut\": [\"10.0.0.0/8\", \"192.0.2.1\"]}}");
    fixture_free(&f);
}

/* ---- what goes where ---- */

static struct sandbox *get(struct fixture *f, const char *handle)
{
    struct sandbox *sandbox = NULL;
    CU_ASSERT_EQUAL_FATAL(sandbox_get(f->e2b, f->call, handle, &sandbox, call_error(f->call)), 0);
    return sandbox;
}

static void ask(struct fixture *f, struct sandbox *sandbox, enum e2b_port port)
{
    struct exchange x = {.path = "/x?y=1"};
    reply(f, 200, "answer");
    CU_ASSERT_EQUAL(exchange_sandbox(f->e2b, f->call, sandbox, port, &x, call_error(f->call)), 0);
    CU_ASSERT_EQUAL(x.reply.status, 200);
    CU_ASSERT_STRING_EQUAL(x.body_kept, "answer");
    CU_ASSERT_EQUAL(x.body_kept_len, 6);
}

static void the_key_goes_to_the_api_only_and_each_token_where_it_is_wanted(void)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    make(&f, CREATED(ID));
    struct sandbox *sandbox = get(&f, ID);
    ask(&f, sandbox, PORT_INTERPRETER);
    ask(&f, sandbox, PORT_ENVD);
    expect_request(&f, 0, "GET", "https://49999-" ID ".e2b.app/x?y=1");
    CU_ASSERT_STRING_EQUAL(f.call->requests[0].headers,
                           "E2b-Sandbox-Id: " ID
                           "\nE2b-Sandbox-Port: 49999\nX-Access-Token: " ENVD_TOKEN
                           "\nE2B-Traffic-Access-Token: " TRAFFIC_TOKEN "\n");
    expect_request(&f, 1, "GET", "https://49983-" ID ".e2b.app/x?y=1");
    CU_ASSERT_STRING_EQUAL(f.call->requests[1].headers,
                           "E2b-Sandbox-Id: " ID "\nE2b-Sandbox-Port: 49983\n"
                           "X-Access-Token: " ENVD_TOKEN "\n");
    sandbox_unref(f.e2b, sandbox);
    fixture_free(&f);
}

static void the_sandbox_is_where_its_answer_or_sandbox_url_says(void)
{
    struct fixture f;
    fixture_init(&f);
    config_set(plugin, f.config, "domain", "e2b.test:8443");
    config_set(plugin, f.config, "sandbox_domains", "other.example");
    fixture_open(&f);
    make(&f, "{\"sandboxID\": \"" ID "-c0ffee\", \"envdVersion\": \"0.4.0\"}");
    make(&f, "{\"sandboxID\": \"" OTHER "\", \"envdVersion\": \"1.2.3-beta\", \"domain\": "
             "\"other.example\"}");
    struct sandbox *one = get(&f, ID), *two = get(&f, OTHER);
    CU_ASSERT_EQUAL(one->envd_version[1], 4);
    CU_ASSERT_EQUAL(two->envd_version[0] * 100 + two->envd_version[2], 103);
    ask(&f, one, PORT_ENVD);
    ask(&f, two, PORT_ENVD);
    expect_request(&f, 0, "GET", "https://49983-" ID ".e2b.test:8443/x?y=1");
    expect_request(&f, 1, "GET", "https://49983-" OTHER ".other.example/x?y=1");
    sandbox_unref(f.e2b, one);
    sandbox_unref(f.e2b, two);
    fixture_free(&f);

    fixture_init(&f);
    config_set(plugin, f.config, "sandbox_url", "http://127.0.0.1:49000/");
    fixture_open(&f);
    make(&f, "{\"sandboxID\": \"" ID "\", \"envdVersion\": \"0.4.0\", \"domain\": \"localhost\"}");
    one = get(&f, ID);
    ask(&f, one, PORT_INTERPRETER);
    expect_request(&f, 0, "GET", "http://127.0.0.1:49000/x?y=1");
    CU_ASSERT_STRING_EQUAL(f.call->requests[0].headers,
                           "E2b-Sandbox-Id: " ID "\nE2b-Sandbox-Port: 49999\n");
    sandbox_unref(f.e2b, one);
    fixture_free(&f);
}

/* An API that is wrong, or is not E2B's, must not send the gateway to hosts of the inside. */
static void a_sandbox_is_only_where_the_options_let_it_be(void)
{
    static const struct {
        const char *configured, *more, *answered;
        bool is_taken;
    } cases[] = {
        {"e2b.app", "", "e2b.app", true},
        {"e2b.app", "", "E2B.App", true},
        {"e2b.app", "", "eu-1.e2b.app", true},
        {"e2b.app", "", "e2b.dev", false},
        {"e2b.app", "", "evile2b.app", false},
        {"e2b.app", "", "b.app", false},
        {"e2b.app", "", "e2b.app.evil.example", false},
        {"e2b.app", "", "e2b.app:22", false},
        {"e2b.app", "", "localhost", false},
        {"e2b.app", "", "169.254.169.254", false},
        {"e2b.app", "e2b.dev\nours.example:8443", "eu.e2b.dev", true},
        {"e2b.app", "e2b.dev\nours.example:8443", "x.ours.example:8443", true},
        {"e2b.app", "e2b.dev\nours.example:8443", "ours.example", true},
        {"e2b.app", "e2b.dev\nours.example:8443", "ours.example:8444", false},
        {"e2b.test:8443", "", "e2b.test:8443", true},
        {"e2b.test:8443", "", "e2b.test:9000", false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fixture f;
        char body[256], message[256], url[128];
        fixture_init(&f);
        config_set(plugin, f.config, "domain", cases[i].configured);
        config_set(plugin, f.config, "sandbox_domains", cases[i].more);
        fixture_open(&f);
        snprintf(body, sizeof body,
                 "{\"sandboxID\": \"" ID "\", \"envdVersion\": \"0.5.0\", \"domain\": \"%s\"}",
                 cases[i].answered);
        snprintf(message, sizeof message,
                 "cannot make a sandbox: E2B's answer cannot be used: its domain '%s' is neither "
                 "that of 'domain' nor below it; if it is right, add it to 'sandbox_domains'",
                 cases[i].answered);
        reply(&f, 201, body);
        reply(&f, 204, "");
        CU_ASSERT_EQUAL(create(&f, "sg-first"), cases[i].is_taken ? 0 : SG_E_UNAVAILABLE);
        if (!cases[i].is_taken) {
            expect_message(&f, message);
            snprintf(url, sizeof url, "https://api.%s/sandboxes/" ID, cases[i].configured);
            expect_request(&f, 1, "DELETE", url);
        }
        CU_ASSERT_EQUAL(f.call->requests_count, cases[i].is_taken ? 1 : 2);
        fixture_free(&f);
    }
}

/* ---- connect, touch, destroy ---- */

static void a_handle_of_an_earlier_process_is_connected_to_once(void)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    reply(&f, 200, CREATED(ID));
    struct sandbox *one = get(&f, ID), *again = get(&f, ID);
    CU_ASSERT_PTR_EQUAL(one, again);
    CU_ASSERT_EQUAL(f.call->requests_count, 1);
    expect_request(&f, 0, "POST", "https://api.e2b.app/sandboxes/" ID "/connect");
    CU_ASSERT_STRING_EQUAL(f.call->requests[0].body, "{\"timeout\": 3600}");
    CU_ASSERT_STRING_EQUAL(one->envd_token, ENVD_TOKEN);
    CU_ASSERT_EQUAL(f.e2b->count, 1);
    sandbox_unref(f.e2b, one);
    sandbox_unref(f.e2b, again);
    fixture_free(&f);
}

static void a_handle_that_cannot_be_connected_to_says_why(void)
{
    static const struct {
        const char *handle;
        int status;
        const char *body;
        int code;
        const char *message;
    } cases[] = {
        {ID, 404, MISSING, SG_E_GONE,
         "cannot find the sandbox again: E2B does not know it any more (404)"},
        {ID, 404, "not found", SG_E_UNAVAILABLE,
         "cannot find the sandbox again: what answers is not E2B's API (404); check 'domain' and "
         "'api_url'"},
        {ID, 409, "{\"code\": 409, \"message\": \"Sandbox " ID " is being killed\"}",
         SG_E_UNAVAILABLE,
         "cannot find the sandbox again: the sandbox is being paused, resumed or ended (409); try "
         "again: Sandbox *** is being killed"},
        {ID, 200, CREATED(OTHER), SG_E_UNAVAILABLE,
         "cannot find the sandbox again: E2B's answer is about another sandbox"},
        {ID, 200, "{\"sandboxID\": \"" ID "\", \"envdVersion\": \"0.5.0\", \"domain\": \"a.b\"}",
         SG_E_UNAVAILABLE,
         "cannot find the sandbox again: E2B's answer cannot be used: its domain 'a.b' is neither "
         "that of 'domain' nor below it; if it is right, add it to 'sandbox_domains'"},
        {ID, 200, "{", SG_E_UNAVAILABLE,
         "cannot find the sandbox again: E2B's answer cannot be used: it is no JSON object"},
        {"../a", 0, NULL, SG_E_GONE, "the handle is none of E2B's, so there is no sandbox of it"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fixture f;
        struct sandbox *none = NULL;
        fixture_init(&f);
        fixture_open(&f);
        reply(&f, cases[i].status, cases[i].body);
        CU_ASSERT_EQUAL(sandbox_get(f.e2b, f.call, cases[i].handle, &none, call_error(f.call)),
                        cases[i].code);
        expect_message(&f, cases[i].message);
        CU_ASSERT_PTR_NULL(none);
        CU_ASSERT_EQUAL(f.e2b->count, 0);
        fixture_free(&f);
    }
}

static void touch_moves_the_end_and_finds_out_who_is_gone(void)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    make(&f, CREATED(ID));
    reply(&f, 204, "");
    CU_ASSERT_EQUAL(e2b_touch(f.e2b, f.call, ID, 120001, call_error(f.call)), 0);
    expect_request(&f, 0, "POST", "https://api.e2b.app/sandboxes/" ID "/timeout");
    CU_ASSERT_STRING_EQUAL(f.call->requests[0].body, "{\"timeout\": 121}");
    CU_ASSERT_EQUAL(f.e2b->count, 1);
    reply(&f, 404, MISSING);
    CU_ASSERT_EQUAL(e2b_touch(f.e2b, f.call, ID, 1000, call_error(f.call)), SG_E_GONE);
    expect_message(&f, "cannot lengthen the sandbox's life: E2B does not know it any more (404)");
    CU_ASSERT_EQUAL(f.e2b->count, 0);
    fixture_free(&f);
}

static void destroy_ends_it_and_one_that_is_gone_is_a_success(void)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    make(&f, CREATED(ID));
    struct sandbox *used = get(&f, ID); /* by a run, say */
    used->is_running = true;
    reply(&f, 503, "");
    CU_ASSERT_EQUAL(e2b_destroy(f.e2b, f.call, ID, call_error(f.call)), SG_E_UNAVAILABLE);
    expect_message(&f, "cannot end the sandbox: E2B's API failed (503), without a reason");
    CU_ASSERT_TRUE(used->interrupt_wanted);
    CU_ASSERT_FALSE(used->is_gone);
    CU_ASSERT_EQUAL(f.e2b->count, 1);
    reply(&f, 204, "");
    CU_ASSERT_EQUAL(e2b_destroy(f.e2b, f.call, ID, call_error(f.call)), 0);
    expect_request(&f, 1, "DELETE", "https://api.e2b.app/sandboxes/" ID);
    CU_ASSERT_FALSE(f.call->requests[1].has_body);
    CU_ASSERT_TRUE(used->is_gone);
    CU_ASSERT_EQUAL(f.e2b->count, 0);
    sandbox_unref(f.e2b, used);
    reply(&f, 404, MISSING); /* unknown to us as well */
    CU_ASSERT_EQUAL(e2b_destroy(f.e2b, f.call, ID, call_error(f.call)), 0);
    reply(&f, 404, "<html>");
    CU_ASSERT_EQUAL(e2b_destroy(f.e2b, f.call, ID, call_error(f.call)), SG_E_UNAVAILABLE);
    CU_ASSERT_EQUAL(e2b_destroy(f.e2b, f.call, "no handle", call_error(f.call)), SG_E_GONE);
    CU_ASSERT_EQUAL(f.call->requests_count, 4);
    fixture_free(&f);
}

/* Its end could not be asked for; its place and its tokens are kept until E2B has ended it, and a minute. */
static void one_that_cannot_be_ended_keeps_its_place_until_its_time_is_up(void)
{
    struct fixture f;
    fixture_init(&f);
    config_set(plugin, f.config, "concurrency", "1");
    fixture_open(&f);
    int64_t before = clock_ms();
    make(&f, CREATED(ID));
    struct sandbox *sandbox = get(&f, ID);
    CU_ASSERT(sandbox->kept_until >= before + 1020000 &&
              sandbox->kept_until <= clock_ms() + 1020000);
    reply(&f, 204, "");
    CU_ASSERT_EQUAL(e2b_touch(f.e2b, f.call, ID, 120000, call_error(f.call)), 0);
    CU_ASSERT(sandbox->kept_until >= before + 120000 && sandbox->kept_until <= clock_ms() + 120000);
    reply(&f, 500, "");
    CU_ASSERT_EQUAL(e2b_touch(f.e2b, f.call, ID, 999000, call_error(f.call)), SG_E_UNAVAILABLE);
    CU_ASSERT(sandbox->kept_until <= clock_ms() + 120000);
    reply(&f, 500, "");
    CU_ASSERT_EQUAL(e2b_destroy(f.e2b, f.call, ID, call_error(f.call)), SG_E_UNAVAILABLE);
    next_call(&f);
    sandbox->kept_until = clock_ms() - 50000;
    CU_ASSERT_EQUAL(create(&f, "sg-second"), SG_E_LIMIT);
    CU_ASSERT_FALSE(sandbox->is_gone);
    sandbox->kept_until = clock_ms() - 60001;
    next_call(&f);
    make(&f, CREATED(OTHER));
    CU_ASSERT_TRUE(sandbox->is_gone);
    CU_ASSERT_EQUAL(f.e2b->count, 1);
    sandbox_unref(f.e2b, sandbox); /* the last reference: the table has none */
    fixture_free(&f);

    fixture_init(&f);
    fixture_open(&f);
    reply(&f, 200, CREATED(ID)); /* connected to: `lifetime` was asked for */
    sandbox = get(&f, ID);
    CU_ASSERT(sandbox->kept_until > before + 3600000 - 1);
    sandbox_unref(f.e2b, sandbox);
    fixture_free(&f);
}

/* ---- several at a time ---- */

struct round {
    struct e2b *e2b;
    const char *id;
    atomic_int runs_left;
    atomic_int wrong; /* CUnit is the main thread's */
};

/* Each time its sandbox is one of an earlier process: looked for, used, ended. */
static void *run_and_end(void *context)
{
    struct round *round = context;
    static const struct sg_run asked = {NULL, "1", 1, 60000};
    char created[512];
    snprintf(created, sizeof created, "{\"sandboxID\": \"%s\", \"envdVersion\": \"0.5.7\"}",
             round->id);
    while (atomic_load(&round->runs_left) > 0) {
        struct sg_call *call = call_new();
        call_reply(call, (struct fake_reply){.status = 200, .body = created});
        call_reply(call, (struct fake_reply){.status = 200,
                                             .body = "{\"type\":\"end_of_execution\"}\n",
                                             .ticks = 1});
        int code = e2b_run(round->e2b, call, round->id, &asked, call_error(call));
        round->wrong += code != 0 && code != SG_E_CANCELLED;
        call_free(call);
        call = call_new();
        call_reply(call, (struct fake_reply){.status = 204});
        round->wrong += e2b_destroy(round->e2b, call, round->id, call_error(call)) != 0;
        call_free(call);
        atomic_fetch_sub(&round->runs_left, 1);
    }
    return NULL;
}

static void *interrupt_both(void *context)
{
    struct round *rounds = context;
    struct sg_call *call = call_new();
    while (atomic_load(&rounds[0].runs_left) > 0 || atomic_load(&rounds[1].runs_left) > 0) {
        for (int i = 0; i < 2; i++) {
            rounds[i].wrong +=
                e2b_interrupt(rounds[i].e2b, call, rounds[i].id, call_error(call)) != 0;
        }
    }
    call_free(call);
    return NULL;
}

/* For ThreadSanitizer; and behind it nothing is left, in whatever order it was. */
static void runs_interrupts_and_ends_on_several_threads_leave_nothing(void)
{
    struct fixture f;
    pthread_t threads[3];
    fixture_init(&f);
    fixture_open(&f);
    struct round rounds[2] = {{f.e2b, ID, 300, 0}, {f.e2b, OTHER, 300, 0}};
    CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[0], NULL, run_and_end, &rounds[0]), 0);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[1], NULL, run_and_end, &rounds[1]), 0);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[2], NULL, interrupt_both, rounds), 0);
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL(pthread_join(threads[i], NULL), 0);
    }
    CU_ASSERT_EQUAL(rounds[0].wrong + rounds[1].wrong, 0);
    CU_ASSERT_EQUAL(f.e2b->count, 0);
    CU_ASSERT_PTR_NULL(f.e2b->coming);
    fixture_free(&f);
}

static const struct test tests[] = {
    TEST(a_create_asks_for_a_secured_sandbox_without_internet),
    TEST(options_shape_what_is_asked_for),
    TEST(with_the_internet_open_networks_can_be_denied_and_a_template_be_asked_for),
    TEST(the_key_goes_to_the_api_only_and_each_token_where_it_is_wanted),
    TEST(a_sandbox_is_only_where_the_options_let_it_be),
    TEST(the_sandbox_is_where_its_answer_or_sandbox_url_says),
    TEST(a_handle_of_an_earlier_process_is_connected_to_once),
    TEST(a_handle_that_cannot_be_connected_to_says_why),
    TEST(touch_moves_the_end_and_finds_out_who_is_gone),
    TEST(one_that_cannot_be_ended_keeps_its_place_until_its_time_is_up),
    TEST(runs_interrupts_and_ends_on_several_threads_leave_nothing),
    TEST(destroy_ends_it_and_one_that_is_gone_is_a_success),
};

int main(int argc, char **argv)
{
    return run_tests("e2b_life", tests, COUNT_OF(tests), argc, argv);
}
