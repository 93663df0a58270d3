/* Any bytes as a client's chat request, with and without ids of ours that are known: what goes up is good JSON, and of
 * two requests with the same bytes both go up alike. The first byte chooses which kind of record the memory has. */
#include "base/check.h"
#include "surface/surface.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ID "call_sg00000000000000000000000000000000"
#define OTHER "call_sg11111111111111111111111111111111"

static const struct surface_offer offers[] = {
    {.hosted = {"code_interpreter", 16},
     .name = {"code_interpreter", 16},
     .description = {"Runs Python.", 12}},
    {.hosted = {"web_search", 10}, .name = {"web_search", 10}, .description = {"Searches.", 9}}};

/* Names of ids alone; and a whole turn, with the hash of the message "x" that calls get_stock({}) under ID. */
static const char *const records[] = {
    "{\"hash\":\"0\",\"calls\":[{\"id\":\"" ID "\",\"up\":\"call_0\"},{\"id\":\"" OTHER
    "\",\"up\":\"call_1\"}]}",
    "{\"hash\":\"bc5f74d1af38e84822d7cecc00c8f38e408824ad0a6f9b849e9f8222617253d3\",\"names\":{"
    "\"code_interpreter\":\"python\"},\"front\":[{\"role\":\"assistant\",\"content\":null,\"tool_"
    "calls\":[{\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"python\",\"arguments\":"
    "\"{}\"}}]},{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"1\"}],\"assistant\":{"
    "\"role\":\"assistant\",\"content\":\"x\",\"tool_calls\":[{\"id\":\"b\",\"type\":\"function\","
    "\"function\":{\"name\":\"python\",\"arguments\":\"{}\"}},{\"id\":\"call_0\",\"type\":"
    "\"function\",\"function\":{\"name\":\"get_stock\",\"arguments\":\"{}\"}}]},\"calls\":[{\"id\":"
    "\"b\",\"result\":\"2\"},{\"id\":\"" ID "\",\"up\":\"call_0\"}]}"};

static bool find(void *context, struct str id, struct str *ret)
{
    *ret = str_of(context);
    return str_is(id, ID) || str_is(id, OTHER);
}

static bool keep(void *context, const struct str *ids, size_t count, struct str data, bool goes_on)
{
    (void)context, (void)ids, (void)count, (void)data, (void)goes_on;
    return false;
}

static bool resume(void *context, struct str id)
{
    (void)context, (void)id;
    return false;
}

static void check_json(struct str text)
{
    struct arena *arena = arena_new(0);
    struct json_text scanned;
    struct sg_error err = {0};
    CHECK(json_scan(text, arena, &scanned, &err) == SG_OK);
    arena_free(arena);
}

/* False where the request is refused. */
static bool request_make(const struct surface_input *input, struct buf *out)
{
    struct arena *arena = arena_new(0);
    struct surface_exchange *exchange = NULL;
    struct surface_turn_options options = {.stream = false};
    struct sg_error err = {0};
    bool takes_part = false;
    int code = surface_chat.looks_for(input, arena, &takes_part, &err);
    if (code == SG_OK) {
        code = surface_chat.open(input, arena, &exchange, &err);
    }
    if (code == SG_OK) {
        code = surface_chat.turn_request(exchange, &options, out, &err);
    }
    CHECK(code == SG_OK || err.message[0] != '\0');
    surface_chat.free(exchange);
    arena_free(arena);
    return code == SG_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    struct arena *arena = arena_new(0);
    struct json_text body;
    struct sg_error err = {0};
    struct str text = {(const char *)data + 1, size - 1};
    struct surface_memory memory = {keep, find, resume, (void *)(uintptr_t)records[data[0] & 1]};
    if (json_scan(text, arena, &body, &err) == SG_OK && body.root.type == JSON_OBJECT) {
        struct surface_input input = {.body = &body,
                                      .offers = offers,
                                      .offers_count = 2,
                                      .memory = data[0] & 2 ? NULL : &memory,
                                      .answer_id = "0123"};
        BUF_CLEANUP struct buf first = {0}, again = {0};
        if (request_make(&input, &first)) {
            check_json(buf_str(&first));
            CHECK(request_make(&input, &again));
            CHECK(str_eq(buf_str(&first), buf_str(&again)));
        }
    }
    arena_free(arena);
    return 0;
}
