/* The client never gets a call of ours as one of its own, whatever happens: random turns of an upstream that does
 * everything wrong, with blocks that nobody stops, indexes that meet, deltas in places where none belong, input in
 * pieces, whole or both, streams that are cut. What the client has passes the strict checker, and what goes up is JSON. */
#include "base/check.h"
#include "messages_search.h"
#include "random_json.h"

#define ROUNDS 3000

struct upstream {
    struct random random;
    struct buf out;
    int64_t index; /* of the block that was begun last */
};

static bool chance(struct upstream *u, unsigned one_in)
{
    return random_below(&u->random, one_in) == 0;
}

static const char *one_of(struct upstream *u, const char *const *list, uint32_t count)
{
    return list[random_below(&u->random, count)];
}

static void event_begin(struct upstream *u, const char *type)
{
    if (!chance(u, 4)) {
        buf_printf(&u->out, "event: %s\n", type);
    }
    buf_printf(&u->out, "data: {\"type\":\"%s\"", type);
}

static void index_put(struct upstream *u)
{
    if (chance(u, 12)) {
        return; /* none */
    }
    int64_t index = chance(u, 10) ? (int64_t)random_below(&u->random, 4) : u->index;
    buf_printf(&u->out, ",\"index\":%lld", (long long)index);
}

static void block_begin(struct upstream *u)
{
    static const char *const blocks[] = {
        "{\"type\":\"text\",\"text\":\"\"}",
        "{\"type\":\"text\",\"text\":\"whole\",\"citations\":[{\"a\":1}]}",
        "{\"type\":\"text\"}",
        "{\"type\":\"text\",\"text\":\"[1]\",\"citations\":null}",
        "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}",
        "{\"type\":\"redacted_thinking\",\"data\":\"d\"}",
        "{\"type\":\"new\",\"x\":{}}",
        "{\"type\":\"tool_use\",\"id\":\"same\",\"name\":\"code_interpreter\",\"input\":{}}",
        "{\"type\":\"tool_use\",\"name\":\"code_interpreter\",\"input\":{\"code\":\"1\"}}",
        "{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"code_interpreter\",\"input\":\"{}\"}",
        "{\"type\":\"tool_use\",\"id\":\"b\",\"name\":\"web_search\",\"input\":null}",
        "{\"type\":\"tool_use\",\"id\":\"same\",\"name\":\"get_stock\",\"input\":{}}",
        "{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"\",\"input\":{}}",
        "{\"type\":\"server_tool_use\",\"id\":\"srvtoolu_1\",\"name\":\"v\",\"input\":{}}"};
    u->index += chance(u, 10) ? 0 : 1;
    event_begin(u, "content_block_start");
    index_put(u);
    buf_printf(&u->out, ",\"content_block\":%s}\n\n", one_of(u, blocks, COUNT_OF(blocks)));
}

static void delta(struct upstream *u)
{
    static const char *const deltas[] = {
        "{\"type\":\"text_delta\",\"text\":\"visible\"}",
        "{\"type\":\"text_delta\",\"text\":\" [1] [\"}",
        "{\"type\":\"text_delta\",\"text\":\"2](https://a.te\"}",
        "{\"type\":\"text_delta\",\"text\":\"st/x) https:\\/\\/b.test\\u002fy \"}",
        "{\"type\":\"thinking_delta\",\"thinking\":\"hm\"}",
        "{\"type\":\"signature_delta\",\"signature\":\"s\"}",
        "{\"type\":\"citations_delta\",\"citation\":{\"type\":\"w\"}}",
        "{\"type\":\"input_json_delta\",\"partial_json\":\"\"}",
        "{\"type\":\"input_json_delta\",\"partial_json\":\" \\n{\\\"code\\\":\"}",
        "{\"type\":\"input_json_delta\",\"partial_json\":\"\\\"1\\\"}\"}",
        "{\"type\":\"input_json_delta\",\"partial_json\":\"{}\"}",
        "{\"type\":\"new_delta\",\"y\":1}",
        "{\"type\":\"text_delta\",\"text\":7}",
        "{}"};
    event_begin(u, "content_block_delta");
    index_put(u);
    buf_printf(&u->out, ",\"delta\":%s}\n\n", one_of(u, deltas, COUNT_OF(deltas)));
}

