/* The client never sees a call of ours, whatever happens: random turns of an upstream that does everything wrong, names in
 * pieces, repeated and missing ids, odd indexes, wrong finish reasons, streams that are cut, calls in places where none
 * belong. The client's bytes are searched for our function's name and for the marks that our calls' ids and arguments
 * carry; and they stay a stream, or an answer, that a strict client reads. */
#include "base/check.h"
#include "chat_bench.h"
#include "random_json.h"

#include <stdarg.h>

#define ROUNDS 3000
#define NAME "code_interpreter"

static const char *const secrets[] = {NAME, "SECRET_ID", "SECRET_ARG", "interpreter"};

struct upstream { /* what it says, as events or as one answer */
    struct random random;
    struct buf out;
    unsigned calls; /* so far: ids and indexes are the call's own */
};

static bool chance(struct upstream *u, unsigned one_in)
{
    return random_below(&u->random, one_in) == 0;
}

static const char *one_of(struct upstream *u, const char *const *list, uint32_t count)
{
    return list[random_below(&u->random, count)];
}

/* ---- chunks ---- */

static void chunk_begin(struct upstream *u)
{
    buf_puts(&u->out, "data: {");
    if (!chance(u, 4)) {
        buf_puts(&u->out, BENCH_HEAD ",");
    }
    if (chance(u, 8)) {
        buf_puts(&u->out, "\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2},");
    }
    buf_puts(&u->out, "\"choices\":[");
    if (chance(u, 10)) { /* one that the client has not asked for */
        buf_puts(&u->out,
                 "{\"index\":1,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"SECRET_ID\","
                 "\"function\":{\"name\":\"" NAME "\",\"arguments\":\"SECRET_ARG\"}}]}},");
    }
    buf_puts(&u->out, chance(u, 8) ? "{\"delta\":{" : "{\"index\":0,\"delta\":{");
    if (chance(u, 8)) {
        buf_puts(&u->out, "\"role\":\"assistant\",");
    }
    if (chance(u, 12)) {
        buf_puts(&u->out,
                 "\"function_call\":{\"name\":\"" NAME "\",\"arguments\":\"SECRET_ARG\"},");
    }
}

static void chunk_end(struct upstream *u, const char *finish)
{
    buf_puts(&u->out, "\"x\":null}");
    if (chance(u, 12)) { /* the whole message again */
        buf_puts(&u->out,
                 ",\"message\":{\"tool_calls\":[{\"id\":\"SECRET_ID\",\"function\":{\"name\":"
                 "\"" NAME "\",\"arguments\":\"SECRET_ARG\"}}]}");
    }
    if (finish != NULL) {
        buf_printf(&u->out, ",\"finish_reason\":\"%s\"", finish);
    }
    buf_puts(&u->out, "}]}\n\n");
}

static void text_chunk(struct upstream *u)
{
    chunk_begin(u);
    buf_puts(&u->out, chance(u, 2) ? "\"content\":\"visible\"," : "\"reasoning_content\":\"r\",");
    chunk_end(u, chance(u, 20) ? "tool_calls" : NULL);
}

/* ---- a call in pieces ---- */

struct call {
    unsigned number;
    bool ours;
    const char *name, *arguments; /* what is still to come */
};

static size_t piece_of(struct upstream *u, const char *rest)
{
    size_t left = strlen(rest);
    return left == 0 ? 0 : 1 + random_below(&u->random, (uint32_t)left);
}

static void call_piece(struct upstream *u, struct call *call, bool first)
{
    bool names = *call->name != '\0' && !chance(u, 3);
    size_t name = names ? piece_of(u, call->name) : 0;
    size_t more = (*call->name == '\0' || chance(u, 5)) ? piece_of(u, call->arguments) : 0;
    chunk_begin(u);
    buf_printf(&u->out, "\"tool_calls\":[{\"index\":%u,", call->number);
    if (first || chance(u, 3)) {
        buf_printf(&u->out, "\"id\":\"%s%u\",", call->ours ? "SECRET_ID" : "client_", call->number);
    }
    buf_printf(&u->out, "%s\"function\":{", chance(u, 2) ? "\"type\":\"function\"," : "");
    if (name > 0) {
        buf_printf(&u->out, "\"name\":\"%.*s\",", (int)name, call->name);
    }
    buf_printf(&u->out, "\"arguments\":\"%.*s\"}}],", (int)more, call->arguments);
    chunk_end(u, chance(u, 30) ? "stop" : NULL);
    call->name += name;
    call->arguments += more;
}

