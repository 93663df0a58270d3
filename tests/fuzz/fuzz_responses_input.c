/* Any bytes as a request on responses, with a store that has an answer under some ids, and a memory of one that called the
 * client's functions. What is opened goes up as good JSON, in a first turn and behind a run; what is kept of the answer is a record, whose lists and replays can be written. */
#include "base/check.h"
#include "surface/responses_stored.h"
#include "surface/shown_calls.h"
#include "surface/surface.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct surface_offer offers[] = {
    {.hosted = {"code_interpreter", 16},
     .name = {"code_interpreter", 16},
     .description = {"Runs Python.", 12}},
    {.hosted = {"web_search", 10}, .name = {"web_search", 10}, .description = {"Searches.", 9}}};

static const char record_text[] =
    "{\"v\":1,\"response\":{\"id\":\"resp_sg1\",\"status\":\"completed\",\"output\":[{\"id\":\"ci_"
    "sg1\","
    "\"type\":\"code_interpreter_call\",\"status\":\"completed\",\"code\":\"1\",\"container_id\":"
    "\"cntr_1\",\"outputs\":[]},{\"id\":\"rs_1\",\"type\":\"reasoning\",\"summary\":[]},{\"id\":"
    "\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\","
    "\"text\":\"x\",\"annotations\":[]}]}]},\"previous\":null,\"input\":[{\"role\":\"user\","
    "\"content\":\"hi\"}],\"input_ids\":[\"msg_sg1\"],\"calls\":{\"ci_sg1\":{\"call_id\":\"c\","
    "\"arguments\":\"{}\",\"output\":\"42\"}}}";

/* Of two turns: the second calls the client's function `f` twice, and two of ours around the second call. */
#define CALL_A "call_sg00000000000000000000000000000000_a"
#define CALL_B "call_sg00000000000000000000000000000001"
static const char memory_text[] =
    "{\"hash\":\"%s\",\"container\":\"cntr_1\",\"turns\":[[{\"ours\":\"call_ci_sg1\",\"item\":\"ci_"
    "sg1\","
    "\"kind\":\"code_interpreter\",\"arguments\":\"{}\",\"output\":\"1\"},{\"seen\":\"0\"}],[],[{"
    "\"seen\":\"%s\"},"
    "{\"given\":\"" CALL_A
    "\"},{\"ours\":\"call_ws_sg1\",\"item\":\"ws_sg1\",\"kind\":\"web_search\","
    "\"arguments\":\"{\\\"query\\\":\\\"q\\\"}\",\"output\":\"2\"},{\"given\":\"" CALL_B
    "\"},{\"ours\":\"call_sg2\",\"item\":\"\","
    "\"kind\":\"gone\",\"arguments\":\"{}\",\"output\":\"3\"}]]}";

static const char *container_id(void *context)
{
    (void)context;
    return "cntr_1";
}

static int64_t container_expires(void *context)
{
    (void)context;
    return 0;
}

static void check_json(struct str text)
{
    struct arena *arena = arena_new(0);
    struct json_text scanned;
    struct sg_error err = {0};
    CHECK(json_scan(text, arena, &scanned, &err) == SG_OK);
    arena_free(arena);
}

static bool store_keep(void *context, const struct str *ids, size_t count, struct str data)
{
    struct arena *arena = arena_new(0);
    struct responses_record record;
    BUF_CLEANUP struct buf out = {0};
    struct sg_error err = {0};
    const struct responses_list_query query = {{0}, {0}, {0}};
    (void)context, (void)ids;
    CHECK(count > 0);
    CHECK(responses_record_read(data, arena, &record));
    CHECK(responses_stored_inputs(&record, &query, &out, &err) == SG_OK);
    check_json(buf_str(&out));
    buf_reset(&out);
    responses_stored_put(&record, NULL, &out);
    check_json(buf_str(&out));
    responses_stored_replay(&record, NULL, -1, &out);
    arena_free(arena);
    return true;
}

static bool store_find(void *context, struct str id, struct str *ret)
{
    static const char *const ids[] = {"resp_sg1", "ci_sg1", "rs_1", "msg_1", "msg_sg1"};
    (void)context;
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        if (str_is(id, ids[i])) {
            *ret = STR(record_text);
            return true;
        }
    }
    return false;
}

static bool memory_keep(void *context, const struct str *ids, size_t count, struct str data,
                        bool goes_on)
{
    (void)context, (void)ids, (void)goes_on;
    CHECK(count > 0);
    check_json(data);
    return true;
}