static void turn_make(struct upstream *u)
{
    static const char *const reasons[] = {"end_turn", "tool_use", "max_tokens", "refusal"};
    buf_reset(&u->out);
    u->index = -1;
    if (!chance(u, 6)) {
        buf_puts(&u->out, START);
    }
    for (uint32_t i = 1 + random_below(&u->random, 5); i > 0; i--) {
        if (!chance(u, 12)) {
            block_begin(u);
        }
        for (uint32_t k = random_below(&u->random, 4); k > 0; k--) {
            delta(u);
        }
        if (!chance(u, 4)) {
            event_begin(u, "content_block_stop");
            index_put(u);
            buf_puts(&u->out, "}\n\n");
        }
        if (chance(u, 6)) {
            buf_puts(&u->out, EVENT("ping", ""));
        }
    }
    if (chance(u, 20)) {
        return; /* cut */
    }
    buf_printf(&u->out, EVENT("message_delta", ",\"delta\":{\"stop_reason\":\"%s\"},\"usage\":{}"),
               one_of(u, reasons, COUNT_OF(reasons)));
    buf_puts(&u->out, chance(u, 4) ? "" : EVENT("message_stop", ""));
}

static void expect_good(struct bench *b, uint32_t round)
{
    CHECKER_CLEANUP struct checker checker = {0};
    const char *problem = surface_messages.wants_stream(b->exchange)
                              ? check_stream(&checker, buf_str(&b->out), false)
                              : check_message(&checker, buf_str(&b->out));
    CU_ASSERT_PTR_NULL(problem);
    if (problem != NULL) {
        fprintf(stderr, "round %u: %s in:\n%s\n", round, problem, b->out.data);
    }
    const cJSON *block;
    cJSON_ArrayForEach(block, checker.content)
    {
        const char *name = check_text(block, "name");
        CU_ASSERT_FALSE(check_is(check_text(block, "type"), "tool_use") &&
                        !check_is(name, "get_stock"));
    }
}

/* One request, as the loop drives it. */
static void round_run(struct bench *b, struct upstream *u, uint32_t round)
{
    for (unsigned turn = 0; turn < 3; turn++) {
        turn_make(u);
        if (bench_try_turn(b, true, u->out.data) != SG_OK) {
            if (surface_messages.wants_stream(b->exchange)) {
                surface_messages.fail(b->exchange, &b->err, &b->out);
                expect_good(b, round);
            }
            return;
        }
        bool more = b->turn.calls_count > 0 && !b->turn.length && turn < 2;
        for (size_t i = 0; more && i < b->turn.calls_count; i++) {
            if (str_is(b->turn.calls[i].name, "web_search") && !chance(u, 4)) {
                FOUND(b, i, HIT_A, HIT_B);
            } else {
                bench_result(b, i, "x");
            }
        }
        if (!more || b->turn.has_client_calls) {
            break;
        }
        bench_request(b);
    }
    CU_ASSERT_EQUAL(surface_messages.finish(b->exchange, STR("End."), &b->out, &b->err), SG_OK);
    expect_good(b, round);
}

static void the_client_gets_what_it_can_read_and_no_call_of_ours(void)
{
    static const char *const bodies[] = {
        HEAD "\"stream\":true," USER ",\"tools\":[" PYTHON_TOOL "," SEARCH_TOOL "," OWN_TOOL "]}",
        HEAD USER ",\"tools\":[" PYTHON_TOOL "," SEARCH_TOOL "," OWN_TOOL "]}",
        HEAD "\"stream\":true,\"output_format\":{\"type\":\"json_schema\"}," USER
             ",\"tools\":[" PYTHON_TOOL "," SEARCH_TOOL "," OWN_TOOL "]}",
        HEAD "\"stream\":true,\"tool_choice\":{\"type\":\"auto\",\"disable_parallel_tool_use\":"
             "true}," USER ",\"tools\":[" PYTHON_TOOL "," SEARCH_TOOL "," OWN_TOOL "]}",
        HEAD "\"stream\":true,\"tool_choice\":{\"type\":\"none\"}," USER ",\"tools\":[" PYTHON_TOOL
             "," SEARCH_TOOL "," OWN_TOOL "]}"};
    static const size_t pieces[] = {0, 1, 7};
    struct upstream u = {.random = {42}};
    for (uint32_t round = 0; round < ROUNDS; round++) {
        BENCH_CLEANUP struct bench b = bench_new(pieces[round % COUNT_OF(pieces)]);
        bench_open(&b, bodies[round % COUNT_OF(bodies)]);
        round_run(&b, &u, round);
    }
    buf_clear(&u.out);
}

static const struct test tests[] = {
    TEST(the_client_gets_what_it_can_read_and_no_call_of_ours),
};

int main(int argc, char **argv)
{
    return run_tests("messages_hostile", tests, COUNT_OF(tests), argc, argv);
}