static struct call call_new(struct upstream *u)
{
    static const char *const wild[] = {"SECRET_ARG", "{SECRET_ARG", "[SECRET_ARG]", "SECRET_ARG}"};
    struct call call = {.number = u->calls++, .ours = !chance(u, 3)};
    call.name = call.ours ? NAME : "get_stock";
    call.arguments = !call.ours ? "{}" : chance(u, 2) ? "{SECRET_ARG}" : one_of(u, wild, 4);
    return call;
}

/* Several at once, their pieces interleaved; some never come to their end. */
static void calls_put(struct upstream *u)
{
    struct call calls[4];
    bool begun[4] = {0};
    unsigned count = 1 + random_below(&u->random, 4);
    for (unsigned i = 0; i < count; i++) {
        calls[i] = call_new(u);
    }
    for (unsigned steps = 4 + random_below(&u->random, 40); steps > 0; steps--) {
        unsigned i = random_below(&u->random, count);
        if (*calls[i].name != '\0' || *calls[i].arguments != '\0' || chance(u, 10)) {
            call_piece(u, &calls[i], !begun[i]);
            begun[i] = true;
        }
        if (chance(u, 6)) {
            text_chunk(u);
        }
    }
}

static void custom_call(struct upstream *u)
{
    chunk_begin(u);
    buf_printf(&u->out,
               "\"tool_calls\":[{\"index\":%u,\"id\":\"SECRET_ID\",\"type\":\"custom\",\"custom\":{"
               "\"name\":\"" NAME "\",\"input\":\"SECRET_ARG\"}}],",
               u->calls++);
    chunk_end(u, NULL);
}

static void stream_put(struct upstream *u)
{
    static const char *const finishes[] = {"stop",   "tool_calls",     "length",
                                           "weird",  "content_filter", "function_call",
                                           "length", "tool_calls"};
    u->calls = 0;
    for (unsigned steps = 1 + random_below(&u->random, 4); steps > 0; steps--) {
        if (chance(u, 3)) {
            text_chunk(u);
        } else if (chance(u, 8)) {
            custom_call(u);
        } else {
            calls_put(u);
        }
    }
    if (!chance(u, 8)) {
        chunk_begin(u);
        chunk_end(u, one_of(u, finishes, 8));
    }
    if (chance(u, 12)) {
        buf_puts(&u->out, "data: {\"error\":{\"message\":\"it broke\"}}\n\n");
    }
    if (!chance(u, 6)) {
        buf_puts(&u->out, "data: [DONE]\n\n");
    }
    if (chance(u, 5)) {
        u->out.len -= random_below(&u->random, (uint32_t)u->out.len / 2);
        u->out.data[u->out.len] = '\0';
    }
}

/* ---- a plain answer ---- */

static void answer_put(struct upstream *u)
{
    static const char *const names[] = {NAME, "code_", "code_interprete", "", "get_stock", NAME};
    static const char *const finishes[] = {"stop", "tool_calls", "length", "function_call"};
    u->calls = 0;
    buf_puts(&u->out, "{\"id\":\"a\",\"choices\":[{\"index\":0,");
    if (chance(u, 6)) {
        buf_puts(&u->out,
                 "\"delta\":{\"tool_calls\":[{\"id\":\"SECRET_ID\",\"function\":{\"name\":\"" NAME
                 "\"}}]},");
    }
    buf_puts(&u->out, "\"message\":{\"role\":\"assistant\",\"content\":\"visible\",");
    if (chance(u, 4)) {
        buf_puts(&u->out,
                 "\"function_call\":{\"name\":\"" NAME "\",\"arguments\":\"SECRET_ARG\"},");
    }
    buf_puts(&u->out, "\"tool_calls\":[");
    for (unsigned count = random_below(&u->random, 4), i = 0; i < count; i++) {
        const char *name = one_of(u, names, 6);
        bool ours = strcmp(name, "get_stock") != 0;
        buf_printf(&u->out,
                   "%s{\"id\":\"%s\",\"type\":\"%s\",\"%s\":{\"name\":\"%s\",\"%s\":\"%s\"}}",
                   i == 0 ? "" : ",", ours ? "SECRET_ID" : "client", "function", "function", name,
                   "arguments", ours ? "SECRET_ARG" : "{}");
    }
    buf_printf(&u->out, "]},\"finish_reason\":\"%s\"}]}", one_of(u, finishes, 4));
}