static bool memory_find(void *context, struct str id, struct str *ret)
{
    struct str start = STR("responses:call_sg0000000000000000000000000000000");
    *ret = str_of(context);
    return id.len == start.len + 1 && str_starts(id, start);
}

/* The record, with the hashes of what the client has of the answer. */
static const char *memory_make(struct arena *arena)
{
    const struct shown_call calls[] = {{STR(CALL_A), STR("f"), STR("{}")},
                                       {STR(CALL_B), STR("f"), STR("{}")}};
    const struct shown_call message = {.name = STR("message")};
    char hash[SHOWN_HASH_BYTES], seen[SHOWN_HASH_BYTES];
    shown_hash((struct str){0}, calls, 2, arena, hash);
    shown_hash(STR("x"), &message, 1, arena, seen);
    size_t size = sizeof memory_text + 2 * SHOWN_HASH_BYTES;
    char *text = arena_get(arena, size);
    (void)snprintf(text, size, memory_text, hash, seen); /* fits */
    return text;
}

static void turn(struct surface_exchange *exchange, const char *sse, struct buf *out,
                 struct surface_turn *ret)
{
    struct sg_error err = {0};
    surface_responses.turn_begin(exchange, true);
    CHECK(surface_responses.turn_feed(exchange, str_of(sse), out, &err) == SG_OK);
    CHECK(surface_responses.turn_end(exchange, out, ret, &err) == SG_OK);
}

static void request_check(struct surface_exchange *exchange, bool last)
{
    BUF_CLEANUP struct buf body = {0};
    struct sg_error err = {0};
    struct surface_turn_options options = {.stream = true, .last = last, .remove_tools = last};
    int code = surface_responses.turn_request(exchange, &options, &body, &err);
    CHECK(code == SG_OK || code == SG_E_LIMIT);
    if (code == SG_OK) {
        check_json(buf_str(&body));
    }
}

static void drive(struct surface_exchange *exchange)
{
    static const char call[] =
        "data: "
        "{\"type\":\"response.completed\",\"response\":{\"output\":[{\"type\":\"function_call\","
        "\"name\":\"code_interpreter\",\"call_id\":\"c\",\"arguments\":\"{}\"}]}}\n\n";
    static const char text[] = "data: {\"type\":\"response.output_text.delta\",\"delta\":\"x\"}\n\n"
                               "data: {\"type\":\"response.completed\",\"response\":{}}\n\n";
    BUF_CLEANUP struct buf out = {0};
    struct sg_error err = {0};
    struct surface_turn result;
    (void)surface_responses.container(exchange);
    request_check(exchange, false);
    turn(exchange, call, &out, &result);
    for (size_t i = 0; i < result.calls_count && !result.length; i++) {
        struct surface_result ran = {.model_text = STR("42")};
        surface_responses.call_begin(exchange, i, STR("cntr_1"), &out);
        surface_responses.call_end(exchange, i, &ran, &out);
    }
    request_check(exchange, false);
    turn(exchange, text, &out, &result);
    request_check(exchange, true);
    CHECK(surface_responses.finish(exchange, STR("."), &out, &err) == SG_OK);
    if (!surface_responses.wants_stream(exchange)) {
        check_json(buf_str(&out));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new(0);
    struct json_text body;
    struct sg_error err = {0};
    const struct surface_container_source container = {container_id, container_expires, NULL};
    const struct surface_store store = {store_keep, store_find, NULL};
    const struct surface_memory memory = {memory_keep, memory_find, NULL,
                                          (void *)(uintptr_t)memory_make(arena)};
    if (json_scan((struct str){(const char *)data, size}, arena, &body, &err) == SG_OK &&
        body.count > 0) {
        struct surface_input input = {.body = &body,
                                      .offers = offers,
                                      .offers_count = 2,
                                      .memory = &memory,
                                      .store = &store,
                                      .container = &container,
                                      .asks_for_reasoning = size % 2 == 0,
                                      .answer_id = "0123"};
        struct surface_exchange *exchange = NULL;
        bool ours = false;
        int looked = surface_responses.looks_for(&input, arena, &ours, &err);
        if (surface_responses.open(&input, arena, &exchange, &err) == SG_OK) {
            CHECK(looked == SG_OK);
            drive(exchange);
        } else {
            CHECK(err.message[0] != '\0');
        }
        surface_responses.free(exchange);
    }
    arena_free(arena);
    return 0;
}
