/* Any bytes as an upstream's answer on messages. The first byte chooses the form, the client's wish and the size of pieces.
 * Whatever comes, what goes up again is good JSON, and what goes to the client passes the strict checker. */
#include "base/check.h"
#include "messages_checker.h"
#include "surface/surface.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct surface_offer offers[] = {
    {.hosted = {"code_interpreter", 16},
     .name = {"code_interpreter", 16},
     .description = {"Runs Python.", 12}},
    {.hosted = {"web_search", 10}, .name = {"web_search", 10}},
    {.name = {"hidden", 6}}};

#define SEARCH "{\"type\":\"web_search_20250305\"}"

static void check_json(struct str text)
{
    struct arena *arena = arena_new(0);
    struct json_text scanned;
    struct sg_error err = {0};
    CHECK(json_scan(text, arena, &scanned, &err) == SG_OK);
    arena_free(arena);
}

/* Texts that the checker's JSON reader refuses and ours takes, as client libraries do: halves of surrogate pairs, and
 * what it cannot hold. */
static bool is_beyond_checker(struct str text)
{
    for (size_t i = 0; i + 2 < text.len; i++) {
        if (memcmp(text.data + i, "\\ud", 3) == 0 || memcmp(text.data + i, "\\uD", 3) == 0 ||
            memcmp(text.data + i, "\\u0", 3) == 0) {
            return true;
        }
    }
    return false;
}

static void check_answer(struct surface_exchange *exchange, struct str out)
{
    if (is_beyond_checker(out)) {
        return;
    }
    CHECKER_CLEANUP struct checker checker = {0};
    const char *problem = surface_messages.wants_stream(exchange)
                              ? check_stream(&checker, out, false)
                              : check_message(&checker, out);
    if (problem != NULL) {
        fprintf(stderr, "%s in:\n%.*s\n", problem, (int)out.len, out.data);
    }
    CHECK(problem == NULL);
    const cJSON *block;
    cJSON_ArrayForEach(block, checker.content)
    {
        const char *name = check_text(block, "name");
        bool is_ours = check_is(name, "code_interpreter") || check_is(name, "web_search") ||
                       check_is(name, "hidden");
        CHECK(!is_ours || !check_is(check_text(block, "type"), "tool_use"));
    }
}

static int turn(struct surface_exchange *exchange, bool is_stream, struct str bytes, size_t piece,
                struct buf *out, struct surface_turn *ret, struct sg_error *err)
{
    surface_messages.turn_begin(exchange, is_stream);
    while (bytes.len > 0) {
        size_t len = bytes.len < piece ? bytes.len : piece;
        if (surface_messages.turn_feed(exchange, (struct str){bytes.data, len}, out, err) !=
            SG_OK) {
            return err->code;
        }
        bytes = (struct str){bytes.data + len, bytes.len - len};
    }
    return surface_messages.turn_end(exchange, out, ret, err);
}

static void drive(struct surface_exchange *exchange, uint8_t how, struct str bytes)
{
    BUF_CLEANUP struct buf out = {0}, body = {0};
    struct sg_error err = {0};
    struct surface_turn_options options = {.stream = how & 1};
    struct surface_turn result;
    for (int i = 0; i < 2; i++) {
        if (turn(exchange, how & 1, bytes, (how & 4) ? 1 : 4096, &out, &result, &err) != SG_OK) {
            CHECK(err.message[0] != '\0');
            if (surface_messages.wants_stream(exchange)) {
                surface_messages.fail(exchange, &err, &out);
                check_answer(exchange, buf_str(&out));
            }
            return;
        }
        for (size_t k = 0; k < result.calls_count && !((how & 8) && i == 1); k++) {
            struct surface_output hit = {
                SG_OUT_HIT,
                STR("{\"title\":\"A\",\"url\":\"https://a.test/x\",\"snippet\":\"s\"}")};
            struct surface_result ran = {.model_text = STR("42"),
                                         .container_id = STR("cntr_1"),
                                         .outputs = &hit,
                                         .outputs_count = 1};
            surface_messages.call_end(exchange, k, &ran, &out);
        }
        buf_reset(&body);
        if (surface_messages.turn_request(exchange, &options, &body, &err) == SG_OK) {
            check_json(buf_str(&body));
        }
        if (result.has_client_calls) {
            break;
        }
    }
    CHECK(surface_messages.finish(exchange, STR("The end."), &out, &err) == SG_OK);
    if (!surface_messages.wants_stream(exchange)) {
        check_json(buf_str(&out));
    }
    check_answer(exchange, buf_str(&out));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const bodies[] = {
        "{\"max_tokens\":9,\"messages\":[],\"tools\":[{\"type\":\"code_execution_20250825\"}"
        "," SEARCH "]}",
        "{\"stream\":true,\"messages\":[{}],\"tools\":[{\"type\":\"code_execution_20250522\"}"
        "," SEARCH "],\"output_format\":{\"type\":\"json_schema\"}}",
        "{\"stream\":true,\"messages\":[{}],\"tools\":[{\"type\":\"code_execution_20250522\"}"
        "," SEARCH "]}",
        "{\"stream\":true,\"messages\":[],\"tools\":[{\"type\":\"code_execution_20250522\"}," SEARCH
        "],\"tool_choice\":{\"type\":\"auto\",\"disable_parallel_tool_use\":true}}"};
    if (size == 0) {
        return 0;
    }
    struct arena *arena = arena_new(0);
    struct json_text body;
    struct sg_error err = {0};
    CHECK(json_scan(str_of(bodies[data[0] >> 4 & 3]), arena, &body, &err) == SG_OK);
    struct surface_input input = {
        .body = &body, .offers = offers, .offers_count = COUNT_OF(offers), .answer_id = "0123"};
    struct surface_exchange *exchange = NULL;
    CHECK(surface_messages.open(&input, arena, &exchange, &err) == SG_OK);
    drive(exchange, data[0], (struct str){(const char *)data + 1, size - 1});
    surface_messages.free(exchange);
    arena_free(arena);
    return 0;
}