/* ---- the client's side ---- */

static void expect_no_secret(const struct buf *out, uint64_t seed)
{
    for (size_t i = 0; out->len > 0 && i < COUNT_OF(secrets); i++) {
        bool shown = memmem(out->data, out->len, secrets[i], strlen(secrets[i])) != NULL;
        CU_ASSERT_FALSE(shown);
        if (shown) {
            fprintf(stderr, "seed %llu shows %s:\n%.*s\n", (unsigned long long)seed, secrets[i],
                    (int)out->len, out->data);
            return;
        }
    }
}

static void expect_readable(struct bench *b, bool streams, bool whole)
{
    if (streams) {
        struct seen s = seen_read(&b->out);
        CU_ASSERT_EQUAL(s.dones, 1);
        CU_ASSERT_EQUAL(s.errors, !whole);
        CU_ASSERT_EQUAL(s.finishes, whole);
        seen_clear(&s);
    } else if (whole) {
        cJSON *answer = cJSON_Parse(b->out.data);
        CU_ASSERT_PTR_NOT_NULL(answer);
        cJSON_Delete(answer);
    }
}

/* Up to three turns as the loop makes them; true if the answer came to its end. */
static bool turns_drive(struct bench *b, struct upstream *u)
{
    for (unsigned turn = 0; turn < 3; turn++) {
        bool is_stream = !chance(u, 4);
        buf_reset(&u->out);
        if (is_stream) {
            stream_put(u);
        } else {
            answer_put(u);
        }
        if (bench_try_turn(b, is_stream, u->out.data) != SG_OK) {
            return false;
        }
        bool more =
            b->turn.calls_count > 0 && !b->turn.length && !surface_chat.runs_nothing(b->exchange);
        for (size_t i = 0; more && i < b->turn.calls_count; i++) {
            bench_result(b, i, "ran");
        }
        if (!more || b->turn.has_client_calls) {
            break;
        }
        (void)bench_request(b);
    }
    return true;
}

static void round_drive(uint64_t seed)
{
    static const char *const options[] = {"", "\"parallel_tool_calls\":false,",
                                          "\"tool_choice\":\"none\",",
                                          "\"response_format\":{\"type\":\"json_object\"},", ""};
    struct upstream u = {.random = {seed}};
    struct bench b =
        bench_new(random_below(&u.random, 3) == 0 ? 1 + random_below(&u.random, 9) : 0);
    bool streams = !chance(&u, 3);
    BUF_CLEANUP struct buf body = {0};
    buf_printf(&body, "{%s\"stream\":%s," USER ",\"tools\":[" CODE_TOOL "," OWN_TOOL "]}",
               one_of(&u, options, COUNT_OF(options)), streams ? "true" : "false");
    bench_open(&b, body.data);
    bool whole = turns_drive(&b, &u);
    if (whole) {
        CU_ASSERT_EQUAL(surface_chat.finish(b.exchange, STR("The end."), &b.out, &b.err), SG_OK);
    } else if (streams) {
        surface_chat.fail(b.exchange, &b.err, &b.out);
    }
    expect_no_secret(&b.out, seed);
    expect_readable(&b, streams, whole);
    buf_clear(&u.out);
    bench_clear(&b);
}

static void the_client_never_sees_a_call_of_ours_whatever_the_upstream_does(void)
{
    unsigned failed = CU_get_number_of_failures();
    for (uint64_t seed = 1; seed <= ROUNDS && CU_get_number_of_failures() == failed; seed++) {
        round_drive(seed);
    }
}

/* ---- single cases, for what the rounds have found ---- */

static void expect_nothing(const char *stream)
{
    static const char *const bodies[] = {"{\"stream\":true," USER ",\"tools\":[" CODE_TOOL
                                         "," OWN_TOOL "]}",
                                         "{" USER ",\"tools\":[" CODE_TOOL "," OWN_TOOL "]}"};
    for (size_t i = 0; i < COUNT_OF(bodies); i++) {
        BENCH_CLEANUP struct bench b = bench_new(0);
        bench_open(&b, bodies[i]);
        bench_turn(&b, stream);
        bench_finish(&b, "The end.");
        expect_no_secret(&b.out, 0);
        CU_ASSERT_PTR_NOT_NULL(strstr(b.out.data, "\"stop\""));
        CU_ASSERT_PTR_NULL(strstr(b.out.data, "\"tool_calls\""));
    }
}

static void a_name_that_breaks_off_where_it_may_be_ours_is_no_call_of_the_clients(void)
{
    expect_nothing(ROLE CALL("0", "SECRET_ID", "code_", "SECRET_ARG") FINISH("tool_calls") DONE);
    expect_nothing(ROLE CALL("0", "SECRET_ID", "", "SECRET_ARG") FINISH("tool_calls") DONE);
    BENCH_CLEANUP struct bench b = bench_new(0); /* unless the client has a function of that name */
    bench_open(&b, "{" USER ",\"tools\":[" CODE_TOOL
                   ",{\"type\":\"function\",\"function\":{\"name\":\"code_\"}}]}");
    bench_turn(&b, ROLE CALL("0", "c", "code_", "{}") FINISH("tool_calls") DONE);
    bench_finish(&b, "");
    CU_ASSERT_PTR_NOT_NULL(strstr(b.out.data, "\"name\":\"code_\""));
}

static void a_custom_call_of_our_name_is_ours(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, "{\"stream\":true," USER ",\"tools\":[" CODE_TOOL "]}");
    bench_turn(&b, ROLE CHUNK("{\"tool_calls\":[{\"index\":0,\"id\":\"SECRET_ID\",\"type\":"
                              "\"custom\",\"custom\":{\"name\":\"" NAME
                              "\",\"input\":\"SECRET_ARG\"}}]}") FINISH("tool_calls") DONE);
    CU_ASSERT_EQUAL_FATAL(b.turn.calls_count, 1);
    CU_ASSERT_TRUE(str_is(b.turn.calls[0].arguments, "SECRET_ARG"));
    bench_result(&b, 0, "[invalid call]");
    CU_ASSERT_PTR_NOT_NULL(strstr(bench_request(&b), "\"type\":\"function\",\"function\":{\"name\":"
                                                     "\"" NAME "\",\"arguments\":\"{}\"}"));
    bench_finish(&b, "");
    expect_no_secret(&b.out, 0);
}

static void old_function_calls_reach_only_clients_that_know_them(void)
{
#define OLD_CALL                                                         \
    CHUNK("{\"function_call\":{\"name\":\"old\",\"arguments\":\"{}\"}}") \
    FINISH("function_call") DONE
    static const char *const bodies[][2] = {
        {"{\"stream\":true," USER ",\"tools\":[" CODE_TOOL "]}",
         "{\"stream\":true,\"functions\":[{\"name\":\"old\"}]," USER ",\"tools\":[" CODE_TOOL "]}"},
        {"{" USER ",\"tools\":[" CODE_TOOL "]}",
         "{\"functions\":[{\"name\":\"old\"}]," USER ",\"tools\":[" CODE_TOOL "]}"}};
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; k < 2; k++) {
            BENCH_CLEANUP struct bench b = bench_new(0);
            bench_open(&b, bodies[i][k]);
            bench_turn(&b, ROLE OLD_CALL);
            bench_finish(&b, "");
            CU_ASSERT_EQUAL(strstr(b.out.data, "\"name\":\"old\"") != NULL, k == 1);
        }
    }
}

static const struct test tests[] = {
    TEST(the_client_never_sees_a_call_of_ours_whatever_the_upstream_does),
    TEST(a_name_that_breaks_off_where_it_may_be_ours_is_no_call_of_the_clients),
    TEST(a_custom_call_of_our_name_is_ours),
    TEST(old_function_calls_reach_only_clients_that_know_them),
};

int main(int argc, char **argv)
{
    return run_tests("chat_hostile", tests, COUNT_OF(tests), argc, argv);
}
